// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short ways to write plans in tests.
#ifndef DFA_TEST_UNIT_LAYOUT_BUILD_H
#define DFA_TEST_UNIT_LAYOUT_BUILD_H

#include "layout/Plan.h"
#include "layout/Tables.h"

#include "gtest/gtest.h"

namespace dfa {
namespace layout {

/// A class of f32 arrays only.
inline ClassSpec f32Class(const std::string &name = "w") {
  return {
      name, {{"param", Format::F32}, {"exp_avg", Format::F32}}, Format::F32, 1};
}

/// bf16 parameters and gradients with f32 masters.
inline ClassSpec mixedClass(const std::string &name = "w") {
  return {name,
          {{"param", Format::BF16}, {"master", Format::F32}},
          Format::BF16,
          1};
}

inline ParamSpec param(const std::string &name, std::vector<int64_t> shape,
                       Order order = {}) {
  ParamSpec spec;
  spec.name = name;
  spec.shape = std::move(shape);
  spec.order = std::move(order);
  return spec;
}

/// Parameters p0, p1, ... of one dimension, in one f32 class, filled forward.
inline PlanInput vectors(const std::vector<int64_t> &sizes, Mesh mesh = {}) {
  PlanInput input;
  input.mesh = mesh;
  input.options.fillOrder = FillOrder::Forward;
  input.classes = {f32Class()};
  for (size_t i = 0; i < sizes.size(); ++i)
    input.params.push_back(param("p" + std::to_string(i), {sizes[i]}));
  return input;
}

/// The plan of an input that must be right.
inline Plan planOf(PlanInput input) {
  Expected<Plan> plan = Plan::create(std::move(input));
  EXPECT_TRUE(plan.ok()) << plan.message();
  if (plan)
    return std::move(*plan);
  return std::move(*Plan::create(PlanInput()));
}

/// The message of an input that must be wrong.
inline std::string errorOf(PlanInput input) {
  Expected<Plan> plan = Plan::create(std::move(input));
  EXPECT_FALSE(plan.ok());
  return plan.message();
}

inline RankTables tablesOf(const Plan &plan, int64_t rank,
                           TableOptions options = {}) {
  Expected<RankTables> tables = buildRankTables(plan, rank, options);
  EXPECT_TRUE(tables.ok()) << tables.message();
  return tables ? std::move(*tables) : RankTables();
}

} // namespace layout
} // namespace dfa

#endif // DFA_TEST_UNIT_LAYOUT_BUILD_H
