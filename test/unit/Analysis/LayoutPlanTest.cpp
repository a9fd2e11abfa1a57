// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// planLayout: what of a dfa.layout reaches the layout library.

#include "dfa/Analysis/LayoutPlan.h"
#include "Parsed.h"
#include "gtest/gtest.h"

using namespace dfa_test;
using namespace mlir;
using namespace mlir::dfa;
namespace layout = ::dfa::layout;

static constexpr const char twoClasses[] = R"(
dfa.mesh @dp(replicate = 3, shard = 2)
dfa.layout @l on @dp bucket_bytes = 256 {
  dfa.class @w param = bf16 grad = bf16 master = remainder
    states = [exp_avg : f16] rule = lion
  dfa.class @n param = f64 grad = f64 master = none states = [] rule = sgd
  dfa.param "a" : tensor<2x3x5x7xbf16>, order = [0, 2, 3, 1], class = @w,
    group = 4
  dfa.param "b" : tensor<9xf64>, class = @n, group = 0
})";

TEST(LayoutPlan, CarriesEverything) {
  Parsed parsed(twoClasses);
  FailureOr<layout::Plan> plan = planLayout(parsed.layout());
  ASSERT_TRUE(succeeded(plan)) << parsed.messages;
  EXPECT_EQ(plan->mesh().replicate, 3);
  EXPECT_EQ(plan->mesh().shard, 2);
  ASSERT_EQ(plan->params().size(), 2u);
  const layout::ParamSpec &a = plan->params()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 3, 5, 7}));
  EXPECT_EQ(a.order, (layout::Order{0, 2, 3, 1}));
  EXPECT_EQ(a.group, 4);
  EXPECT_EQ(a.cls, 0);
  EXPECT_EQ(plan->params()[1].cls, 1);
  // 210 elements of bf16 are more than 256 bytes: a bucket of its own.
  EXPECT_EQ(plan->placements()[0].elements, 210);
  EXPECT_EQ(plan->elements(), 219);
}

TEST(LayoutPlan, FormatsOfArrays) {
  Parsed parsed(twoClasses);
  FailureOr<layout::Plan> plan = planLayout(parsed.layout());
  ASSERT_TRUE(succeeded(plan)) << parsed.messages;
  ASSERT_EQ(plan->classes().size(), 2u);
  const layout::ClassSpec &w = plan->classes()[0];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.syncFormat, layout::Format::BF16);
  ASSERT_EQ(w.arrays.size(), 4u);
  EXPECT_EQ(w.arrays[2].name, "remainder");
  EXPECT_EQ(w.arrays[2].format, layout::Format::Remainder);
  EXPECT_EQ(w.arrays[3].name, "exp_avg");
  EXPECT_EQ(w.arrays[3].format, layout::Format::F16);
  // No master, no array.
  EXPECT_EQ(plan->classes()[1].arrays.size(), 2u);
}

TEST(LayoutPlan, AnotherMesh) {
  Parsed parsed(twoClasses);
  layout::Mesh mesh;
  mesh.replicate = 1;
  mesh.shard = 8;
  FailureOr<layout::Plan> wide = planLayout(parsed.layout(), mesh);
  FailureOr<layout::Plan> own = planLayout(parsed.layout());
  ASSERT_TRUE(succeeded(wide) && succeeded(own)) << parsed.messages;
  EXPECT_EQ(wide->mesh().shard, 8);
  EXPECT_LT(wide->classLayouts()[0].shardElements,
            own->classLayouts()[0].shardElements);
}

TEST(LayoutPlan, ForeignAxis) {
  Parsed parsed(R"(
dfa.mesh @m(pipeline = 2)
dfa.layout @l on @m {
})");
  EXPECT_TRUE(failed(planLayout(parsed.layout())));
  EXPECT_NE(parsed.messages.find("expects axes 'replicate' and 'shard' under "
                                 "a layout, but got 'pipeline' of size 2"),
            std::string::npos)
      << parsed.messages;
}
