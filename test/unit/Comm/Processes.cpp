// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fork, poll, waitpid.

#include "Processes.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
// Gloo is not instrumented: a buffer's destructor waits for its last user (the
// thread that reads the socket into our memory) by spinning on a reference
// count, which the sanitizer does not see.
extern "C" __attribute__((visibility("default"))) const char *
__tsan_default_suppressions() {
  return "race:gloo::transport::tcp::UnboundBuffer::~UnboundBuffer\n"
         "race:std::default_delete<gloo::transport::UnboundBuffer>\n"
         "race:gloo::transport::tcp::Pair::read\n";
}
#endif

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Processes::Processes(int count, const Body &body)
    : reports(size_t(count)), started(now()) {
  for (int rank = 0; rank < count; ++rank) {
    int ends[2];
    if (::pipe(ends) != 0)
      std::abort();
    std::fflush(nullptr);
    pid_t child = ::fork();
    if (child == 0) {
      // A parent that crashes must not leave children behind.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      int fd = ends[1];
      int code = body(rank, [fd](const std::string &text) {
        ssize_t written = ::write(fd, text.data(), text.size());
        (void)written;
      });
      std::fflush(nullptr);
      ::_exit(code);
    }
    ::close(ends[1]);
    pids.push_back(child);
    pipes.push_back(ends[0]);
  }
}

Processes::~Processes() {
  for (pid_t pid : pids)
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  for (int fd : pipes)
    ::close(fd);
}

void Processes::kill(int rank, int signal) const {
  if (pids[size_t(rank)] > 0)
    ::kill(pids[size_t(rank)], signal);
}

void Processes::read(size_t rank) {
  pollfd entry = {pipes[rank], POLLIN, 0};
  char buffer[4096];
  ssize_t n = 0;
  while (::poll(&entry, 1, 0) > 0 &&
         (n = ::read(pipes[rank], buffer, sizeof(buffer))) > 0)
    reports[rank].append(buffer, size_t(n));
}

bool Processes::waitForReports(const std::string &text, double seconds) {
  double deadline = now() + seconds;
  while (true) {
    bool all = true;
    for (size_t i = 0; i < pids.size(); ++i) {
      read(i);
      all = all && reports[i].find(text) != std::string::npos;
    }
    if (all || now() >= deadline)
      return all;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::vector<ChildResult> Processes::wait(double seconds) {
  std::vector<ChildResult> results(pids.size());
  size_t alive = pids.size();
  double deadline = now() + seconds;
  while (alive > 0) {
    bool late = now() >= deadline;
    for (size_t i = 0; i < pids.size(); ++i) {
      read(i); // so that no child blocks in a full pipe
      if (pids[i] <= 0)
        continue;
      if (late) {
        ::kill(pids[i], SIGKILL);
        results[i].late = true;
      }
      int status = 0;
      if (::waitpid(pids[i], &status, late ? 0 : WNOHANG) != pids[i])
        continue;
      results[i].seconds = now() - started;
      results[i].exited = WIFEXITED(status);
      results[i].code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      results[i].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      pids[i] = -1;
      --alive;
      read(i);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (size_t i = 0; i < results.size(); ++i)
    results[i].report = reports[i];
  return results;
}

void expectAllSucceed(int count, const Processes::Body &body, double seconds) {
  Processes processes(count, body);
  std::vector<ChildResult> results = processes.wait(seconds);
  for (int rank = 0; rank < count; ++rank) {
    const ChildResult &result = results[size_t(rank)];
    EXPECT_TRUE(result.exited && result.code == 0)
        << "rank " << rank << ": code " << result.code << ", signal "
        << result.signal << (result.late ? ", late" : "") << "\n"
        << result.report;
  }
}

int freePort() {
  int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr *>(&address), bytes) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &bytes) != 0)
    std::abort();
  ::close(fd);
  return ntohs(address.sin_port);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "dfa-comm-XXXXXX").string();
  if (!::mkdtemp(&pattern[0]))
    std::abort();
  directory = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}
