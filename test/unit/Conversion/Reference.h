// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What dfa-rt/abi.h promises, written plainly: the fixed trees and AdamW.

#ifndef DFA_TEST_UNIT_CONVERSION_REFERENCE_H
#define DFA_TEST_UNIT_CONVERSION_REFERENCE_H

#include "dfa-rt/abi.h"
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace dfa_test {

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float fromBf16(uint16_t bits) {
  return floatOf(static_cast<uint32_t>(bits) << 16);
}
/// To nearest even; subnormals are kept.
inline uint16_t toBf16(float value) {
  uint32_t bits = bitsOf(value);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline double addUp(double a, double b) { return a + b; }
inline double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return a > b ? a : b;
}

/// A matrix of `columns` columns: columns from top to bottom, then adjacent
/// pairs. An empty place is 0.
template <typename Combine>
double combineMatrix(const std::vector<double> &values, size_t columns,
                     Combine combine) {
  std::vector<double> sums(columns, 0.0);
  for (size_t i = 0; i < values.size(); ++i)
    sums[i % columns] = combine(sums[i % columns], values[i]);
  while (sums.size() > 1) {
    std::vector<double> next;
    for (size_t i = 0; i < sums.size(); i += 2)
      next.push_back(combine(sums[i], sums[i + 1]));
    sums = next;
  }
  return sums[0];
}

struct AdamValues {
  float p, m, v;
};

inline AdamValues adamw(float raw, AdamValues old, float factor,
                        const float *d) {
  float g = raw * factor;
  float m1 = std::fma(d[0], g - old.m, old.m);
  float v1 = std::fma(d[1], std::fma(g, g, -old.v), old.v);
  float denominator = std::fma(std::sqrt(v1), d[3], d[4]);
  float ratio = m1 / denominator;
  float change = std::fma(d[2], ratio, d[5] * old.p);
  return {old.p - change, m1, v1};
}

/// Values of all magnitudes, subnormals included.
inline float anyFloat(std::mt19937 &random) {
  float scale = std::ldexp(1.0f, static_cast<int>(random() % 60) - 50);
  if (random() % 16 == 0)
    scale = std::ldexp(1.0f, -130);
  float value = std::uniform_real_distribution<float>(-1, 1)(random);
  return value * scale;
}

} // namespace dfa_test

#endif // DFA_TEST_UNIT_CONVERSION_REFERENCE_H
