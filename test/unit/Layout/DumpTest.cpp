// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts and hashes of plans.
#include "layout/Dump.h"

#include "Build.h"

using namespace dfa::layout;

TEST(Dump, TextOfASmallPlan) {
  PlanInput input = vectors({7, 13}, {2, 4});
  input.params[0] = param("conv \"a\"", {2, 3, 1, 2}, {0, 2, 3, 1});
  input.params[0].group = 1;
  EXPECT_EQ(planText(planOf(std::move(input))),
            "dfa-layout-plan 1\n"
            "mesh replicate=2 shard=4\n"
            "class \"w\" sync=f32 block=1 align=32 "
            "arrays=\"param\":f32,\"exp_avg\":f32 shard=32\n"
            "param \"conv \\x22a\\x22\" shape=[2, 3, 1, 2] "
            "order=[0, 3, 1, 2] class=0 group=1 bucket=0 start=0\n"
            "param \"p1\" shape=[13] order=[0] class=0 group=0 bucket=0 "
            "start=32\n"
            "bucket 0 class=0 params=2 used=45 shard=32 unit=-1 epoch=0\n"
            "start 0\n");
}

TEST(Dump, HashIsOfTheText) {
  Plan plan = planOf(vectors({7, 13, 1000000}, {2, 4}));
  EXPECT_EQ(planHash(plan), textHash(planText(plan)));
  // Published FNV-1a values.
  EXPECT_EQ(textHash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(textHash("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(textHash("foobar"), 0x85944171f73967e8u);
}

TEST(Dump, EqualMemoryGivesEqualHashes) {
  PlanInput byOrder = vectors({});
  byOrder.params.push_back(param("w", {64, 3, 1, 1}, {0, 2, 3, 1}));
  PlanInput byStrides = vectors({});
  byStrides.params.push_back(param("w", {64, 3, 1, 1}));
  byStrides.params[0].strides = {3, 1, 77, -4};
  EXPECT_EQ(planHash(planOf(byOrder)), planHash(planOf(byStrides)));
}

TEST(Dump, FirstDifferingLine) {
  Plan one = planOf(vectors({7, 13, 1}));
  PlanInput other = vectors({7, 14, 1});
  Plan two = planOf(std::move(other));
  EXPECT_NE(planHash(one), planHash(two));
  std::optional<TextDifference> difference =
      firstDifference(planText(one), planText(two));
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->line, 5);
  EXPECT_EQ(difference->left, "param \"p1\" shape=[13] order=[0] class=0 "
                              "group=0 bucket=0 start=32");
  EXPECT_EQ(difference->right, "param \"p1\" shape=[14] order=[0] class=0 "
                               "group=0 bucket=0 start=32");
}

TEST(Dump, DifferenceOfPlainTexts) {
  EXPECT_FALSE(firstDifference("a\nb\n", "a\nb\n").has_value());
  std::optional<TextDifference> shorter = firstDifference("a\n", "a\nb\n");
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(shorter->line, 2);
  EXPECT_EQ(shorter->left, "");
  EXPECT_EQ(shorter->right, "b");
  EXPECT_TRUE(firstDifference("a", "a\n").has_value());
}
