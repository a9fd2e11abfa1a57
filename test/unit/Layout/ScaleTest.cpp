// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The largest plan we promise: 1e12 parameters in 1e5 tensors on 10,240 ranks.
// The limits are those of the promise; the usual figures are far below.
#include "layout/Dump.h"

#include "Build.h"

#include <chrono>
#include <fstream>

using namespace dfa::layout;

/// Peak resident memory of this process in KiB, or 0 where /proc has no such
/// line.
static int64_t peakKiB() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t value = 0;
    if (word == "VmHWM:" && status >> value)
      return value;
  }
  return 0;
}

TEST(Scale, TrillionParametersOnTenThousandRanks) {
  int64_t before = peakKiB();
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();

  PlanInput input;
  input.mesh = {10, 1024};
  input.classes = {mixedClass()};
  for (int i = 0; i < 100000; ++i) {
    // 1e7 elements on average, none a multiple of the alignment.
    ParamSpec spec =
        param("layers." + std::to_string(i) + ".weight", {3163, 3163}, {1, 0});
    spec.shape[0] += i % 2 == 0 ? i % 97 : -(i % 97);
    input.params.push_back(std::move(spec));
  }
  Plan plan = planOf(std::move(input));
  EXPECT_GT(plan.elements(), 999000000000);
  RankTables tables = tablesOf(plan, 9728);
  uint64_t hash = planHash(plan);

  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  EXPECT_NE(hash, 0u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(seconds, 5.0);
  EXPECT_LE(peakKiB() - before, 256 * 1024);
#endif
  RecordProperty("seconds", std::to_string(seconds));
  RecordProperty("peak_kib", std::to_string(peakKiB() - before));

  // A shard of the last replica: about 1/1024 of the model.
  int64_t owned = 0;
  for (const Segment &segment : tables.segments)
    owned += segment.elements;
  EXPECT_LE(owned, plan.elements() / 1024 + plan.elements() / 10240);
  EXPECT_GE(owned, plan.elements() / 1024 - plan.elements() / 10240);
}

TEST(Scale, EveryRankAnAxisOfItsOwn) {
  PlanInput input;
  input.mesh = {1, 10240};
  input.classes = {mixedClass()};
  for (int i = 0; i < 100000; ++i)
    input.params.push_back(param("p" + std::to_string(i), {10000000}));
  Plan plan = planOf(std::move(input));
  EXPECT_EQ(plan.elements(), 1000000000000);
  int64_t owned = 0;
  for (const Segment &segment : tablesOf(plan, 5000).segments)
    owned += segment.elements;
  EXPECT_GE(owned, 90000000);
  EXPECT_LE(owned, 110000000);
}
