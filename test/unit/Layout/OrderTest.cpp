// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders, strides and index maps, against nested loops.
#include "layout/Order.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>

using namespace dfa::layout;
using testing::ElementsAre;
using testing::HasSubstr;

static Order orderOf(const std::vector<int64_t> &shape,
                     const std::vector<int64_t> &strides) {
  Expected<Order> order = orderFromStrides("w", shape, strides);
  EXPECT_TRUE(order.ok()) << order.message();
  return order ? *order : Order();
}

TEST(Order, ChannelsLastIndex) {
  // Known values: logical (1, 2, 0, 1) of a (4, 8, 3, 3) tensor.
  std::vector<int64_t> shape = {4, 8, 3, 3};
  Order nhwc = orderOf(shape, {72, 1, 24, 8});
  EXPECT_THAT(nhwc, ElementsAre(0, 2, 3, 1));
  int64_t logical = ((1 * 8 + 2) * 3 + 0) * 3 + 1;
  EXPECT_EQ(logical, 91);
  EXPECT_EQ(IndexMap(shape, nhwc).toFlat(logical), 82);
  EXPECT_EQ(IndexMap(shape, {0, 1, 2, 3}).toFlat(logical), 91);
  EXPECT_EQ(IndexMap(shape, nhwc).toLogical(82), 91);
  EXPECT_THAT(stridesFromOrder(shape, nhwc), ElementsAre(72, 1, 24, 8));
}

TEST(Order, GradientInAnotherOrderMeetsItsParameter) {
  // Parameter NHWC, gradient NCHW, by logical index: (2, 3, 2, 2).
  std::vector<int64_t> shape = {2, 3, 2, 2};
  IndexMap param(shape, orderOf(shape, {12, 1, 6, 3}));
  IndexMap grad(shape, {0, 1, 2, 3});
  int64_t moved = 0;
  for (int64_t flat = 0; flat < 24; ++flat)
    moved += grad.toFlat(param.toLogical(flat)) != flat;
  EXPECT_EQ(moved, 20);
}

TEST(Order, EveryPermutationOfOneToFiveDimensions) {
  const std::vector<int64_t> sizes = {2, 3, 1, 4, 5};
  for (size_t rank = 0; rank <= sizes.size(); ++rank) {
    std::vector<int64_t> shape(sizes.begin(),
                               sizes.begin() + static_cast<int64_t>(rank));
    Order given(rank);
    std::iota(given.begin(), given.end(), 0);
    do {
      Expected<Order> order = canonicalOrder("w", shape, given);
      ASSERT_TRUE(order.ok()) << order.message();
      std::vector<int64_t> strides = stridesFromOrder(shape, given);
      // The same memory gives the same order, however it is described.
      EXPECT_EQ(orderOf(shape, strides), *order);
      IndexMap map(shape, *order);
      std::vector<int64_t> index(rank, 0);
      for (int64_t logical = 0; logical < map.elements(); ++logical) {
        int64_t flat = 0;
        for (size_t d = 0; d < rank; ++d)
          flat += index[d] * strides[d];
        ASSERT_EQ(map.toFlat(logical), flat) << listText(given);
        ASSERT_EQ(map.toLogical(flat), logical) << listText(given);
        for (size_t d = rank; d-- > 0;) {
          if (++index[d] < shape[d])
            break;
          index[d] = 0;
        }
      }
    } while (std::next_permutation(given.begin(), given.end()));
  }
}

TEST(Order, StridesOfUnitDimensionsCarryNoMeaning) {
  EXPECT_THAT(orderOf({64, 3, 1, 1}, {3, 1, 3, 3}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(orderOf({64, 3, 1, 1}, {3, 1, 1, 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(orderOf({64, 3, 1, 1}, {3, 1, -7, 99}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(orderOf({4, 8, 3, 1}, {24, 1, 8, 1000}), ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(orderOf({1, 1}, {5, 0}), ElementsAre(0, 1));
  EXPECT_THAT(*canonicalOrder("w", {64, 3, 1, 1}, {0, 2, 3, 1}),
              ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(IndexMap({64, 3, 1, 1}, {0, 1, 2, 3}).isIdentity());
}

TEST(Order, WithoutElementsOrDimensions) {
  EXPECT_THAT(orderOf({0, 7}, {123, 45}), ElementsAre(0, 1));
  EXPECT_EQ(IndexMap({0, 7}, {0, 1}).elements(), 0);
  EXPECT_THAT(orderOf({}, {}), ElementsAre());
  EXPECT_EQ(IndexMap({}, {}).elements(), 1);
  EXPECT_EQ(IndexMap({}, {}).toFlat(0), 0);
  // Sizes beside a zero may be anything.
  int64_t huge = int64_t(1) << 62;
  EXPECT_EQ(*elementCount("w", {huge, huge, 0}), 0);
}

TEST(Order, GapsAndOverlapsAreErrorsWithNames) {
  for (std::vector<int64_t> strides :
       {std::vector<int64_t>{4, 1}, {1, 1}, {3, 0}, {-3, 1}, {6, 2}}) {
    std::string message =
        orderFromStrides("layer.weight", {2, 3}, strides).message();
    EXPECT_THAT(message, HasSubstr("'layer.weight' of shape [2, 3]"));
    EXPECT_THAT(message, HasSubstr("strides " + listText(strides)));
  }
  EXPECT_THAT(orderFromStrides("w", {2, 3}, {3}).message(),
              HasSubstr("one stride for each dimension"));
}

TEST(Order, OrdersThatAreNoPermutation) {
  for (Order order : {Order{0}, {0, 0}, {0, 2}, {-1, 0}, {0, 1, 2}})
    EXPECT_THAT(canonicalOrder("w", {2, 3}, order).message(),
                HasSubstr("but got " + listText(order)));
}

TEST(Order, CountsBeyond64Bits) {
  EXPECT_EQ(*elementCount("w", {int64_t(1) << 31, 3}), 6442450944);
  EXPECT_THAT(
      elementCount("big", {int64_t(1) << 32, int64_t(1) << 32}).message(),
      HasSubstr("'big'"));
  EXPECT_THAT(elementCount("w", {2, -1}).message(), HasSubstr("but got -1"));
}
