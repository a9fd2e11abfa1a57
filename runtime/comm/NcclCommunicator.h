// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives of one axis over NCCL. Connecting, aborting and closing are
// NcclTransport's business.

#ifndef DFA_COMM_NCCLCOMMUNICATOR_H
#define DFA_COMM_NCCLCOMMUNICATOR_H

#include "comm/NcclLibrary.h"
#include "comm/NcclMemory.h"
#include "comm/Transport.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace dfa::rt {

/// What a failed call of NCCL means.
Status ncclError(const NcclLibrary &library, const char *call,
                 nccl::Result result);

/// Counts the recordings that use a transport's communicators.
using NcclGraphCount = std::atomic<int64_t>;

/// Shared by communicators, transport and helper threads.
struct NcclShared {
  CommContext context;
  std::shared_ptr<const NcclLibrary> library;
  std::shared_ptr<NcclGraphCount> graphs = std::make_shared<NcclGraphCount>(0);
  /// One order of launches. A launch can block (NCCL connects lazily), so
  /// abort() waits for it only for a while.
  std::mutex launching;
  std::mutex mutex; // guards the next four
  std::condition_variable changed;
  std::vector<nccl::Comm> comms;
  bool aborted = false;  // or closed
  bool aborting = false; // a thread of ours is inside ncclCommAbort
  // The last recording seen, and its id in the sequence log.
  uint64_t capture = 0;
  uint32_t recording = 0;
  uint64_t unsettled = 0; // its last collective, until the end is written
  NcclChoices choices;
  NcclMemory memory;
};

/// The collectives of one axis. `token` is device memory of one word, for
/// barriers.
std::unique_ptr<Communicator>
makeNcclCommunicator(std::shared_ptr<NcclShared> shared, nccl::Comm comm,
                     AxisGroup members, void *token);

} // namespace dfa::rt

#endif // DFA_COMM_NCCLCOMMUNICATOR_H
