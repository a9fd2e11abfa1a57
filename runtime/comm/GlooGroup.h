// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives of one group of ranks over Gloo's point-to-point buffers.
// Blocking, called on the worker thread; who calls it, what it is called in
// errors, and who is to blame is in GlooCommunicator.cpp.

#ifndef DFA_COMM_GLOOGROUP_H
#define DFA_COMM_GLOOGROUP_H

#include "base/DataType.h"
#include "base/Status.h"
#include "comm/Store.h"

#include <functional>
#include <memory>
#include <string>

namespace dfa::rt {

/// What went wrong inside Gloo.
struct GlooError {
  std::string message;
  bool timedOut = false;
};

class GlooGroup {
public:
  virtual ~GlooGroup() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts a collective; `identity` is equal on all ranks that do the same.
  /// Ranks that do not never exchange a byte, so they time out and are named,
  /// where Gloo would mix up their data or end the process.
  virtual void begin(uint64_t identity) = 0;

  // Each returns false and fills `error` if a peer or the network failed; the
  // group is then of no more use. Counts are elements; see Communicator.h for
  // the legal overlaps.
  virtual bool reduceScatter(const void *send, void *recv, int64_t count,
                             DataType type, ReduceOp op, GlooError &error) = 0;
  virtual bool allReduce(const void *send, void *recv, int64_t count,
                         DataType type, ReduceOp op, GlooError &error) = 0;
  virtual bool allGather(const void *send, void *recv, int64_t bytes,
                         GlooError &error) = 0;
  /// counts[i] bytes from rank i, one behind the other.
  virtual bool allGatherV(const void *send, void *recv,
                          const std::vector<int64_t> &bytes,
                          GlooError &error) = 0;
  virtual bool broadcast(const void *send, void *recv, int64_t bytes, int root,
                         GlooError &error) = 0;
  virtual bool barrier(GlooError &error) = 0;

  /// Makes a call in progress, and all later ones, fail soon. Any thread.
  virtual void abort() = 0;

  /// Connects all ranks of the group; `address` is the numeric local address
  /// to bind to, `store` has a prefix of this group's own. Gives up early when
  /// `cancelled` says so.
  static bool connect(int rank, int size, const std::string &address,
                      Store &store, Milliseconds timeout,
                      const std::function<bool()> &cancelled,
                      std::unique_ptr<GlooGroup> &group, GlooError &error);
};

} // namespace dfa::rt

#endif // DFA_COMM_GLOOGROUP_H
