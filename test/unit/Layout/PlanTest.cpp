// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buckets and starts: known values, classes, units, epochs, and mistakes.
#include "Build.h"

#include "gmock/gmock.h"

#include <limits>

using namespace dfa::layout;
using testing::ElementsAre;
using testing::HasSubstr;

static std::vector<int64_t> startsOf(const Plan &plan) {
  std::vector<int64_t> starts;
  for (const Placement &place : plan.placements())
    starts.push_back(place.start);
  return starts;
}

static std::vector<int64_t> bucketsOf(const Plan &plan) {
  std::vector<int64_t> buckets;
  for (const Placement &place : plan.placements())
    buckets.push_back(place.bucket);
  return buckets;
}

TEST(Plan, UnevenVectorsOnFourRanks) {
  Plan plan = planOf(vectors({7, 13, 1, 129}, {1, 4}));
  EXPECT_THAT(startsOf(plan), ElementsAre(0, 32, 64, 96));
  ASSERT_EQ(plan.buckets().size(), 1u);
  EXPECT_EQ(plan.buckets()[0].used, 225);
  EXPECT_EQ(plan.buckets()[0].padded, 256);
  EXPECT_EQ(plan.buckets()[0].shardElements, 64);
  EXPECT_EQ(plan.elements(), 150);
}

TEST(Plan, AnyRankCountDividesTheBucket) {
  Plan plan = planOf(vectors({7, 13, 1, 129}, {1, 3}));
  EXPECT_EQ(plan.buckets()[0].shardElements, 96);
  EXPECT_EQ(plan.buckets()[0].padded, 288);
}

TEST(Plan, TinyBucketsHoldOneParameterEach) {
  PlanInput input = vectors({7, 13, 1, 129});
  input.options.bucketBytes = 1;
  Plan plan = planOf(std::move(input));
  EXPECT_THAT(bucketsOf(plan), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(startsOf(plan), ElementsAre(0, 0, 0, 0));
  // The bucket grows for a parameter that is larger.
  EXPECT_EQ(plan.capacity(0), 32);
  EXPECT_EQ(plan.buckets()[3].padded, 160);
  EXPECT_EQ(plan.buckets()[3].fullBase, 96);
}

TEST(Plan, ShardBytesAreRoundedDown) {
  PlanInput input = vectors({1}, {1, 3});
  input.options.bucketBytes = 1000; // 333 bytes a shard: 256, 64 f32
  EXPECT_EQ(planOf(std::move(input)).capacity(0), 192);
  input = vectors({1}, {1, 16});
  input.options.bucketBytes = 1000;
  EXPECT_EQ(planOf(std::move(input)).capacity(0), 32 * 16);
}

TEST(Plan, ReverseIsTheDefaultOrder) {
  PlanInput input = vectors({100, 200, 300});
  input.options = PlanOptions();
  Plan plan = planOf(std::move(input));
  EXPECT_THAT(plan.sequence(), ElementsAre(2, 1, 0));
  EXPECT_THAT(startsOf(plan), ElementsAre(544, 320, 0));
}

TEST(Plan, ExplicitOrderThenTheOthersInReverse) {
  PlanInput input = vectors({32, 32, 32, 32});
  input.options.fillOrder = FillOrder::Explicit;
  input.options.explicitOrder = {2, 0};
  EXPECT_THAT(planOf(input).sequence(), ElementsAre(2, 0, 3, 1));
  input.options.explicitOrder = {2, 2};
  EXPECT_THAT(errorOf(input), HasSubstr("but got 2 twice"));
  input.options.explicitOrder = {4};
  EXPECT_THAT(errorOf(input), HasSubstr("from 0 to 3, but got 4"));
}

TEST(Plan, ClassesHaveBucketsOfTheirOwn) {
  PlanInput input = vectors({100, 10, 100, 10});
  input.classes = {mixedClass("weights"), f32Class("norms")};
  input.params[1].cls = 1;
  input.params[3].cls = 1;
  Plan plan = planOf(std::move(input));
  EXPECT_THAT(bucketsOf(plan), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(startsOf(plan), ElementsAre(0, 0, 128, 32));
  EXPECT_EQ(plan.classLayouts()[0].alignment, 64);
  EXPECT_EQ(plan.classLayouts()[1].alignment, 32);
  EXPECT_EQ(plan.placements()[3].segment, 1);
  EXPECT_EQ(plan.classLayouts()[1].sequenceBegin, 2);
}

TEST(Plan, BucketsStartInTheOrderInWhichTheyFill) {
  // Class 0 fills its only bucket last, although its bucket has number 0.
  PlanInput input = vectors({32, 32, 32, 32});
  input.options.bucketBytes = 128;
  input.classes = {f32Class("a"), f32Class("b")};
  for (size_t i : {0, 1, 2})
    input.params[i].cls = 1;
  EXPECT_THAT(planOf(input).bucketOrder(), ElementsAre(1, 2, 3, 0));
}

TEST(Plan, UnitsAreOneBucketAndFenceTheRest) {
  PlanInput input = vectors({8, 8, 64, 8, 8});
  input.options.bucketBytes = 128 * 2;
  input.params[1].unit = input.params[2].unit = 5;
  Plan plan = planOf(input);
  EXPECT_THAT(bucketsOf(plan), ElementsAre(0, 1, 1, 2, 2));
  EXPECT_EQ(plan.buckets()[1].unit, 5);
  // Larger than bucket_bytes, and still one bucket.
  EXPECT_EQ(plan.buckets()[1].used, 96);
}

TEST(Plan, AppendingKeepsEarlierOffsets) {
  PlanInput before = vectors({10, 20, 30});
  before.options.fillOrder = FillOrder::Reverse;
  before.params[1].flags = ParamFrozen;
  Plan old = planOf(before);
  EXPECT_EQ(old.placements()[1].bucket, -1);
  EXPECT_EQ(old.placements()[1].segment, -1);
  EXPECT_EQ(old.elements(), 40);

  PlanInput after = before;
  after.params[1].flags = 0; // unfrozen
  after.params[1].epoch = 1;
  after.params.push_back(param("added", {5}));
  after.params[3].epoch = 1;
  Plan now = planOf(after);
  for (size_t i : {0, 2}) {
    EXPECT_EQ(now.placements()[i].bucket, old.placements()[i].bucket);
    EXPECT_EQ(now.placements()[i].start, old.placements()[i].start);
    EXPECT_EQ(now.placements()[i].segment, old.placements()[i].segment);
  }
  EXPECT_EQ(now.placements()[1].bucket, 1);
  EXPECT_EQ(now.buckets()[1].epoch, 1);
  EXPECT_EQ(now.elements(), 65);
}

TEST(Plan, SharedParametersCountOnce) {
  PlanInput input = vectors({2, 1, 2});
  input.params[2].sharedWith = 0;
  Plan plan = planOf(input);
  EXPECT_EQ(plan.elements(), 3);
  EXPECT_EQ(plan.sequence().size(), 2u);
  EXPECT_EQ(plan.placements()[2].storage, 0);
  EXPECT_EQ(plan.placements()[2].start, plan.placements()[0].start);
  EXPECT_EQ(plan.placements()[2].segment, plan.placements()[0].segment);

  input.params[2].shape = {3};
  EXPECT_THAT(errorOf(input), HasSubstr("'p2' is shared with 'p0'"));
  input.params[2].shape = {2};
  input.params[2].sharedWith = 2;
  EXPECT_THAT(errorOf(input), HasSubstr("shared with an earlier one"));
}

TEST(Plan, EmptyParametersAnywhere) {
  for (std::vector<int64_t> sizes :
       {std::vector<int64_t>{3, 0}, {0, 3}, {0, 0, 0, 3, 0}}) {
    PlanInput input = vectors(sizes, {1, 2});
    input.options.bucketBytes = 1;
    Plan plan = planOf(input);
    EXPECT_EQ(plan.buckets().size(), 1u);
    EXPECT_EQ(plan.elements(), 3);
    EXPECT_EQ(plan.buckets()[0].used % 32, 3);
    EXPECT_EQ(plan.sequence().size(), sizes.size());
  }
  std::vector<int64_t> many(1000, 0);
  many.push_back(3);
  EXPECT_EQ(planOf(vectors(many)).elements(), 3);
  Plan none = planOf(vectors({0, 0}));
  EXPECT_EQ(none.elements(), 0);
  EXPECT_EQ(none.buckets()[0].padded, 0);
  EXPECT_EQ(planOf(vectors({})).buckets().size(), 0u);
}

TEST(Plan, MoreThan31Bits) {
  int64_t count = 2147483656; // 2^31 + 8
  PlanInput input = vectors({count, 5});
  input.options.bucketBytes = int64_t(1) << 40;
  Plan plan = planOf(std::move(input));
  EXPECT_EQ(plan.placements()[0].elements, count);
  EXPECT_EQ(plan.placements()[1].start, 2147483680);
  EXPECT_EQ(plan.buckets()[0].used, 2147483685);
}

TEST(Plan, OverflowsAreErrors) {
  int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(errorOf(vectors({most})), HasSubstr("fit in 64 bits"));
  EXPECT_THAT(errorOf(vectors({most / 4, most / 4, most / 4})),
              HasSubstr("fit in 64 bits"));
  PlanInput input = vectors({most - 5, most - 5});
  input.options.bucketBytes = most;
  input.params[0].unit = input.params[1].unit = 0;
  EXPECT_THAT(errorOf(input), HasSubstr("fit in 64 bits"));
}

TEST(Plan, MistakesNameTheParameter) {
  PlanInput input = vectors({4, 4});
  input.params[1].name = "p0";
  EXPECT_THAT(errorOf(input), HasSubstr("'p0': given twice"));
  input = vectors({4, 4});
  input.params[1].cls = 1;
  EXPECT_THAT(errorOf(input), HasSubstr("'p1': expected a class from 0 to 0"));
  input = vectors({4, 4});
  input.params[0].group = -2;
  EXPECT_THAT(errorOf(input), HasSubstr("got -2"));
  input = vectors({4, 4});
  input.params[0].order = {0};
  input.params[0].strides = {1};
  EXPECT_THAT(errorOf(input), HasSubstr("an order or strides, not both"));
  input = vectors({4});
  input.params[0].strides = {2};
  EXPECT_THAT(errorOf(input), HasSubstr("strides [2]"));
  input = vectors({4});
  input.options.bucketBytes = 0;
  EXPECT_THAT(errorOf(input), HasSubstr("bucket_bytes"));
  input = vectors({4});
  input.classes.push_back(input.classes[0]);
  EXPECT_THAT(errorOf(input), HasSubstr("class 'w': given twice"));
  input = vectors({4}, {1, 0});
  EXPECT_THAT(errorOf(input), HasSubstr("shard=0"));
}

TEST(Plan, FillFraction) {
  PlanInput input = vectors({33, 64, 1});
  input.options.bucketBytes = 128 * 2;
  // Buckets of 64: 33 used, 64 used, and the last does not count.
  EXPECT_DOUBLE_EQ(planOf(input).fillFraction(), 97.0 / 128);
  EXPECT_DOUBLE_EQ(planOf(vectors({1})).fillFraction(), 1);
}
