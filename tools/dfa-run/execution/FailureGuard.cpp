// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread that asks, and gives the ordinary way out some time.
#include "execution/FailureGuard.h"
#include "Options.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace dfa::run;

constexpr std::chrono::milliseconds askInterval(50);
/// In which an error usually reaches the caller, and everything is released.
constexpr std::chrono::seconds patience(3);

FailureGuard::FailureGuard(dfa_rt_group_t *group, std::string rank)
    : group(group), rank(std::move(rank)), thread([this] { watch(); }) {}

FailureGuard::~FailureGuard() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

void FailureGuard::watch() {
  dfa_rt_failure_t failure = {};
  {
    std::unique_lock<std::mutex> lock(mutex);
    while (!dfa_rt_group_failure(group, &failure))
      if (changed.wait_for(lock, askInterval, [this] { return stopping; }))
        return;
  }
  std::string where = failure.bucket >= 0
                          ? "bucket " + std::to_string(failure.bucket)
                          : "the control exchange";
  std::string text =
      "collective " + std::string(failure.collective) + " of " + where + ": ";
  if (failure.rank >= 0)
    text += "rank " + std::to_string(failure.rank) + " ";
  text += failure.reason;
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (changed.wait_for(lock, patience, [this] { return stopping; }))
      return;
  }
  if (!spoken.load())
    std::fprintf(stderr,
                 "dfa-run: error: rank %s: waiting for the device: %s\n",
                 rank.c_str(), text.c_str());
  std::fflush(stderr);
  std::_Exit(exitDevice);
}
