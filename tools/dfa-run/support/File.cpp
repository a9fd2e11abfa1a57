// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// POSIX file access, restarted after interrupts and short transfers.
#include "support/File.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dfa::run;

/// Linux transfers at most 2 GiB less a page a call; stay well below.
static constexpr uint64_t largestTransfer = uint64_t(1) << 30;

static Status systemError(const char *action) {
  return Status::failure(std::string("cannot ") + action + ": " +
                         std::strerror(errno));
}

File::~File() {
  if (descriptor >= 0)
    ::close(descriptor);
}

Status File::openForReading(const std::string &path) {
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return systemError("open");
  struct stat properties;
  if (::fstat(descriptor, &properties) != 0)
    return systemError("examine");
  if (!S_ISREG(properties.st_mode))
    return Status::expects("a regular file", S_ISDIR(properties.st_mode)
                                                 ? "a directory"
                                                 : "a special file");
  bytes = static_cast<uint64_t>(properties.st_size);
  return Status();
}

Status File::openForWriting(const std::string &path) {
  descriptor =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return descriptor < 0 ? systemError("create") : Status();
}

Status File::close() {
  int closing = descriptor;
  descriptor = -1;
  if (closing >= 0 && ::close(closing) != 0)
    return systemError("write");
  return Status();
}

Status File::read(void *target, uint64_t count, uint64_t offset) const {
  char *next = static_cast<char *>(target);
  while (count > 0) {
    ssize_t got = ::pread(descriptor, next, std::min(count, largestTransfer),
                          static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError("read");
    if (got == 0)
      return Status::expects(std::to_string(count) + " more bytes at offset " +
                                 std::to_string(offset),
                             "the end of the file");
    next += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<uint64_t>(got);
  }
  return Status();
}

Status File::write(const void *source, uint64_t count, uint64_t offset) {
  const char *next = static_cast<const char *>(source);
  while (count > 0) {
    ssize_t done = ::pwrite(descriptor, next, std::min(count, largestTransfer),
                            static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return systemError("write");
    next += done;
    offset += static_cast<uint64_t>(done);
    count -= static_cast<uint64_t>(done);
  }
  return Status();
}
