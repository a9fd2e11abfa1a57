// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the transports (Gloo, NCCL) share: the interface that a CommSet drives,
// and the context it lends them. Internal to runtime/comm.

#ifndef DFA_COMM_TRANSPORT_H
#define DFA_COMM_TRANSPORT_H

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

/// Lent to a transport; outlives it.
struct CommContext {
  Launch launch;
  Environment env;
  Milliseconds timeout{300000};
  std::vector<int> ranks; ///< of the mesh, world numbers
  Device *device = nullptr;
  Store *store = nullptr; ///< keys of this run and instance
  SequenceLog *log = nullptr;
  Watchdog *watchdog = nullptr;
  /// Makes the device current on the calling thread; may be empty.
  std::function<Status()> enterDevice;
  /// Writes a sequence word in stream order; empty if the host writes them.
  std::function<Status(std::atomic<uint64_t> *word, uint64_t value,
                       Stream stream)>
      writeWord;
  /// Writes both words, `ended` first; empty with `writeWord`.
  std::function<Status(SequenceWords *words, uint64_t begun, uint64_t ended,
                       Stream stream)>
      writeWords;
};

class Transport {
public:
  virtual ~Transport() = default;

  /// Makes one communicator for each group, in order. All ranks call it.
  virtual Status connect(const std::vector<AxisGroup> &groups,
                         std::vector<std::unique_ptr<Communicator>> &made) = 0;
  /// Makes everything in flight fail soon. From the watchdog's thread.
  virtual void abort() = 0;
  /// Waits a while for an abort to end. False if it goes on: then memory that
  /// transfers use must stay.
  virtual bool idle() { return true; }
  /// Releases what close() must release while peers still live.
  virtual Status close() = 0;
  /// One line for `dfa-run --check`.
  virtual std::string describe() const = 0;
};

std::unique_ptr<Transport> makeGlooTransport(const CommContext &context);
std::unique_ptr<Transport> makeNcclTransport(const CommContext &context);

/// Waits for a key as part of collective `number`: a failure that the watchdog
/// finds meanwhile, or the timeout, ends it with the error that names a rank.
Status waitForKey(const CommContext &context, uint64_t number,
                  const std::string &key, std::string &value);

} // namespace dfa::rt

#endif // DFA_COMM_TRANSPORT_H
