// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads live for one loop: the loops here take milliseconds or more.
#include "support/Parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

void dfa::run::parallelFor(int64_t count, int64_t grain, unsigned threads,
                           const std::function<void(int64_t, int64_t)> &body) {
  grain = std::max<int64_t>(grain, 1);
  int64_t pieces = count / grain + (count % grain != 0);
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<int64_t> next{0};
  auto work = [&]() {
    for (int64_t piece = next++; piece < pieces; piece = next++)
      body(piece * grain, std::min(count, piece * grain + grain));
  };
  std::vector<std::thread> helpers;
  for (int64_t i = 1; i < std::min<int64_t>(threads, pieces); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
}
