// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The queue thread and the event counters of the CPU device.

#include "cpu/CpuStream.h"

namespace dfa::rt {

uint64_t CpuEvent::announce() {
  std::lock_guard<std::mutex> lock(mutex);
  return ++issued;
}

void CpuEvent::complete(uint64_t number, const Status &state) {
  std::lock_guard<std::mutex> lock(mutex);
  if (number > done)
    done = number;
  failure = state;
  if (timed)
    when = Clock::now();
  reached.notify_all();
}

CpuEvent::Clock::time_point CpuEvent::reachedAt() {
  std::lock_guard<std::mutex> lock(mutex);
  return when;
}

uint64_t CpuEvent::announced() {
  std::lock_guard<std::mutex> lock(mutex);
  return issued;
}

Status CpuEvent::await(uint64_t number) {
  std::unique_lock<std::mutex> lock(mutex);
  reached.wait(lock, [&] { return done >= number; });
  return failure;
}

CpuStream::CpuStream() : thread(&CpuStream::work, this) {}

CpuStream::~CpuStream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

Status CpuStream::push(CpuTask task, bool always) {
  if (graph) {
    graph->tasks.push_back(std::move(task));
    return Status();
  }
  std::lock_guard<std::mutex> lock(mutex);
  queue.push_back({std::move(task), always});
  changed.notify_all();
  return failure;
}

Status CpuStream::synchronize() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return queue.empty() && !busy; });
  return failure;
}

Status CpuStream::state() {
  std::lock_guard<std::mutex> lock(mutex);
  return failure;
}

void CpuStream::work() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stopping || !queue.empty(); });
    if (queue.empty())
      return; // stopping, and everything queued is done
    Item item = std::move(queue.front());
    queue.pop_front();
    if (failure.ok() || item.always) {
      busy = true;
      lock.unlock();
      Status status = item.task();
      lock.lock();
      busy = false;
      if (failure.ok())
        failure = status;
    }
    changed.notify_all();
  }
}

} // namespace dfa::rt
