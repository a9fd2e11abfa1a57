// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generator against the published test vectors of Philox, and the seeded
// values' promises: independence of ranges, orders and threads, distribution.
// An independent implementation is in test/python/test_run_support.py.
#include "support/Seeded.h"
#include "support/Philox.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <set>

using namespace dfa::run;

static SeedStream stream(uint64_t seed, int64_t step, const char *role,
                         const char *name, int64_t rank = -1) {
  SeedStream result;
  result.seed = seed;
  result.step = step;
  result.role = role;
  result.name = name;
  result.rank = rank;
  return result;
}

TEST(Philox, KnownAnswers) {
  // The known-answer vectors that accompany the paper (Random123).
  struct Case {
    uint32_t counter[4], key[2], expected[4];
  };
  const Case cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case &one : cases) {
    PhiloxLanes<1> block;
    for (int i = 0; i < 4; ++i)
      block.word[i][0] = one.counter[i];
    block.generate(one.key[0], one.key[1]);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(block.word[i][0], one.expected[i]);
  }
}

TEST(Seeded, RangesAgreeWithSingleElements) {
  SeededValues values(stream(3, 2, "grad", "conv.weight"), 0.01);
  std::vector<float> single(300);
  for (int64_t i = 0; i < 300; ++i)
    single[i] = values.at(i);
  for (int64_t begin = 0; begin < 150; ++begin) {
    for (int64_t count : {0, 1, 2, 127, 128, 129, 150}) {
      std::vector<float> found(count);
      values.fill(begin, count, found.data());
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(found[i], single[begin + i]);
    }
  }
}

TEST(Seeded, FarIndicesDiffer) {
  // Beyond 32 bits of pairs: no wrap.
  SeededValues values(stream(3, 2, "grad", "w"), 0.01);
  constexpr int64_t far = int64_t(1) << 33;
  float near[64], there[64];
  values.fill(0, 64, near);
  values.fill(far, 64, there);
  EXPECT_NE(std::memcmp(near, there, sizeof(near)), 0);
  EXPECT_EQ(values.at(far + 63), there[63]);
}

TEST(Seeded, OrdersHoldTheSameLogicalValues) {
  SeededValues values(stream(1, 0, "param", "w"), 0.02);
  ElementOrder channelsLast;
  ASSERT_TRUE(
      ElementOrder::create({16, 7, 3, 3}, {0, 2, 3, 1}, channelsLast).ok());
  int64_t elements = channelsLast.elements();
  std::vector<float> expected(elements), memory(elements), found(elements);
  values.fill(0, elements, expected.data());
  // Two shards with an odd cut.
  values.fill(channelsLast, 0, 501, memory.data());
  values.fill(channelsLast, 501, elements - 501, memory.data() + 501);
  channelsLast.toLogical(memory.data(), 0, elements, found.data());
  EXPECT_EQ(found, expected);
  EXPECT_NE(memory, expected);
}

TEST(Seeded, ThreadsAndFormatsDoNotChangeValues) {
  SeededValues values(stream(1, 5, "grad", "w"), 0.01);
  ElementOrder order;
  constexpr int64_t elements = (1 << 19) + 77;
  ASSERT_TRUE(ElementOrder::create({elements}, {}, order).ok());
  std::vector<float> expected(elements), found(elements);
  values.fill(0, elements, expected.data());
  values.fill(order, 0, elements, Storage::F32, found.data(), 3);
  EXPECT_EQ(found, expected);
  for (Storage storage : {Storage::F16, Storage::BF16}) {
    std::vector<uint16_t> wanted(elements), stored(elements);
    encode(storage, expected.data(), elements, wanted.data());
    values.fill(order, 0, elements, storage, stored.data(), 2);
    EXPECT_EQ(stored, wanted);
  }
}

TEST(Seeded, EveryPartOfTheStreamMatters) {
  const SeedStream streams[] = {stream(0, 0, "param", "w"),
                                stream(1, 0, "param", "w"),
                                stream(0, 1, "param", "w"),
                                stream(0, int64_t(1) << 32, "param", "w"),
                                stream(0, 0, "grad", "w"),
                                stream(0, 0, "param", "v"),
                                stream(0, 0, "w", "param"),
                                stream(0, 0, "param", "w", 0),
                                stream(0, 0, "param", "w", 1),
                                stream(uint64_t(1) << 32, 0, "param", "w"),
                                stream(0, 0, "param", "w.bias")};
  std::set<float> seen;
  for (const SeedStream &one : streams)
    seen.insert(SeededValues(one, 1).at(0));
  EXPECT_EQ(seen.size(), std::size(streams));
}

TEST(Seeded, DistributionIsNearlyNormal) {
  constexpr int64_t count = 1 << 20;
  SeededValues values(stream(9, 1, "grad", "w"), 0.01);
  std::vector<float> sample(count);
  values.fill(0, count, sample.data());
  double sum = 0, squares = 0, neighbours = 0;
  int64_t within = 0;
  for (int64_t i = 0; i < count; ++i) {
    double unit = sample[i] / 0.01;
    ASSERT_NE(sample[i], 0.0f);
    ASSERT_LT(std::fabs(unit), 3.47);
    sum += unit;
    squares += unit * unit;
    within += std::fabs(unit) < 1;
    if (i > 0)
      neighbours += unit * (sample[i - 1] / 0.01);
  }
  // Four standard errors of 2^20 samples.
  EXPECT_NEAR(sum / count, 0, 4e-3);
  EXPECT_NEAR(squares / count, 1, 6e-3);
  EXPECT_NEAR(neighbours / count, 0, 4e-3);
  // Irwin-Hall of four has 67.3 % within one deviation, a normal 68.3 %.
  EXPECT_NEAR(static_cast<double>(within) / count, 0.673, 4e-3);
}

TEST(Seeded, NeverZeroInAnyFormat) {
  // The smallest magnitude is one unit of an odd sum.
  float smallest =
      static_cast<float>(gradientDeviation * 1.7320508075688772 / 131072);
  EXPECT_NE(f16FromF32(smallest) & 0x7fff, 0);
  EXPECT_NE(bf16FromF32(smallest) & 0x7fff, 0);
}
