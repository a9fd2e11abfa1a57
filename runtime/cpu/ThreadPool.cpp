// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The thread pool: workers sleep until a job opens, take grains of its range
// from one counter, and sleep again.

#include "cpu/ThreadPool.h"

#include "base/Log.h"

#include <algorithm>
#include <cstdlib>
#include <sched.h>

namespace dfa::rt {

static int defaultThreads() {
  if (const char *word = std::getenv("DFA_NUM_THREADS")) {
    char *end = nullptr;
    long count = std::strtol(word, &end, 10);
    if (*word && !*end && count >= 1 && count <= 4096)
      return static_cast<int>(count);
    DFA_RT_LOG(Warn, "expects DFA_NUM_THREADS from 1 to 4096, but got '%s'",
               word);
  }
  // What a container or taskset left us, not what the machine has.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0)
    threads = defaultThreads();
  workers.reserve(threads - 1);
  for (int index = 1; index < threads; ++index)
    workers.emplace_back(&ThreadPool::work, this);
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::drain() {
  for (;;) {
    int64_t from = next.fetch_add(grain, std::memory_order_relaxed);
    if (from >= last)
      return;
    task(context, from, std::min(from + grain, last));
  }
}

void ThreadPool::work() {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return stopping || (open && generation != seen); });
    if (stopping)
      return;
    seen = generation;
    ++active;
    lock.unlock();
    drain();
    lock.lock();
    if (--active == 0)
      idle.notify_one();
  }
}

void ThreadPool::run(int64_t begin, int64_t end, Task newTask,
                     void *newContext) {
  if (begin >= end)
    return;
  std::unique_lock<std::mutex> owner(callers, std::try_to_lock);
  if (workers.empty() || end - begin == 1 || !owner.owns_lock()) {
    newTask(newContext, begin, end);
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    // Several grains a thread even out threads of different speed.
    grain = std::max<int64_t>(1, (end - begin) / (int64_t(size()) * 8));
    next.store(begin, std::memory_order_relaxed);
    last = end;
    task = newTask;
    context = newContext;
    open = true;
    ++generation;
  }
  wake.notify_all();
  drain();
  // A worker that wakes only now must not enter: the next job reuses the
  // fields above.
  std::unique_lock<std::mutex> lock(mutex);
  open = false;
  idle.wait(lock, [&] { return active == 0; });
}

} // namespace dfa::rt
