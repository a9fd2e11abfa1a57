// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The helper threads. They own all they touch: the one who waits may be gone
// by the time the call returns.

#include "comm/NcclHelper.h"

#include <chrono>
#include <thread>

namespace dfa::rt {

using Clock = std::chrono::steady_clock;

bool runOnHelper(const CommContext &context,
                 const std::shared_ptr<const NcclLibrary> &library,
                 std::function<nccl::Result(nccl::Comm *)> call,
                 std::shared_ptr<HelperOutcome> &outcome) {
  outcome = std::make_shared<HelperOutcome>();
  std::thread([outcome, library, call = std::move(call),
               enter = context.enterDevice] {
    Status device = enter ? enter() : Status();
    nccl::Comm made = nullptr;
    nccl::Result result = device.ok() ? call(&made) : 0;
    std::unique_lock<std::mutex> lock(outcome->mutex);
    outcome->device = device;
    outcome->result = result;
    outcome->made = made;
    outcome->done = true;
    bool abandoned = outcome->abandoned;
    lock.unlock();
    outcome->finished.notify_all();
    // Nobody waits any more: what came too late must not linger.
    if (abandoned && made)
      library->commAbort(made);
  }).detach();

  Clock::time_point deadline = Clock::now() + context.timeout;
  std::unique_lock<std::mutex> lock(outcome->mutex);
  while (!outcome->done) {
    if (Clock::now() >= deadline ||
        (context.watchdog && !context.watchdog->failure().ok())) {
      outcome->abandoned = true;
      return false;
    }
    outcome->finished.wait_for(lock, Milliseconds(20));
  }
  return true;
}

} // namespace dfa::rt
