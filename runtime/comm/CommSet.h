// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The communicators of one optimizer (or tool run) on one rank: groups from the
// mesh, a transport under them, a watchdog beside them. The executor asks it
// for one Communicator an axis.

#ifndef DFA_COMM_COMMSET_H
#define DFA_COMM_COMMSET_H

#include "comm/Bootstrap.h"
#include "comm/Communicator.h"
#include "comm/MeshGroups.h"
#include "comm/SequenceLog.h"
#include "comm/Store.h"
#include "comm/Watchdog.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dfa::rt {

enum class TransportKind { Gloo, Nccl };

struct CommSetOptions {
  Launch launch;              ///< who this process is
  std::vector<MeshAxis> axes; ///< slowest first
  std::vector<int> ranks;     ///< world ranks of the mesh; empty: all
  TransportKind transport = TransportKind::Gloo;
  Milliseconds timeout{300000}; ///< see timeoutFromEnvironment
  /// Tells apart several sets of one run; equal on all ranks.
  int instance = 0;
  /// Where collectives are queued; null: they run at once on the caller.
  Device *device = nullptr;
  Environment env = processEnvironment();
  /// Makes the device current on a thread of ours, in relaxed capture mode
  /// (NCCL); may be empty. A thread may call it after the set is gone, so it
  /// holds what it needs.
  std::function<Status()> enterDevice;
};

class CommSet {
public:
  virtual ~CommSet() = default;

  /// Connects all ranks of the mesh; each of them calls it. `store` must be the
  /// same map on all ranks.
  static Status create(const CommSetOptions &options,
                       std::shared_ptr<Store> store,
                       std::unique_ptr<CommSet> &set);

  /// The communicator along an axis; null if there is no such axis.
  virtual Communicator *axis(const std::string &name) = 0;
  /// The communicator of all ranks of the mesh, in mesh order.
  virtual Communicator *mesh() = 0;
  /// The group along an axis; null if there is no such axis.
  virtual const AxisGroup *group(const std::string &name) const = 0;

  /// Compares this rank's plan with the first rank's, collectively. If any rank
  /// differs, all of them fail with its number and the first differing line.
  virtual Status agreePlan(const std::string &plan) = 0;

  /// Success, or the sticky failure found by the watchdog.
  virtual Status failure() = 0;
  /// As fields; false if there is none.
  virtual bool failure(CollectiveFailure &found) = 0;
  /// Tells all ranks that this one cannot go on.
  virtual void reportLocalFailure(const std::string &reason) = 0;

  /// Releases the transport. Not collective. Fails while recordings that use a
  /// communicator live.
  virtual Status close() = 0;

  virtual SequenceLog &log() = 0;
  /// Lines for `dfa-run --check`: transport, interface, library, groups.
  virtual std::string describe() const = 0;
};

} // namespace dfa::rt

#endif // DFA_COMM_COMMSET_H
