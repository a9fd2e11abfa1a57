// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments as boxes of logical indices: what a checkpoint stores, so that
// another rank count, order or framework can read it. Files are not known here.
#ifndef DFA_LAYOUT_BOX_H
#define DFA_LAYOUT_BOX_H

#include "layout/Order.h"

#include <cstdint>
#include <vector>

namespace dfa {
namespace layout {

/// A box of logical indices whose elements are one run in memory.
struct Box {
  std::vector<int64_t> offsets; // first index of each logical dimension
  std::vector<int64_t> sizes;   // extent of each logical dimension
  int64_t flatBegin = 0; // where the run starts, counted in the parameter
  int64_t elements = 0;  // the product of sizes
};

/// Cuts the flat range [begin, end) of a parameter into boxes, by ascending
/// flatBegin: at most 2 x dimensions - 1 of them. Within a box, memory goes
/// through the dimensions in `order`, which must be canonical for `shape`. The
/// range must lie in the parameter; an empty one gives no box.
std::vector<Box> boxesOf(const std::vector<int64_t> &shape, const Order &order,
                         int64_t begin, int64_t end);

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_BOX_H
