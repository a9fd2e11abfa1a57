// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that share one range of work at a time. A call allocates nothing.

#ifndef DFA_CPU_THREADPOOL_H
#define DFA_CPU_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace dfa::rt {

class ThreadPool {
public:
  /// Works on [begin, end) of the range.
  using Task = void (*)(void *context, int64_t begin, int64_t end);

  /// `threads` counts the calling thread; 0 means DFA_NUM_THREADS, or all
  /// cores that the process may use.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Splits [begin, end) over the threads and returns when all of it is done.
  /// May be called from several threads: while the workers are busy with
  /// another call, the caller does its range alone.
  void run(int64_t begin, int64_t end, Task task, void *context);

private:
  void work();
  void drain();

  std::vector<std::thread> workers;
  std::mutex callers; // held by the call that owns the workers

  std::mutex mutex; // guards what follows, up to `stopping`
  std::condition_variable wake;
  std::condition_variable idle;
  uint64_t generation = 0;
  bool open = false; // a job accepts workers
  int active = 0;    // workers inside the job
  bool stopping = false;

  // The job; written under `mutex` while no worker is active.
  std::atomic<int64_t> next{0};
  int64_t last = 0;
  int64_t grain = 1;
  Task task = nullptr;
  void *context = nullptr;
};

} // namespace dfa::rt

#endif // DFA_CPU_THREADPOOL_H
