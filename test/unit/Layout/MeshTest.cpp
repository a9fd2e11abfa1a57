// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mesh coordinates, groups, formats and alignment.
#include "Build.h"

#include "gmock/gmock.h"

using namespace dfa::layout;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Mesh, SlowestAxisFirst) {
  Mesh mesh{2, 4};
  EXPECT_EQ(*meshRanks(mesh), 8);
  EXPECT_EQ(coordinateOf(mesh, 6)->replica, 1);
  EXPECT_EQ(coordinateOf(mesh, 6)->shard, 2);
  EXPECT_THAT(*axisGroup(mesh, 6, Axis::Shard), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(*axisGroup(mesh, 6, Axis::Replicate), ElementsAre(2, 6));
}

TEST(Mesh, RefusesWhatIsNoMesh) {
  EXPECT_THAT(meshRanks({0, 4}).message(), HasSubstr("replicate=0, shard=4"));
  EXPECT_THAT(meshRanks({int64_t(1) << 40, int64_t(1) << 40}).message(),
              HasSubstr("at most 2147483647 ranks"));
  EXPECT_THAT(coordinateOf({2, 2}, 4).message(), HasSubstr("from 0 to 3"));
  EXPECT_FALSE(axisGroup({2, 2}, -1, Axis::Shard).ok());
}

TEST(Format, AlignmentFollowsTheNarrowest) {
  EXPECT_EQ(*classAlignment(f32Class()), 32);
  EXPECT_EQ(*classAlignment(mixedClass()), 64);
  ClassSpec spec = f32Class();
  spec.arrays.push_back({"exp_avg_sq", Format::F8E4M3});
  EXPECT_EQ(*classAlignment(spec), 128);
  // A block of 256 with one statistic must not straddle a cut.
  spec.block = 256;
  EXPECT_EQ(*classAlignment(spec), 256);
  // What travels is cut as well.
  ClassSpec wire = f32Class();
  wire.syncFormat = Format::F16;
  EXPECT_EQ(*classAlignment(wire), 64);
}

TEST(Format, NamesAndMistakes) {
  for (const char *name :
       {"f64", "f32", "f16", "bf16", "remainder", "f8e4m3", "f8e5m2", "i8"})
    EXPECT_STREQ(formatName(*parseFormat(name)), name);
  EXPECT_THAT(parseFormat("float").message(), HasSubstr("but got 'float'"));
  EXPECT_THAT(classAlignment({"c", {}, Format::F32, 1}).message(),
              HasSubstr("class 'c': expected at least one array"));
  ClassSpec spec = f32Class("c");
  spec.block = 48;
  EXPECT_THAT(classAlignment(spec).message(), HasSubstr("but got 48"));
}
