// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of a mesh, against a brute-force reference over coordinates.

#include "comm/MeshGroups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

using namespace dfa::rt;

namespace {

/// Coordinates of a mesh position by counting up, the last axis fastest.
std::vector<int> coordinatesOf(const std::vector<MeshAxis> &axes,
                               int position) {
  std::vector<int> coordinates(axes.size(), 0);
  for (int i = 0; i < position; ++i)
    for (size_t a = axes.size(); a-- > 0;) {
      if (++coordinates[a] < axes[a].size)
        break;
      coordinates[a] = 0;
    }
  return coordinates;
}

TEST(MeshGroups, TwoByTwo) {
  std::vector<AxisGroup> groups;
  ASSERT_TRUE(
      meshGroups({{"replicate", 2}, {"shard", 2}}, {0, 1, 2, 3}, 4, 3, groups)
          .ok());
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].axis, "replicate");
  EXPECT_EQ(groups[0].ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(groups[0].index, 1);
  EXPECT_EQ(groups[1].axis, "shard");
  EXPECT_EQ(groups[1].ranks, (std::vector<int>{2, 3}));
  EXPECT_EQ(groups[1].index, 1);
}

TEST(MeshGroups, AgreeWithCoordinatesOnAnySubset) {
  std::mt19937 random(7);
  std::vector<std::vector<MeshAxis>> meshes = {{{"shard", 5}},
                                               {{"replicate", 3}, {"shard", 4}},
                                               {{"replicate", 1}, {"shard", 1}},
                                               {{"a", 2}, {"b", 3}, {"c", 2}},
                                               {{"a", 4}, {"b", 1}, {"c", 3}}};
  for (const std::vector<MeshAxis> &axes : meshes) {
    int count = 1;
    for (const MeshAxis &axis : axes)
      count *= axis.size;
    int world = count + 5;
    std::vector<int> ranks(static_cast<size_t>(world));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    ranks.resize(size_t(count));

    for (int position = 0; position < count; ++position) {
      int self = ranks[size_t(position)];
      std::vector<AxisGroup> groups;
      ASSERT_TRUE(meshGroups(axes, ranks, world, self, groups).ok());
      std::vector<int> mine = coordinatesOf(axes, position);
      for (size_t a = 0; a < axes.size(); ++a) {
        std::vector<int> expected;
        for (int other = 0; other < count; ++other) {
          std::vector<int> theirs = coordinatesOf(axes, other);
          theirs[a] = mine[a];
          if (theirs == mine)
            expected.push_back(ranks[size_t(other)]);
        }
        EXPECT_EQ(groups[a].ranks, expected);
        EXPECT_EQ(groups[a].index, mine[a]);
        EXPECT_EQ(groups[a].ranks[size_t(groups[a].index)], self);
      }
    }
    // Equal colours on an axis: the same group, and the other way round.
    for (size_t a = 0; a < axes.size(); ++a) {
      std::set<std::pair<int, std::vector<int>>> seen;
      std::set<int> colors;
      for (int self : ranks) {
        std::vector<AxisGroup> groups;
        ASSERT_TRUE(meshGroups(axes, ranks, world, self, groups).ok());
        seen.insert({groups[a].color, groups[a].ranks});
        colors.insert(groups[a].color);
      }
      EXPECT_EQ(seen.size(), colors.size());
      EXPECT_EQ(int(colors.size()), count / axes[a].size);
    }
  }
}

TEST(MeshGroups, RefusesWhatDoesNotFit) {
  std::vector<AxisGroup> groups;
  auto message = [&](std::vector<MeshAxis> axes, std::vector<int> ranks,
                     int self) {
    Status status = meshGroups(axes, ranks, 4, self, groups);
    EXPECT_EQ(status.code(), Code::InvalidArgument);
    return status.message();
  };
  EXPECT_EQ(message({{"shard", 3}}, {0, 1}, 0),
            "mesh: expected as many ranks as the axes multiply to (3), found "
            "2");
  EXPECT_EQ(message({{"shard", 2}}, {0, 0}, 0), "mesh: rank 0 occurs twice");
  EXPECT_EQ(message({{"shard", 2}}, {0, 4}, 0),
            "mesh: expected ranks below 4, found 4");
  EXPECT_EQ(message({{"shard", 2}}, {0, 1}, 2),
            "mesh: rank 2 is not one of its 2 ranks");
  EXPECT_NE(message({{"shard", 0}}, {}, 0).find("at least 1"),
            std::string::npos);
  EXPECT_NE(message({{"s", 1}, {"s", 1}}, {0}, 0).find("twice"),
            std::string::npos);
  EXPECT_NE(
      message({{"a", 65536}, {"b", 65536}, {"c", 65536}, {"d", 65536}}, {0}, 0)
          .find("expected as many ranks"),
      std::string::npos);
}

} // namespace
