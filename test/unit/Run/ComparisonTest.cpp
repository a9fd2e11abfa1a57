// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule of --verify, at and just beyond its bound, and its report.
#include "support/Comparison.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace dfa::run;

TEST(Comparison, BoundIsInclusive) {
  // With terms of 2 the bound is 2^-19, an exact distance in f32 around 1.
  const double expected[2] = {1, 1}, terms[2] = {2, 2};
  const float good[2] = {1 + 0x1p-19f, 1 - 0x1p-19f};
  Comparison comparison;
  comparison.addBounded("param/w", {2}, 0, 2, expected, terms, good);
  EXPECT_TRUE(comparison.passed());
  EXPECT_EQ(comparison.worst()->ratio, 1);
  EXPECT_EQ(comparison.worst()->index, 0);
  const float bad[2] = {1, 1 + 0x1p-19f + 0x1p-23f};
  comparison.addBounded("param/v", {2}, 0, 2, expected, terms, bad);
  EXPECT_FALSE(comparison.passed());
  EXPECT_EQ(comparison.failures(), 1);
  EXPECT_EQ(comparison.elements(), 4);
  EXPECT_EQ(comparison.worst()->name, "param/v");
  EXPECT_EQ(comparison.worst()->index, 1);
}

TEST(Comparison, ReportSaysWhereAndHowMuch) {
  const double expected = 0.5, terms = 1;
  const float found = 0.75;
  Comparison comparison;
  comparison.addBounded("master/w", {2, 3, 4}, 17, 1, &expected, &terms,
                        &found);
  EXPECT_EQ(comparison.worst()->describe(),
            "'master/w' at [1, 1, 1]: expects 0.5 within 9.53674316e-07, but "
            "got 0.75 (262144 of the bound)");
}

TEST(Comparison, NonFiniteValues) {
  struct Case {
    double expected, terms;
    float found;
    bool right;
  };
  const Case cases[] = {
      {NAN, 1, NAN, true},
      {NAN, 1, 0, false},
      {0, 1, NAN, false},
      {INFINITY, 1, INFINITY, true},
      {INFINITY, 1, -INFINITY, false},
      {1, 1, INFINITY, false},
      {1, INFINITY, 2, false},
      {1, NAN, 2, false},
      {1, NAN, 1, true},
      {0, 0, 0, true},
      {0, 0, 1e-30f, false},
      {INFINITY, INFINITY, 3e38f, false},
  };
  for (const Case &one : cases) {
    Comparison comparison;
    comparison.addBounded("x", {}, 0, 1, &one.expected, &one.terms, &one.found);
    EXPECT_EQ(comparison.passed(), one.right)
        << one.expected << " " << one.terms << " " << one.found;
    EXPECT_FALSE(std::isnan(comparison.worst()->ratio));
  }
}

TEST(Comparison, EncodingsAreExact) {
  const float master[3] = {floatOf(0x3f808000), 2, NAN};
  uint16_t stored[3] = {0x3f80, 0x4000, 0xffc0};
  Comparison comparison;
  comparison.addEncoding("param/w", {3}, 0, 3, Storage::BF16, master, stored);
  EXPECT_TRUE(comparison.passed());
  stored[0] = 0x3f81; // the neighbour that is as near
  comparison.addEncoding("param/w", {3}, 0, 3, Storage::BF16, master, stored);
  EXPECT_EQ(comparison.failures(), 1);
  EXPECT_EQ(comparison.worst()->describe(),
            "'param/w' at [0]: expects 1 exactly, but got 1.0078125");
}

TEST(Comparison, RemaindersAreExact) {
  const float master[2] = {floatOf(0x3f808000), 3};
  uint16_t params[2] = {0x3f81, 0x4040}, remainders[2] = {0x8000, 0};
  Comparison comparison;
  comparison.addRemainder("master/w", {2}, 0, 2, master, params, remainders);
  EXPECT_TRUE(comparison.passed());
  params[0] = 0x3f80;
  comparison.addRemainder("master/w", {2}, 0, 2, master, params, remainders);
  EXPECT_FALSE(comparison.passed());
  EXPECT_EQ(comparison.worst()->index, 0);
  EXPECT_EQ(comparison.worst()->found, 0.998046875);
}

TEST(Comparison, ScalarsAndMerging) {
  Comparison first, second, none;
  EXPECT_EQ(none.worst(), nullptr);
  first.addScalar("control/scale", 65536, 65536, 0);
  second.addScalar("control/skipped", 1, 2, 0);
  first.merge(none);
  EXPECT_TRUE(first.passed());
  none.merge(first);
  EXPECT_EQ(none.worst()->name, "control/scale");
  first.merge(second);
  EXPECT_EQ(first.elements(), 2);
  EXPECT_EQ(first.failures(), 1);
  EXPECT_EQ(first.worst()->describe(),
            "'control/skipped' at []: expects 1 exactly, but got 2");
}
