// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the executor needs of a transport: the collectives of one mesh axis.
// How ranks find each other, and which library moves the bytes, is behind it.

#ifndef DFA_COMM_COMMUNICATOR_H
#define DFA_COMM_COMMUNICATOR_H

#include "base/DataType.h"
#include "base/Device.h"
#include "base/Status.h"

#include <cstdint>

namespace dfa::rt {

/// The ranks along one axis of the mesh, seen from one of them. Every rank
/// calls the same collectives in the same order. Calls are ordered on `stream`
/// and may return before the transfer is done; on a CPU device a transport
/// posts its work with Device::enqueueHost, so that it is captured and replayed
/// like any other command. A failure names rank, collective and bucket: the
/// executor sets `label` before each call.
///
/// Counts are elements. Send and receive buffers may be the same memory in the
/// in-place forms: all_reduce with send == recv; reduce_scatter with
/// recv == send + rank * count; all_gather with send == recv + rank * count.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The transport: "nccl", "gloo", "peer", ...
  virtual const char *name() const = 0;
  /// True if sums are formed in rank order (`order=rank` is legal).
  virtual bool ordersByRank() const = 0;
  /// True if collectives may be recorded into a graph of the device.
  virtual bool capturable() const = 0;
  /// True if the first collective of a kind, type and count sets up what a
  /// recording must not contain: run each once before anything is recorded.
  virtual bool connectsLazily() const { return false; }

  /// `send` holds size() * count elements; element range rank() of the sum
  /// lands in `recv`.
  virtual Status reduceScatter(const void *send, void *recv, int64_t count,
                               DataType type, ReduceOp op, Stream stream) = 0;
  virtual Status allReduce(const void *send, void *recv, int64_t count,
                           DataType type, ReduceOp op, Stream stream) = 0;
  /// `recv` holds size() * count elements, in rank order.
  virtual Status allGather(const void *send, void *recv, int64_t count,
                           DataType type, Stream stream) = 0;
  virtual Status broadcast(const void *send, void *recv, int64_t count,
                           DataType type, int root, Stream stream) = 0;
  virtual Status barrier(Stream stream) = 0;

  /// Memory in which collectives of this axis are cheapest: all ranks call it
  /// with the same size, in the same order. Null if no memory is special. It
  /// belongs to the transport, which keeps it until it is closed.
  virtual Status allocateShared(size_t bytes, void **memory) {
    (void)bytes;
    *memory = nullptr;
    return Status();
  }

  /// Ends what a recording noted of its collectives so far; after the last.
  virtual Status settle(Stream stream) {
    (void)stream;
    return Status();
  }

  /// Says what the next collectives are for, in error messages and traces.
  /// `collective` is the program's word and outlives the call; `bucket` is -1
  /// for the control exchange.
  virtual void label(const char *collective, int64_t bucket) {
    (void)collective;
    (void)bucket;
  }
};

} // namespace dfa::rt

#endif // DFA_COMM_COMMUNICATOR_H
