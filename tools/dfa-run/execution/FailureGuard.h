// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ends a rank whose peer failed where nothing else can: a collective that waits
// on the device for a dead peer keeps the host in the driver, in a wait or in
// the release of memory, even after its abort.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_FAILUREGUARD_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_FAILUREGUARD_H

#include "dfa-rt/dfa_rt.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dfa::run {

class FailureGuard {
public:
  /// Watches the group until this object goes. If it fails and the object is
  /// still there some seconds later, the process says so and ends with
  /// exitDevice. `rank` is this one.
  FailureGuard(dfa_rt_group_t *group, std::string rank);
  /// Stops watching.
  ~FailureGuard();
  FailureGuard(const FailureGuard &) = delete;

  /// Somebody else says what failed.
  void leaveMessage() { spoken.store(true); }

private:
  void watch();

  dfa_rt_group_t *group;
  const std::string rank;
  std::atomic<bool> spoken{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::thread thread; // last
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_FAILUREGUARD_H
