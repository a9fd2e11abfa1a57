// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference's arithmetic: bounds hold for real f32 computations and are
// not far from them; rounding to storage; the loss scale's state machine.
#include "reference/ControlState.h"
#include "reference/Program.h"
#include "support/Conversions.h"

#include <gtest/gtest.h>

#include <random>

using namespace dfa::run;

namespace {

class BoundedTest : public ::testing::Test {
protected:
  float sample() {
    // Many magnitudes, both signs.
    float size =
        std::exp2(std::uniform_real_distribution<float>(-20, 20)(random));
    return random() % 2 ? size : -size;
  }
  void within(float found, Bounded wanted) {
    EXPECT_LE(std::fabs(found - wanted.value), errorOf(wanted));
  }
  std::mt19937 random{7};
};

} // namespace

TEST_F(BoundedTest, CoversAChainOfF32Operations) {
  for (int i = 0; i < 100000; ++i) {
    float a = sample(), b = sample(), c = sample();
    Bounded x = exactly(a), y = exactly(b), z = exactly(c);
    within(a * b + c, x * y + z);
    within((a - b) * c, (x - y) * z);
    within((a + b) / c, (x + y) / z);
    within(std::sqrt(a * a + b * b), squareRoot(x * x + y * y));
    within(c / (std::sqrt(a * a) + 1e-8f),
           z / (squareRoot(x * x) + asF32(1e-8)));
  }
}

TEST_F(BoundedTest, IsNoWiderThanAFewRoundings) {
  for (int i = 0; i < 1000; ++i) {
    Bounded product = exactly(sample()) * exactly(sample());
    EXPECT_LE(errorOf(product), std::fabs(product.value) * 0x1p-21);
  }
}

TEST_F(BoundedTest, CancellationWidensTheRelativeError) {
  Bounded a = asF32(1.0), b = asF32(1.0 - 0x1p-20);
  Bounded difference = a - b;
  EXPECT_GE(errorOf(difference), 0x1p-22);
}

TEST_F(BoundedTest, NothingIsPromisedWhereF32Overflows) {
  Bounded huge = exactly(1e20) * exactly(1e20);
  EXPECT_EQ(huge.terms, infiniteTerms);
  EXPECT_EQ((exactly(1) / (asF32(1) - asF32(1))).terms, infiniteTerms);
}

TEST_F(BoundedTest, AnUnsureSignMayBeEither) {
  EXPECT_EQ(signOf(exactly(-3)).terms, 0);
  EXPECT_EQ(signOf({1e-9, 1}).terms, 2 / verifyBound);
  EXPECT_EQ(signOf(exactly(0)).value, 0);
}

TEST_F(BoundedTest, StorageIsExactAwayFromTies) {
  for (int i = 0; i < 100000; ++i) {
    float value = sample();
    Bounded rounded = roundToFormat(Format::BF16, asF32(value));
    float stored = f32FromBf16(bf16FromF32(value));
    EXPECT_EQ(rounded.value, stored);
    // A slightly different f32 stays within what was promised.
    float other = value * (1 + 0x1p-23f);
    EXPECT_LE(std::fabs(f32FromBf16(bf16FromF32(other)) - rounded.value),
              errorOf(rounded));
  }
}

TEST(ControlStateTest, ScaleGrowsAndBacksOff) {
  ControlState state;
  state.set(control_scale, 16.0);
  state.set(control_growth_interval, 2.0);
  state.updateScale(false);
  EXPECT_EQ(state.value(control_scale), 16);
  state.updateScale(false);
  EXPECT_EQ(state.value(control_scale), 32);
  EXPECT_EQ(state.value(control_growth_tracker), 0);
  state.updateScale(true);
  EXPECT_EQ(state.value(control_scale), 16);
  // Two overflows in a row are needed with a hysteresis of 2.
  state.set(control_hysteresis, 2.0);
  state.updateScale(false);
  state.updateScale(true);
  EXPECT_EQ(state.value(control_scale), 16);
  state.updateScale(true);
  EXPECT_EQ(state.value(control_scale), 8);
}

TEST(ControlStateTest, TheScaleNeverBecomesInfinite) {
  ControlState state;
  state.set(control_scale, 0x1p127);
  state.set(control_growth_interval, 1.0);
  state.updateScale(false);
  EXPECT_EQ(state.value(control_scale), 0x1p127);
}

TEST(ControlStateTest, CountsStepsOrSkips) {
  ControlState state;
  state.countStep(true, true);
  EXPECT_EQ(state.value(control_step), 0);
  EXPECT_EQ(state.value(control_skipped), 1);
  EXPECT_EQ(state.value(control_found_inf), 1);
  state.countStep(true, false);
  EXPECT_EQ(state.value(control_step), 1);
  EXPECT_EQ(state.value(control_found_inf), 0);
}

TEST(ControlStateTest, FieldsAreThoseOfTheRuntime) {
  EXPECT_EQ(findControlField("scale"), control_scale);
  EXPECT_EQ(findControlField("reserved0"), -1);
  EXPECT_EQ(findControlField("speed"), -1);
  ControlState state;
  state.set(control_scale, 0.1);
  EXPECT_EQ(state.value(control_scale), static_cast<double>(0.1f));
}
