// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boxes of fragments, against a walk over all logical indices.
#include "layout/Box.h"

#include "Build.h"

#include "gmock/gmock.h"

#include <algorithm>
#include <numeric>

using namespace dfa::layout;
using testing::ElementsAre;

/// Calls `visit` with the logical index of each element of a box.
template <typename Visit>
static void walk(const std::vector<int64_t> &shape, const Box &box,
                 Visit visit) {
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t i = 0; i < box.elements; ++i) {
    int64_t logical = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      logical = logical * shape[d] + box.offsets[d] + at[d];
    visit(logical);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < box.sizes[d])
        break;
      at[d] = 0;
    }
  }
}

static void checkRange(const std::vector<int64_t> &shape, const Order &order,
                       int64_t begin, int64_t end) {
  IndexMap map(shape, order);
  std::vector<int> hits(static_cast<size_t>(map.elements()));
  std::vector<Box> boxes = boxesOf(shape, order, begin, end);
  EXPECT_LE(boxes.size(), std::max<size_t>(2 * shape.size(), 2) - 1);
  int64_t next = begin;
  for (const Box &box : boxes) {
    EXPECT_EQ(box.flatBegin, next);
    next += box.elements;
    int64_t product = 1;
    for (int64_t size : box.sizes)
      product *= size;
    EXPECT_EQ(product, box.elements);
    walk(shape, box, [&](int64_t logical) {
      int64_t flat = map.toFlat(logical);
      EXPECT_GE(flat, box.flatBegin);
      EXPECT_LT(flat, box.flatBegin + box.elements);
      ++hits[static_cast<size_t>(flat)];
    });
  }
  EXPECT_EQ(next, std::max(begin, end));
  for (int64_t flat = 0; flat < map.elements(); ++flat)
    EXPECT_EQ(hits[static_cast<size_t>(flat)], flat >= begin && flat < end);
}

TEST(Box, EveryRangeOfEveryOrder) {
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{}, {7}, {3, 4}, {2, 3, 2}, {2, 1, 3, 2}}) {
    Order given(shape.size());
    std::iota(given.begin(), given.end(), 0);
    do {
      Order order = *canonicalOrder("w", shape, given);
      int64_t count = *elementCount("w", shape);
      for (int64_t begin = 0; begin <= count; ++begin)
        for (int64_t end = begin; end <= count; ++end)
          checkRange(shape, order, begin, end);
    } while (std::next_permutation(given.begin(), given.end()));
  }
}

TEST(Box, WholeParameterIsOneBox) {
  std::vector<Box> boxes = boxesOf({4, 8, 3, 3}, {0, 2, 3, 1}, 0, 288);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_THAT(boxes[0].offsets, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(boxes[0].sizes, ElementsAre(4, 8, 3, 3));
}

TEST(Box, ChannelsLastFragment) {
  // Pixels of 8 channels, rows of 3 pixels: [64, 144) is the last pixel of
  // image 0 and the whole of image 1.
  std::vector<Box> boxes = boxesOf({4, 8, 3, 3}, {0, 2, 3, 1}, 64, 144);
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_THAT(boxes[0].offsets, ElementsAre(0, 0, 2, 2));
  EXPECT_THAT(boxes[0].sizes, ElementsAre(1, 8, 1, 1));
  EXPECT_THAT(boxes[1].offsets, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(boxes[1].sizes, ElementsAre(1, 8, 3, 3));
  EXPECT_EQ(boxes[1].flatBegin, 72);
}

TEST(Box, RanksStoreEveryElementOnce) {
  PlanInput input = vectors({}, {1, 4});
  input.params.push_back(param("w", {5, 7, 3, 3}, {0, 2, 3, 1}));
  Plan plan = planOf(std::move(input));
  std::vector<int> hits(5 * 7 * 3 * 3);
  for (const Fragment &fragment : fragmentsOf(plan, 0))
    for (const Box &box : boxesOf(plan.params()[0].shape,
                                  plan.params()[0].order, fragment.paramOffset,
                                  fragment.paramOffset + fragment.elements))
      walk(plan.params()[0].shape, box,
           [&](int64_t logical) { ++hits[static_cast<size_t>(logical)]; });
  EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), int64_t(hits.size()));
}
