// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events and graphs on a CPU: a queue with a thread of its own, a
// count of completions, and a list of tasks.

#ifndef DFA_CPU_CPUSTREAM_H
#define DFA_CPU_CPUSTREAM_H

#include "base/Status.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace dfa::rt {

using CpuTask = std::function<Status()>;
class CpuStream;

/// A recorded list of tasks, in the order they were issued. That order
/// respects every event, so a replay runs them one after another.
struct CpuGraph {
  uint64_t id = 0;
  std::vector<CpuTask> tasks;
  std::vector<std::shared_ptr<void>> retained;
  std::vector<CpuStream *> streams; // recording into it now
};

/// Counts records and completions, so that a wait refers to the last record
/// before it. Carries the failure of the recording stream to the waiter.
class CpuEvent {
public:
  using Clock = std::chrono::steady_clock;

  explicit CpuEvent(bool timed = false) : timed(timed) {}

  /// Announces a record and returns its number.
  uint64_t announce();
  /// Marks record `number` as reached.
  void complete(uint64_t number, const Status &state);
  /// The number of the last announced record.
  uint64_t announced();
  /// Blocks until record `number` is reached; returns its stream's failure.
  Status await(uint64_t number);
  /// When a timed event was last reached.
  Clock::time_point reachedAt();

  /// The recording that its last record went into, or 0.
  uint64_t captured = 0;

private:
  std::mutex mutex;
  std::condition_variable reached;
  uint64_t issued = 0;
  uint64_t done = 0;
  Status failure;
  const bool timed;
  Clock::time_point when;
};

/// Tasks run in order on one thread. After a failure the rest are dropped,
/// events apart, and the failure is reported by every later call.
class CpuStream {
public:
  CpuStream();
  ~CpuStream();

  /// Adds a task, or records it while a graph is recorded. A task that must
  /// run even after a failure (the completion of an event) is `always`.
  Status push(CpuTask task, bool always = false);
  /// Blocks until everything pushed so far is done.
  Status synchronize();
  /// The failure so far.
  Status state();

  /// The graph that records this stream's tasks, or null.
  CpuGraph *graph = nullptr;

private:
  struct Item {
    CpuTask task;
    bool always;
  };
  void work();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> queue;
  bool busy = false;
  bool stopping = false;
  Status failure;
  std::thread thread; // last: starts when the rest is ready
};

} // namespace dfa::rt

#endif // DFA_CPU_CPUSTREAM_H
