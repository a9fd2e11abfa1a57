// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The worker's loop. Jobs live on the stacks of their waiting callers.

#include "comm/Worker.h"

#include <cfenv>
#include <csignal>
#include <exception>

namespace dfa::rt {

/// Blocks SIGPIPE on the calling thread; returns the mask before.
static sigset_t blockSigpipe() {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  return before;
}

Worker::Worker() {
  // The mask is inherited at creation; set inside the thread it would leave a
  // gap.
  sigset_t before = blockSigpipe();
  thread = std::thread([this] { loop(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Worker::~Worker() {
  {
    std::lock_guard<std::mutex> guard(mutex);
    stopping = true;
  }
  wakeUp.notify_one();
  thread.join();
}

Status Worker::run(const std::function<Status()> &task) {
  Job job{&task, Status()};
  std::unique_lock<std::mutex> lock(mutex);
  queue.push_back(&job);
  wakeUp.notify_one();
  finished.wait(lock, [&job] { return job.done; });
  return job.status;
}

void Worker::loop() {
  // A thread inherits flush-to-zero from its creator (torch can set it); the
  // bits of a reduction must not depend on that.
  std::fesetenv(FE_DFL_ENV);
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wakeUp.wait(lock, [this] { return stopping || !queue.empty(); });
    if (queue.empty())
      return;
    Job *job = queue.front();
    queue.pop_front();
    lock.unlock();
    Status status;
    try {
      status = (*job->task)();
    } catch (const std::exception &error) {
      status = DFA_RT_ERROR(Internal, "%s", error.what());
    }
    lock.lock();
    job->status = std::move(status);
    job->done = true;
    finished.notify_all();
  }
}

} // namespace dfa::rt
