// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The local half of a reduction: conversions against a search among all values
// of the format, sums against plain loops.

#include "comm/LocalReduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace dfa::rt;

namespace {

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// A half's value from its fields.
double halfValue(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                                   : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// Nearest finite value of a sorted table, ties to the even code; beyond the
/// middle between the largest and its successor, infinity.
uint16_t nearest(const std::map<double, uint16_t> &table, double magnitude,
                 double overflow, uint16_t infinity) {
  if (magnitude >= overflow)
    return infinity;
  auto above = table.lower_bound(magnitude);
  if (above == table.end())
    return std::prev(above)->second;
  if (above->first == magnitude || above == table.begin())
    return above->second;
  auto below = std::prev(above);
  double up = above->first - magnitude, down = magnitude - below->first;
  if (up != down)
    return up < down ? above->second : below->second;
  return above->second % 2 == 0 ? above->second : below->second;
}

TEST(LocalReduce, DecodesEveryHalf) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = halfToFloat(uint16_t(bits));
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else if ((bits & 0x7fff) == 0x7c00) {
      EXPECT_EQ(value, bits & 0x8000 ? -INFINITY : INFINITY);
    } else {
      EXPECT_EQ(double(value), halfValue(uint16_t(bits))) << bits;
      EXPECT_EQ(std::signbit(value), bool(bits & 0x8000)) << bits;
      EXPECT_EQ(floatToHalf(value), bits);
    }
  }
}

TEST(LocalReduce, RoundsToTheNearestHalfAndBfloat) {
  std::map<double, uint16_t> halves, bfloats;
  for (uint16_t bits = 0; bits < 0x7c00; ++bits)
    halves[halfValue(bits)] = bits;
  for (uint16_t bits = 0; bits < 0x7f80; ++bits)
    bfloats[bfloatToFloat(bits)] = bits;
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    uint32_t word = random();
    if (i % 2) // exponents around the range of halves, and exact ties
      word = (word & 0x807fffff) | (100 + random() % 45) << 23;
    if (i % 4 == 1)
      word &= ~0xfffu;
    float value = floatOf(word);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(value))));
      EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(value))));
      continue;
    }
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    double magnitude = std::fabs(double(value));
    EXPECT_EQ(floatToHalf(value),
              sign | nearest(halves, magnitude, 65520.0, 0x7c00))
        << value;
    double overflow = std::ldexp(511.0, 119); // (255 + 1/2) * 2^120
    EXPECT_EQ(floatToBfloat(value),
              sign | nearest(bfloats, magnitude, overflow, 0x7f80))
        << value;
  }
}

TEST(LocalReduce, SumsInTheOrderGiven) {
  // In this order: (1e8 + 1) rounds to 1e8, then - 1e8 gives 0; any other
  // order gives 1.
  float a = 1e8f, b = 1.0f, c = -1e8f, result = 7;
  reduceInOrder({&a, &b, &c}, &result, 1, DataType::F32, ReduceOp::Sum);
  EXPECT_EQ(result, 0.0f);
  reduceInOrder({&a, &c, &b}, &result, 1, DataType::F32, ReduceOp::Sum);
  EXPECT_EQ(result, 1.0f);
}

TEST(LocalReduce, SumsLowPrecisionInFloatAndRoundsOnce) {
  // 256 + 1 + 1: in bf16 each addition of 1 would be lost, in f32 none is.
  uint16_t big = floatToBfloat(256), one = floatToBfloat(1), result = 0;
  reduceInOrder({&big, &one, &one}, &result, 1, DataType::BF16, ReduceOp::Sum);
  EXPECT_EQ(bfloatToFloat(result), 258.0f);
  big = floatToHalf(2048);
  one = floatToHalf(1);
  reduceInOrder({&big, &one, &one}, &result, 1, DataType::F16, ReduceOp::Sum);
  EXPECT_EQ(halfToFloat(result), 2050.0f);
}

TEST(LocalReduce, KeepsSignedZeroAndSubnormals) {
  float negative = -0.0f, result = 1;
  reduceInOrder({&negative}, &result, 1, DataType::F32, ReduceOp::Sum);
  EXPECT_TRUE(std::signbit(result));
  float tiny = floatOf(1);
  reduceInOrder({&tiny, &tiny}, &result, 1, DataType::F32, ReduceOp::Sum);
  EXPECT_EQ(bitsOf(result), 2u);
}

TEST(LocalReduce, WrapsIntegersAndJoinsBits) {
  int8_t x = 100, y = 100, sum = 0;
  reduceInOrder({&x, &y}, &sum, 1, DataType::I8, ReduceOp::Sum);
  EXPECT_EQ(sum, int8_t(-56));
  int64_t big = INT64_MAX, one = 1, wrapped = 0;
  reduceInOrder({&big, &one}, &wrapped, 1, DataType::I64, ReduceOp::Sum);
  EXPECT_EQ(wrapped, INT64_MIN);
  uint32_t p = 0x80000001u, q = 0x10u, bits = 0;
  reduceInOrder({&p, &q}, &bits, 1, DataType::U32, ReduceOp::Or);
  EXPECT_EQ(bits, 0x80000011u);
  reduceInOrder({&p, &q}, &bits, 1, DataType::U32, ReduceOp::Max);
  EXPECT_EQ(bits, 0x80000001u);
  int32_t m = -5, n = -7, largest = 0;
  reduceInOrder({&m, &n}, &largest, 1, DataType::I32, ReduceOp::Max);
  EXPECT_EQ(largest, -5);
}

TEST(LocalReduce, MaximumKeepsNan) {
  float values[] = {1.0f, NAN, 3.0f}, result = 0;
  reduceInOrder({&values[0], &values[1], &values[2]}, &result, 1, DataType::F32,
                ReduceOp::Max);
  EXPECT_TRUE(std::isnan(result));
  reduceInOrder({&values[1], &values[2]}, &result, 1, DataType::F32,
                ReduceOp::Max);
  EXPECT_TRUE(std::isnan(result));
  reduceInOrder({&values[0], &values[2]}, &result, 1, DataType::F32,
                ReduceOp::Max);
  EXPECT_EQ(result, 3.0f);
}

TEST(LocalReduce, CrossesBlocksAndWorksInPlace) {
  const int64_t count = 5003; // several blocks and a tail
  std::vector<double> a(count), b(count), expected(count);
  for (int64_t i = 0; i < count; ++i) {
    a[size_t(i)] = double(i);
    b[size_t(i)] = 0.5 * double(i);
    expected[size_t(i)] = 1.5 * double(i);
  }
  reduceInOrder({a.data(), b.data()}, b.data(), count, DataType::F64,
                ReduceOp::Sum);
  EXPECT_EQ(b, expected);
}

TEST(LocalReduce, RefusesWhatHasNoMeaning) {
  EXPECT_TRUE(checkReducible(DataType::U32, ReduceOp::Or).ok());
  EXPECT_EQ(checkReducible(DataType::F32, ReduceOp::Or).message(),
            "reduction 'or' expects an integer type, found f32");
  EXPECT_FALSE(checkReducible(DataType::F8E4M3, ReduceOp::Sum).ok());
  EXPECT_FALSE(checkReducible(DataType::Remainder, ReduceOp::Sum).ok());
}

} // namespace
