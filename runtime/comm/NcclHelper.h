// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL calls that may never return, on threads that nobody joins. Internal to
// the NCCL transport.

#ifndef DFA_COMM_NCCLHELPER_H
#define DFA_COMM_NCCLHELPER_H

#include "comm/NcclLibrary.h"
#include "comm/Transport.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace dfa::rt {

/// What a call on a helper thread came to.
struct HelperOutcome {
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  bool abandoned = false;
  nccl::Result result = 0;
  nccl::Comm made = nullptr;
  Status device;
};

/// Runs `call` on a detached thread and waits for it, at most until the
/// timeout or a failure that the watchdog finds. False if it did not return;
/// then a communicator that it makes later is aborted.
bool runOnHelper(const CommContext &context,
                 const std::shared_ptr<const NcclLibrary> &library,
                 std::function<nccl::Result(nccl::Comm *)> call,
                 std::shared_ptr<HelperOutcome> &outcome);

} // namespace dfa::rt

#endif // DFA_COMM_NCCLHELPER_H
