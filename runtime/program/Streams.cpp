// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The streams of a walk: how they leave the user's stream and join it again.
// What is issued to them is Executor's business.

#include "program/OptimizerCore.h"

namespace dfa::rt {

Status Optimizer::Core::createStreams() {
  DFA_RT_TRY(createUrgentStream(device(), commStream));
  return createStream(device(), tailStream);
}

// Makes `to` wait for everything on `from`.
Status Optimizer::Core::order(Event event, Stream from, Stream to) {
  DFA_RT_TRY(device().record(event, from));
  return device().wait(to, event);
}

// Issues an entry: forks the communication stream off, and joins it again.
Status Optimizer::Core::walk(Frame frame) {
  DFA_RT_TRY(joinBuckets(frame.compute, frame.capture));
  frame.comm = frame.compute;
  frame.side = frame.compute;
  if (frame.capture && branchStream)
    frame.side = branchStream.get();
  if (!executor.distributed())
    return joinBranch(frame, executor.run(frame));
  frame.comm = commStream.get();
  Event forked = frame.capture ? captureFork.get() : fork.get();
  DFA_RT_TRY(order(forked, frame.compute, frame.comm));
  Status status = joinBranch(frame, executor.run(frame));
  if (status.ok() && frame.capture)
    status = executor.settle(frame.comm);
  // Also after a failure: a capture that is left unjoined cannot be ended.
  Event done = frame.capture ? captureJoined.get() : joined.get();
  Status ended = order(done, frame.comm, frame.compute);
  return status.ok() ? ended : status;
}

// Issues an entry for one bucket. What the program runs behind a collective
// gets a stream of ours, so the one that fills the next buckets waits for
// nothing; the next walk joins both.
Status Optimizer::Core::walkBucket(Frame frame) {
  frame.comm = frame.side = frame.compute;
  if (!executor.distributed())
    return executor.run(frame);
  Stream user = frame.compute;
  Event forked = frame.capture ? captureFork.get() : fork.get();
  DFA_RT_TRY(device().record(forked, user));
  frame.comm = commStream.get();
  frame.compute = frame.side = tailStream.get();
  for (Stream stream : {frame.comm, frame.compute})
    DFA_RT_TRY(device().wait(stream, forked));
  if (frame.capture)
    capturePending = frame.capture;
  else
    bucketsPending = true;
  Status status = executor.run(frame);
  if (!status.ok() && frame.capture)
    (void)joinBuckets(user, frame.capture);
  return status;
}

// Orders `stream` behind the buckets that were issued on their own.
Status Optimizer::Core::joinBuckets(Stream stream, uint64_t capture) {
  if (capture ? capturePending != capture : !bucketsPending)
    return Status();
  if (capture)
    capturePending = 0;
  else
    bucketsPending = false;
  Event done = capture ? captureJoined.get() : joined.get();
  DFA_RT_TRY(order(done, commStream.get(), stream));
  return order(done, tailStream.get(), stream);
}

// Blocks the host until those buckets are done.
Status Optimizer::Core::finishBuckets() {
  if (!bucketsPending)
    return Status();
  bucketsPending = false;
  DFA_RT_TRY(device().synchronize(commStream.get()));
  return device().synchronize(tailStream.get());
}

// The program joins `side` itself, if it gets that far: a capture that is left
// unjoined cannot be ended.
Status Optimizer::Core::joinBranch(const Frame &frame, Status status) {
  uint64_t capture = 0;
  if (status.ok() || frame.side.handle == frame.compute.handle ||
      !device().captureId(frame.side, capture).ok() || !capture)
    return status;
  if (device().record(branchJoined.get(), frame.side).ok())
    (void)device().wait(frame.compute, branchJoined.get());
  return status;
}

} // namespace dfa::rt
