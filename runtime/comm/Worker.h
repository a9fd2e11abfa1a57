// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread that runs all work of a transport, in the order given. SIGPIPE is
// blocked on it and on every thread that it starts: Gloo writes to sockets
// without MSG_NOSIGNAL, and a peer's death must be an error here, not ours.

#ifndef DFA_COMM_WORKER_H
#define DFA_COMM_WORKER_H

#include "base/Status.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace dfa::rt {

class Worker {
public:
  Worker();
  /// Finishes what is queued.
  ~Worker();

  /// Runs `task` on the worker and waits for it.
  Status run(const std::function<Status()> &task);

private:
  struct Job {
    const std::function<Status()> *task;
    Status status;
    bool done = false;
  };
  void loop();

  std::mutex mutex;
  std::condition_variable wakeUp, finished;
  std::deque<Job *> queue;
  bool stopping = false;
  std::thread thread;
};

} // namespace dfa::rt

#endif // DFA_COMM_WORKER_H
