// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's tables: fragments, chunks and atoms with known values.
#include "Build.h"

#include "gmock/gmock.h"

using namespace dfa::layout;
using testing::ElementsAre;
using testing::HasSubstr;

/// How many parameters have elements on each rank of the shard axis.
static std::vector<int> touching(const std::vector<int64_t> &sizes,
                                 int64_t ranks) {
  Plan plan = planOf(vectors(sizes, {1, ranks}));
  std::vector<int> counts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    RankTables tables = tablesOf(plan, rank);
    EXPECT_EQ(tables.segments.size(), sizes.size());
    int count = 0;
    for (const Segment &segment : tables.segments)
      count += segment.elements != 0;
    counts.push_back(count);
  }
  return counts;
}

TEST(Tables, RanksTouchUnequalCounts) {
  std::vector<int64_t> sizes(38, 1);
  sizes[0] = 1000;
  EXPECT_THAT(touching(sizes, 4), ElementsAre(1, 5, 18, 15));
  EXPECT_THAT(touching(sizes, 2), ElementsAre(4, 34));
  EXPECT_THAT(touching(sizes, 3), ElementsAre(1, 15, 23));
  EXPECT_THAT(touching(sizes, 1), ElementsAre(38));
}

TEST(Tables, ReplicasOwnTheSame) {
  Plan plan = planOf(vectors({6, 8, 100}, {2, 2}));
  RankTables first = tablesOf(plan, 1);
  RankTables second = tablesOf(plan, 3);
  EXPECT_EQ(second.coordinate.replica, 1);
  EXPECT_EQ(second.coordinate.shard, 1);
  ASSERT_EQ(first.segments.size(), second.segments.size());
  for (size_t i = 0; i < first.segments.size(); ++i) {
    EXPECT_EQ(first.segments[i].elements, second.segments[i].elements);
    EXPECT_EQ(first.segments[i].shardOffset, second.segments[i].shardOffset);
  }
}

TEST(Tables, ShardCutSplitsAnAtomOnTheParametersGrid) {
  // 20,000 elements on two ranks: the cut at 10,016 lies in the second atom.
  Plan plan = planOf(vectors({20000}, {1, 2}));
  RankTables low = tablesOf(plan, 0);
  RankTables high = tablesOf(plan, 1);
  ASSERT_EQ(low.atoms.size(), 2u);
  EXPECT_EQ(low.atoms[1].offset, 8192);
  EXPECT_EQ(low.atoms[1].length, 10016u - 8192u);
  EXPECT_EQ(high.segments[0].paramOffset, 10016);
  ASSERT_EQ(high.atoms.size(), 2u);
  EXPECT_EQ(high.atoms[0].offset, 0);
  EXPECT_EQ(high.atoms[0].length, 16384u - 10016u);
  EXPECT_EQ(high.atoms[1].offset, 16384 - 10016);
  EXPECT_EQ(high.atoms[1].length, 20000u - 16384u);
  EXPECT_EQ(high.segments[0].firstAtom, 0);
  EXPECT_EQ(high.segments[0].atoms, 2);
}

TEST(Tables, AtomsAreOneTableForAllClasses) {
  PlanInput input = vectors({9000, 9000, 10});
  input.classes = {f32Class("a"), f32Class("b")};
  input.params[0].cls = 1;
  RankTables tables = tablesOf(planOf(std::move(input)), 0);
  // Class a: parameters 1 and 2; class b: parameter 0.
  EXPECT_EQ(tables.segments[0].param, 1);
  EXPECT_EQ(tables.segments[0].firstAtom, 0);
  EXPECT_EQ(tables.segments[1].firstAtom, 2);
  EXPECT_EQ(tables.segments[2].param, 0);
  EXPECT_EQ(tables.segments[2].firstAtom, 3);
  EXPECT_EQ(tables.classes[1].atoms.begin, 3);
  EXPECT_EQ(tables.classes[1].atoms.end, 5);
  // Segment numbers count from the class's first segment.
  EXPECT_EQ(tables.atoms[3].segment, 0u);
}

TEST(Tables, ChunksCoverAHugeParameter) {
  PlanInput input = vectors({2147483656});
  RankTables tables = tablesOf(planOf(std::move(input)), 0);
  EXPECT_EQ(tables.chunkElements, 65536);
  EXPECT_EQ(tables.chunks.size(), 32769u);
  EXPECT_EQ(tables.chunks.back().offset, 2147483648);
  EXPECT_EQ(tables.chunks.back().length, 8u);
}

TEST(Tables, SmallTensorsGetSmallChunks) {
  RankTables small =
      tablesOf(planOf(vectors(std::vector<int64_t>(500, 64))), 0);
  EXPECT_EQ(small.chunkElements, 512);
  EXPECT_EQ(partsPerChunkLog2(small.chunkElements, 512), 0u);
  // One large tensor among them: at most 1/256 more parts than with the
  // smallest chunks.
  std::vector<int64_t> sizes(500, 64);
  sizes.push_back(10000000);
  RankTables mixed = tablesOf(planOf(vectors(sizes)), 0);
  int64_t parts = int64_t(mixed.chunks.size())
                  << partsPerChunkLog2(mixed.chunkElements, 128);
  int64_t smallest = (500 + (10000000 + 511) / 512) * 4;
  EXPECT_LE(parts, smallest + smallest / 256);
}

TEST(Tables, PartsPerChunk) {
  EXPECT_EQ(partsPerChunkLog2(65536, 128), 9u);
  EXPECT_EQ(partsPerChunkLog2(512, 1024), 0u);
  EXPECT_EQ(partsPerChunkLog2(65536, 192), 9u); // 342 parts
}

TEST(Tables, FullChunksCoverTheBucket) {
  Plan plan = planOf(vectors({1000, 0, 700}, {1, 4}));
  Expected<std::vector<dfa_rt_chunk_t>> chunks = buildFullChunks(plan, 0, 512);
  ASSERT_TRUE(chunks.ok()) << chunks.message();
  ASSERT_EQ(chunks->size(), 4u);
  EXPECT_EQ((*chunks)[1].offset, 512);
  EXPECT_EQ((*chunks)[1].length, 488u);
  EXPECT_EQ((*chunks)[2].segment, 2u);
  EXPECT_FALSE(buildFullChunks(plan, 1, 512).ok());
  EXPECT_FALSE(buildFullChunks(plan, 0, 500).ok());
}

TEST(Tables, WrongArguments) {
  Plan plan = planOf(vectors({10}, {1, 2}));
  EXPECT_THAT(buildRankTables(plan, 2).message(), HasSubstr("from 0 to 1"));
  TableOptions options;
  options.chunkElements = 600;
  EXPECT_THAT(buildRankTables(plan, 0, options).message(),
              HasSubstr("but got 600"));
  options = TableOptions();
  options.tileElements = 0;
  EXPECT_THAT(buildRankTables(plan, 0, options).message(),
              HasSubstr("but got 0"));
}

TEST(Tables, FragmentsOfOneParameter) {
  Plan plan = planOf(vectors({7, 13, 1, 129}, {1, 4}));
  std::vector<Fragment> fragments = fragmentsOf(plan, 3); // [96, 225)
  ASSERT_EQ(fragments.size(), 3u);
  EXPECT_EQ(fragments[0].shard, 1);
  EXPECT_EQ(fragments[0].shardOffset, 32);
  EXPECT_EQ(fragments[0].elements, 32);
  EXPECT_EQ(fragments[1].paramOffset, 32);
  EXPECT_EQ(fragments[1].elements, 64);
  EXPECT_EQ(fragments[2].shard, 3);
  EXPECT_EQ(fragments[2].elements, 33);
}
