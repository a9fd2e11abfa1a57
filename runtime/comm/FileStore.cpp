// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file store: a directory with one file a key. A value is written aside and
// renamed, so readers see the whole old or the whole new one, on NFS too;
// counters are read and written under a lock file. Keys of an earlier run stay:
// the caller's prefix must tell runs apart.

#include "comm/Store.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace dfa::rt {

namespace {

constexpr Milliseconds kFirstPause(1);
constexpr Milliseconds kLongestPause(50);
constexpr size_t kLongestName = 180;

Status systemError(const char *what, const std::string &path) {
  return DFA_RT_ERROR(CollectiveError, "file store: cannot %s '%s': %s", what,
                      path.c_str(), std::strerror(errno));
}

/// A file descriptor that closes itself.
class File {
public:
  explicit File(int fd) : fd(fd) {}
  ~File() {
    if (fd >= 0)
      ::close(fd);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  const int fd;
};

uint64_t hashOf(const std::string &text) {
  uint64_t hash = 14695981039346656037ull; // FNV-1a
  for (unsigned char c : text)
    hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

/// File names cannot hold '/' nor be long; what is cut off is hashed.
std::string fileName(const std::string &key) {
  std::string name;
  for (char c : key) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '-' || c == '_';
    name += plain ? std::string(1, c)
                  : format("%%%02x", static_cast<unsigned char>(c));
  }
  if (name.size() > kLongestName)
    name = name.substr(0, kLongestName - 17) +
           format("~%016llx", (unsigned long long)hashOf(key));
  return name;
}

class FileStore : public Store {
public:
  explicit FileStore(std::string path) : path(std::move(path)) {}

  Status set(const std::string &key, const std::string &value) override {
    return write("k." + fileName(key), value);
  }

  Status tryGet(const std::string &key, std::string &value,
                bool &found) override {
    return read("k." + fileName(key), value, found);
  }

  Status get(const std::string &key, std::string &value,
             Milliseconds timeout) override {
    std::chrono::steady_clock::time_point deadline =
        std::chrono::steady_clock::now() + timeout;
    Milliseconds pause = kFirstPause;
    while (true) {
      bool found = false;
      DFA_RT_TRY(tryGet(key, value, found));
      if (found)
        return Status();
      if (std::chrono::steady_clock::now() >= deadline)
        return DFA_RT_ERROR(CollectiveError,
                            "key '%s' did not appear in file:%s within %lld ms",
                            key.c_str(), path.c_str(),
                            (long long)timeout.count());
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  }

  Status add(const std::string &key, int64_t delta, int64_t &sum) override {
    std::string lockPath = path + "/lock";
    File lock(::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (lock.fd < 0)
      return systemError("open", lockPath);
    // The lock belongs to this open file, so threads exclude each other too.
    while (::flock(lock.fd, LOCK_EX) != 0)
      if (errno != EINTR)
        return systemError("lock", lockPath);
    std::string name = "c." + fileName(key), text;
    bool found = false;
    DFA_RT_TRY(read(name, text, found));
    sum = (found ? std::atoll(text.c_str()) : 0) + delta;
    return write(name, std::to_string(sum));
  }

  Status clone(std::unique_ptr<Store> &copy) override {
    copy = std::make_unique<FileStore>(path);
    return Status();
  }

  std::string name() const override { return "file:" + path; }

private:
  Status write(const std::string &name, const std::string &value) {
    // Unique over hosts (a shared directory), processes and threads.
    static std::atomic<uint64_t> counter{0};
    char host[64] = "";
    ::gethostname(host, sizeof(host) - 1);
    std::string aside = path + "/t." + fileName(host) + "." +
                        std::to_string(::getpid()) + "." +
                        std::to_string(counter.fetch_add(1));
    {
      File file(
          ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
      if (file.fd < 0)
        return systemError("create", aside);
      size_t done = 0;
      while (done < value.size()) {
        ssize_t n = ::write(file.fd, value.data() + done, value.size() - done);
        if (n < 0 && errno == EINTR)
          continue;
        if (n <= 0)
          return systemError("write", aside);
        done += size_t(n);
      }
    }
    std::string target = path + "/" + name;
    if (::rename(aside.c_str(), target.c_str()) != 0)
      return systemError("rename", aside);
    return Status();
  }

  Status read(const std::string &name, std::string &value, bool &found) {
    std::string source = path + "/" + name;
    found = false;
    value.clear();
    File file(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd < 0)
      return errno == ENOENT || errno == ESTALE ? Status()
                                                : systemError("open", source);
    char buffer[4096];
    while (true) {
      ssize_t n = ::read(file.fd, buffer, sizeof(buffer));
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return systemError("read", source);
      if (n == 0)
        break;
      value.append(buffer, size_t(n));
    }
    found = true;
    return Status();
  }

  std::string path;
};

} // namespace

Status openFileStore(const std::string &path, std::unique_ptr<Store> &store) {
  if (path.empty())
    return DFA_RT_ERROR(InvalidArgument,
                        "file store: expected a directory, found no path");
  struct stat info;
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    return systemError("create directory", path);
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return DFA_RT_ERROR(InvalidArgument,
                        "file store: expected a directory, found a file at "
                        "'%s'",
                        path.c_str());
  store = std::make_unique<FileStore>(path);
  return Status();
}

} // namespace dfa::rt
