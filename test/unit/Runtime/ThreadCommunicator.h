// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A transport between threads of one process, for tests of the executor: sums
// in rank order, through shared memory, on the CPU device's streams.

#ifndef DFA_TEST_RUNTIME_THREADCOMMUNICATOR_H
#define DFA_TEST_RUNTIME_THREADCOMMUNICATOR_H

#include "comm/Communicator.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace dfa::rt::test {

/// What the ranks of one axis share.
class ThreadGroup {
public:
  explicit ThreadGroup(int size) : size(size), send(size), what(size) {}

  /// Shows the other ranks where to read and what is being done; returns when
  /// all have. Ranks that do different things fail.
  Status enter(int rank, const void *from, const std::string &collective);
  /// Returns when every rank has read.
  void leave();

  const int size;
  std::vector<const void *> send;

private:
  void meet();

  std::vector<std::string> what;
  std::mutex mutex;
  std::condition_variable met;
  int arrived = 0;
  uint64_t round = 0;
};

class ThreadCommunicator : public Communicator {
public:
  ThreadCommunicator(Device &device, std::shared_ptr<ThreadGroup> group,
                     int own)
      : device(device), group(std::move(group)), own(own) {}

  int rank() const override { return own; }
  int size() const override { return group->size; }
  const char *name() const override { return "threads"; }
  bool ordersByRank() const override { return ordered; }
  bool capturable() const override { return true; }

  Status reduceScatter(const void *send, void *recv, int64_t count,
                       DataType type, ReduceOp op, Stream stream) override;
  Status allReduce(const void *send, void *recv, int64_t count, DataType type,
                   ReduceOp op, Stream stream) override;
  Status allGather(const void *send, void *recv, int64_t count, DataType type,
                   Stream stream) override;
  Status broadcast(const void *send, void *recv, int64_t count, DataType type,
                   int root, Stream stream) override;
  Status barrier(Stream stream) override;
  void label(const char *collective, int64_t bucket) override;

  bool connectsLazily() const override { return lazy; }

  Status allocateShared(size_t bytes, void **memory) override;

  bool ordered = true;
  /// Gives memory of its own for gathers.
  bool shares = false;
  std::vector<std::vector<char>> shared;
  /// As NCCL: the first collective of a kind, type and count connects, which
  /// is refused in a recording.
  bool lazy = false;
  /// What was issued, such as "reduce_scatter bucket 1 count 32".
  std::vector<std::string> log;

private:
  Status post(const std::string &word, const void *send, int64_t count,
              Stream stream, std::function<void(ThreadGroup &)> read);

  Device &device;
  std::shared_ptr<ThreadGroup> group;
  int own;
  std::string labelled;
  std::set<std::string> connected;
};

} // namespace dfa::rt::test

#endif // DFA_TEST_RUNTIME_THREADCOMMUNICATOR_H
