// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts flat ranges into boxes; see the header.
#include "layout/Box.h"

#include <algorithm>

namespace dfa {
namespace layout {

namespace {

/// Walks the dimensions in memory order, with the slower ones fixed.
class BoxCutter {
public:
  BoxCutter(const std::vector<int64_t> &shape, const Order &order)
      : shape(shape), order(order), prefix(shape.size(), 0) {}

  /// Cuts [begin, end), counted from the first element that has the fixed
  /// indices; `depth` dimensions are fixed, `base` elements lie before.
  void cut(size_t depth, int64_t base, int64_t begin, int64_t end);

  std::vector<Box> take() { return std::move(boxes); }

private:
  int64_t inner(size_t depth) const {
    int64_t elements = 1;
    for (size_t i = depth + 1; i < order.size(); ++i)
      elements *= shape[static_cast<size_t>(order[i])];
    return elements;
  }

  /// Adds indices [first, last) of the dimension at `depth`, all of the faster
  /// ones.
  void emit(size_t depth, int64_t base, int64_t first, int64_t last,
            int64_t elements);

  const std::vector<int64_t> &shape;
  const Order &order;
  std::vector<int64_t> prefix; // by position in order
  std::vector<Box> boxes;
};

} // namespace

void BoxCutter::emit(size_t depth, int64_t base, int64_t first, int64_t last,
                     int64_t elements) {
  Box box;
  box.offsets.assign(shape.size(), 0);
  box.sizes = shape;
  for (size_t i = 0; i < depth; ++i) {
    box.offsets[static_cast<size_t>(order[i])] = prefix[i];
    box.sizes[static_cast<size_t>(order[i])] = 1;
  }
  if (depth < order.size()) {
    box.offsets[static_cast<size_t>(order[depth])] = first;
    box.sizes[static_cast<size_t>(order[depth])] = last - first;
  }
  box.flatBegin = base;
  box.elements = elements;
  boxes.push_back(std::move(box));
}

void BoxCutter::cut(size_t depth, int64_t base, int64_t begin, int64_t end) {
  if (begin >= end)
    return;
  if (depth == order.size()) { // one element, all indices fixed
    emit(depth, base, 0, 1, 1);
    return;
  }
  const int64_t step = inner(depth);
  int64_t first = begin / step;
  const int64_t last = end / step;
  if (begin % step != 0) {
    prefix[depth] = first;
    cut(depth + 1, base + first * step, begin - first * step,
        std::min(end - first * step, step));
    ++first;
  }
  if (first < last)
    emit(depth, base + first * step, first, last, (last - first) * step);
  // What is left of an incomplete last index, unless the head above was it.
  if (end % step != 0 && last >= first) {
    prefix[depth] = last;
    cut(depth + 1, base + last * step, 0, end - last * step);
  }
}

std::vector<Box> boxesOf(const std::vector<int64_t> &shape, const Order &order,
                         int64_t begin, int64_t end) {
  BoxCutter cutter(shape, order);
  cutter.cut(0, 0, begin, end);
  return cutter.take();
}

} // namespace layout
} // namespace dfa
