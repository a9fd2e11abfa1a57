// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Permuted orders against nested loops written out.
#include "support/ElementOrder.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>

using namespace dfa::run;
using Ints = std::vector<int64_t>;

TEST(ElementOrder, ChannelsLast) {
  ElementOrder order;
  ASSERT_TRUE(ElementOrder::create({2, 3, 4, 5}, {0, 2, 3, 1}, order).ok());
  EXPECT_FALSE(order.isIdentity());
  Ints expected;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t w = 0; w < 5; ++w)
        for (int64_t c = 0; c < 3; ++c)
          expected.push_back(((n * 3 + c) * 4 + h) * 5 + w);
  // Every range, so every start position and every end.
  for (int64_t begin = 0; begin <= 120; ++begin)
    for (int64_t count = 0; begin + count <= 120; ++count) {
      Ints found(count);
      order.indices(begin, count, found.data());
      ASSERT_TRUE(
          std::equal(found.begin(), found.end(), expected.begin() + begin))
          << begin << " " << count;
    }
}

TEST(ElementOrder, EveryPermutationIsABijection) {
  Ints shape = {3, 1, 4, 2}, order = {0, 1, 2, 3};
  do {
    ElementOrder elements;
    ASSERT_TRUE(ElementOrder::create(shape, order, elements).ok());
    ASSERT_EQ(elements.elements(), 24);
    Ints memory(24), logical(24, -1), back(24, -1);
    std::iota(memory.begin(), memory.end(), 0);
    elements.toLogical(memory.data(), 0, 24, logical.data());
    Ints sorted = logical;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, memory);
    elements.fromLogical(logical.data(), 0, 24, back.data());
    EXPECT_EQ(back, memory);
    // A neighbour along the fastest dimension of more than one element is a
    // neighbour in memory.
    Ints strides = {8, 8, 2, 1};
    int64_t fastest = order[3] == 1 ? order[2] : order[3];
    Ints index(2);
    elements.indices(0, 2, index.data());
    EXPECT_EQ(index[1] - index[0], strides[fastest]);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ElementOrder, DimensionsOfOneDoNotMatter) {
  ElementOrder order;
  ASSERT_TRUE(ElementOrder::create({320, 4, 1, 1}, {0, 2, 3, 1}, order).ok());
  EXPECT_TRUE(order.isIdentity());
  ASSERT_TRUE(ElementOrder::create({}, {}, order).ok());
  EXPECT_EQ(order.elements(), 1);
  EXPECT_TRUE(order.isIdentity());
  ASSERT_TRUE(ElementOrder::create({2, 0, 3}, {2, 1, 0}, order).ok());
  EXPECT_EQ(order.elements(), 0);
  order.indices(0, 0, nullptr);
}

TEST(ElementOrder, RefusesWhatIsNoPermutation) {
  ElementOrder order;
  for (const Ints &wrong :
       {Ints({0}), Ints({0, 0}), Ints({0, 2}), Ints({-1, 0}), Ints({0, 1, 2})})
    EXPECT_FALSE(ElementOrder::create({2, 3}, wrong, order).ok());
  EXPECT_EQ(ElementOrder::create({2, 3}, {0, 2}, order).message(),
            "expects a permutation of the 2 dimensions, but got [0, 2]");
  EXPECT_FALSE(
      ElementOrder::create({int64_t(1) << 40, int64_t(1) << 40}, {}, order)
          .ok());
}
