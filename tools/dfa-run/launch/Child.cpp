// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fork and exec with only async-signal-safe calls between them: this process
// may have threads.
#include "launch/Child.h"
#include "Options.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dfa::run;

/// A line longer than this is handed on in parts.
constexpr size_t longestLine = 1 << 20;

static void writeAll(int target, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t now = ::write(target, text.data() + done, text.size() - done);
    if (now < 0 && errno == EINTR)
      continue;
    if (now <= 0)
      return; // nobody reads
    done += static_cast<size_t>(now);
  }
}

int LinePipe::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return -1;
  readEnd = ends[0];
  ::fcntl(readEnd, F_SETFL, O_NONBLOCK);
  return ends[1];
}

void LinePipe::close() {
  if (readEnd >= 0)
    ::close(readEnd);
  readEnd = -1;
}

void LinePipe::drain(int target, const std::string &prefix) {
  char bytes[65536];
  while (readEnd >= 0) {
    ssize_t count = ::read(readEnd, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && errno == EAGAIN)
      break;
    if (count <= 0) {
      finish(target, prefix);
      return;
    }
    held.append(bytes, static_cast<size_t>(count));
    std::string lines;
    size_t begin = 0;
    for (size_t end; (end = held.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      lines += prefix + held.substr(begin, end + 1 - begin);
    held.erase(0, begin);
    if (held.size() > longestLine) {
      lines += prefix + held + "\n";
      held.clear();
    }
    writeAll(target, lines);
  }
}

void LinePipe::finish(int target, const std::string &prefix) {
  if (!held.empty())
    writeAll(target, prefix + held + "\n");
  held.clear();
  close();
}

/// Null-terminated pointers to texts.
static std::vector<char *> pointersTo(const std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(const_cast<char *>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool Child::start(const std::vector<std::string> &words,
                  const std::vector<std::string> &environment, int inherited) {
  std::vector<char *> arguments = pointersTo(words);
  std::vector<char *> variables = pointersTo(environment);
  int outEnd = out.open();
  int errEnd = outEnd < 0 ? -1 : err.open();
  if (errEnd < 0) {
    int error = errno;
    if (outEnd >= 0)
      ::close(outEnd);
    errno = error;
    return false;
  }
  pid_t parent = ::getpid();
  pid = ::fork();
  if (pid == 0) {
    // Whatever happens to the parent, nobody stays behind.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(exitDevice);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
      ::signal(number, SIG_DFL);
    ::dup2(outEnd, STDOUT_FILENO);
    ::dup2(errEnd, STDERR_FILENO);
    if (inherited >= 0)
      ::fcntl(inherited, F_SETFD, 0);
    ::execve("/proc/self/exe", arguments.data(), variables.data());
    ::_exit(exitDevice);
  }
  int error = errno;
  ::close(outEnd);
  ::close(errEnd);
  errno = error;
  return pid > 0;
}

void Child::drain() {
  std::string prefix = "[" + std::to_string(rank) + "] ";
  // Results come from the first rank alone; they stay as they are.
  int target = rank == 0 ? STDOUT_FILENO : STDERR_FILENO;
  out.drain(target, rank == 0 ? "" : prefix);
  err.drain(STDERR_FILENO, prefix);
  if (!ended)
    return;
  out.finish(target, rank == 0 ? "" : prefix);
  err.finish(STDERR_FILENO, prefix);
}

std::string Child::ending() const {
  if (!WIFSIGNALED(status))
    return "exited with code " + std::to_string(WEXITSTATUS(status));
  int number = WTERMSIG(status);
  return "was ended by signal " + std::to_string(number) + " (" +
         ::strsignal(number) + ")";
}

int Child::code() const {
  return WIFEXITED(status) ? WEXITSTATUS(status) : exitDevice;
}
