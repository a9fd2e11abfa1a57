// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an optimizer owns. Private to Optimizer.cpp; everybody else includes
// Optimizer.h.

#ifndef DFA_PROGRAM_OPTIMIZERCORE_H
#define DFA_PROGRAM_OPTIMIZERCORE_H

#include "program/Executor.h"
#include "program/Optimizer.h"
#include "program/State.h"

namespace dfa::rt {

// What recordings of others must keep alive.
struct Optimizer::Core {
  Core(OptimizerOptions given, int64_t ranks)
      : options(std::move(given)), state(options.device, options.program,
                                         std::move(options.tables), ranks),
        executor(options.program, state, options.axes) {}

  Status createStreams();
  Status order(Event event, Stream from, Stream to);
  Status walk(Frame frame);
  Status walkBucket(Frame frame);
  Status joinBuckets(Stream stream, uint64_t capture);
  Status finishBuckets();
  Status joinBranch(const Frame &frame, Status status);
  Status record(int64_t entry);
  Status replay(int64_t entry, Stream stream);
  Status begin(Stream stream, uint64_t &capture);
  Status ended(Stream stream);
  Status enterCapture(const std::shared_ptr<Core> &self, Stream stream,
                      uint64_t capture);
  Status uploadAside();
  Status checkArray(int64_t classIndex, int64_t array, int64_t segment) const;
  Device &device() { return *options.device; }

  OptimizerOptions options;
  State state;
  // Handles are freed before the state, the executor's events before them.
  OwnedModule module;
  OwnedStream commStream;
  OwnedStream tailStream; // `compute` of buckets that are issued on their own
  OwnedStream captureStream;
  OwnedStream sideStream;
  OwnedStream branchStream; // `side` of recordings
  OwnedEvent fork;
  OwnedEvent joined;
  OwnedEvent captureFork;
  OwnedEvent captureJoined;
  OwnedEvent branchJoined;
  OwnedEvent lastWork;
  Executor executor;
  std::vector<OwnedGraph> graphs; // one an entry, if replaying

  Stream lastStream;
  bool worked = false;         // lastWork was recorded
  bool bucketsPending = false; // issued on their own, and no walk joined them
  uint64_t capturePending = 0; // the recording that has such buckets
  uint64_t retainedBy = 0;     // the last capture that shares this core
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_OPTIMIZERCORE_H
