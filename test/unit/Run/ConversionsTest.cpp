// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions against references in double arithmetic: all 16-bit patterns,
// and for f32 all patterns at which a result can change.
#include "support/Conversions.h"

#include "gtest/gtest.h"

#include <cmath>
#include <vector>

using namespace dfa::run;

/// The value of a 16-bit float with this many significand bits.
static double valueOf(uint32_t bits, int significandBits) {
  int exponentBits = 15 - significandBits;
  int bias = (1 << (exponentBits - 1)) - 1;
  int exponent =
      static_cast<int>(bits >> significandBits) & ((1 << exponentBits) - 1);
  uint32_t significand = bits & ((1u << significandBits) - 1);
  double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponentBits) - 1)
    return significand != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(significand, 1 - bias - significandBits);
  return sign * std::ldexp(significand + (1u << significandBits),
                           exponent - bias - significandBits);
}

/// Checks f32 values around the boundary between each pair of neighbours: just
/// below, on and just above the middle, where ties go to the even pattern.
template <typename Convert>
static void checkRounding(int significandBits, uint32_t infinity,
                          Convert convert) {
  for (uint32_t sign : {0u, 0x8000u}) {
    for (uint32_t low = 0; low < infinity; ++low) {
      double below = valueOf(low, significandBits);
      double above = valueOf(low + 1, significandBits);
      if (low + 1 == infinity) // as if exponents went on
        above = 2 * below - valueOf(low - 1, significandBits);
      float middle = static_cast<float>((below + above) / 2);
      ASSERT_EQ(middle, (below + above) / 2);
      uint32_t even = low & 1 ? low + 1 : low;
      float factor = sign ? -1.0f : 1.0f;
      ASSERT_EQ(convert(factor * middle), sign | even) << low;
      ASSERT_EQ(convert(factor * std::nextafterf(middle, 0.0f)), sign | low);
      ASSERT_EQ(convert(factor * std::nextafterf(middle, INFINITY)),
                sign | (low + 1));
      ASSERT_EQ(convert(factor * static_cast<float>(below)), sign | low);
    }
    ASSERT_EQ(convert(sign ? -INFINITY : INFINITY), sign | infinity);
    ASSERT_EQ(convert(sign ? -3.4028235e38f : 3.4028235e38f), sign | infinity);
  }
}

TEST(Conversions, Bf16RoundsToNearestEven) {
  checkRounding(7, 0x7f80, bf16FromF32);
}

TEST(Conversions, F16RoundsToNearestEven) {
  checkRounding(10, 0x7c00, f16FromF32);
}

TEST(Conversions, NarrowToWideIsExact) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (bool half : {false, true}) {
      double expected = valueOf(bits, half ? 10 : 7);
      uint16_t stored = static_cast<uint16_t>(bits);
      float found = half ? f32FromF16(stored) : f32FromBf16(stored);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(found));
        continue;
      }
      ASSERT_EQ(found, expected);
      ASSERT_EQ(std::signbit(found), (bits & 0x8000) != 0);
      ASSERT_EQ(half ? f16FromF32(found) : bf16FromF32(found), stored);
    }
  }
}

TEST(Conversions, NansStayNans) {
  for (uint32_t sign : {0u, 0x80000000u}) {
    for (uint32_t payload : {1u, 0x1fffu, 0x2000u, 0x7fffu, 0x8000u, 0xffffu,
                             0x10000u, 0x400000u, 0x7fffffu}) {
      float value = floatOf(sign | 0x7f800000 | payload);
      EXPECT_EQ(bf16FromF32(value), sign >> 16 | 0x7fc0);
      EXPECT_EQ(f16FromF32(value), sign >> 16 | 0x7e00);
    }
  }
}

TEST(Conversions, RemainderOfCaseTies) {
  // 1.00390625 lies half way between bf16 0x3f80 and 0x3f81.
  float master = floatOf(0x3f808000);
  RemainderParts parts = splitRemainder(master);
  EXPECT_EQ(parts.param, 0x3f81);
  EXPECT_EQ(parts.remainder, 0x8000);
  EXPECT_EQ(joinRemainder(parts), master);
  // A cast rounds to the even neighbour; joining that is off by 2^-7 + 2^-9.
  EXPECT_EQ(bf16FromF32(master), 0x3f80);
  EXPECT_EQ(joinRemainder({0x3f80, 0x8000}), 0.998046875f);
  // The largest finite masters have an infinite parameter.
  EXPECT_EQ(splitRemainder(floatOf(0x7f7f8000)).param, 0x7f80);
}

TEST(Conversions, RemainderIsExactForEveryPattern) {
  // All low halves of the high halves of the case and of others at which
  // carries go far; then all high halves for low halves around the tie.
  std::vector<uint32_t> patterns;
  for (uint32_t high : {0x0000u, 0x007fu, 0x3f7fu, 0x3f80u, 0x3f81u, 0x7f7fu,
                        0x7f80u, 0x7fffu, 0x8000u, 0xbf80u, 0xff7fu, 0xffffu})
    for (uint32_t low = 0; low < 0x10000; ++low)
      patterns.push_back(high << 16 | low);
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      patterns.push_back(high << 16 | low);
  for (uint32_t bits : patterns) {
    RemainderParts parts = splitRemainder(floatOf(bits));
    ASSERT_EQ(bitsOf(joinRemainder(parts)), bits);
    ASSERT_EQ(parts.remainder, bits & 0xffff);
    float value = floatOf(bits);
    if (std::isnan(value))
      continue;
    // Nearest, ties away: round the magnitude half up.
    uint32_t magnitude = (bits & 0x7fffffff) + 0x8000;
    ASSERT_EQ(parts.param, (magnitude >> 16) | (bits >> 16 & 0x8000));
  }
}

TEST(Conversions, ArraysAndComparison) {
  const float values[3] = {1.0f, -65520.0f, NAN};
  uint16_t stored[3];
  float back[3];
  encode(Storage::F16, values, 3, stored);
  EXPECT_EQ(stored[0], 0x3c00);
  EXPECT_EQ(stored[1], 0xfc00);
  decode(Storage::F16, stored, 3, back);
  EXPECT_EQ(back[0], 1.0f);
  uint16_t params[3], remainders[3];
  splitRemainders(values, 3, params, remainders);
  joinRemainders(params, remainders, 3, back);
  EXPECT_EQ(back[1], -65520.0f);
  EXPECT_TRUE(sameStored(Storage::F16, 0x7e00, 0xfc01));
  EXPECT_FALSE(sameStored(Storage::F16, 0x7c00, 0x7c01));
  EXPECT_FALSE(sameStored(Storage::F16, 0, 0x8000));
  EXPECT_TRUE(sameStored(Storage::BF16, 0x7fc0, 0xffff));
  EXPECT_FALSE(sameStored(Storage::BF16, 0x7f80, 0x7fc0));
  EXPECT_TRUE(sameStored(Storage::F32, 0x7fc00000, 0xff800001));
}
