// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters and gradients from a seed: each value is a function of what it
// belongs to and of its logical index alone, so that any number of ranks and
// any layout gives the same ones.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_SEEDED_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_SEEDED_H

#include "support/Conversions.h"
#include "support/ElementOrder.h"

#include <cstdint>
#include <string>

namespace dfa::run {

/// What a sequence of values belongs to.
struct SeedStream {
  uint64_t seed = 0;
  /// Step of a gradient, from 1; 0 for what exists before the first step.
  int64_t step = 0;
  /// "param", "grad", ...
  std::string role;
  /// The parameter's name.
  std::string name;
  /// For distinct gradients the rank; -1: the same values on all ranks.
  int64_t rank = -1;
};

/// Standard deviations that make a plausible step.
constexpr double parameterDeviation = 0.02;
constexpr double gradientDeviation = 0.01;

/// The values of one stream: nearly normal (a sum of four uniform 16-bit
/// integers, so within 3.47 deviations) and never zero.
///
/// The words of Philox4x32-10 for counter (index / 2, step) make two values:
/// words 0 and 1 that of the even index, words 2 and 3 that of the odd one.
/// With s the sum of their four halves the value is
/// (2 s - 262139) * f32(deviation * sqrt(3) / 131072), rounded once. The key
/// is a hash of seed, role, name and rank (see Seeded.cpp).
class SeededValues {
public:
  SeededValues(const SeedStream &stream, double deviation);

  /// The value of one logical index.
  float at(int64_t index) const;

  /// The values of logical indices [begin, begin + count).
  void fill(int64_t begin, int64_t count, float *target) const;

  /// The values of memory positions [begin, begin + count) of an order.
  void fill(const ElementOrder &order, int64_t begin, int64_t count,
            float *target) const;

  /// The same, rounded to a storage format, on several threads (0: all).
  void fill(const ElementOrder &order, int64_t begin, int64_t count,
            Storage storage, void *target, unsigned threads) const;

private:
  void fillPairs(int64_t firstPair, int64_t pairs, float *target) const;
  void fillIndices(const int64_t *indices, int64_t count, float *target) const;

  uint32_t key[2];
  uint32_t step[2];
  float unit;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_SEEDED_H
