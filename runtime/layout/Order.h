// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a tensor's elements follow one another in memory: orders, strides, and
// the map between logical (row-major) and flat (in order) indices. Buckets and
// shards are not known here.
#ifndef DFA_LAYOUT_ORDER_H
#define DFA_LAYOUT_ORDER_H

#include "layout/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dfa {
namespace layout {

/// Dimensions of a tensor, slowest first in memory: [0, 2, 3, 1] is NHWC.
using Order = std::vector<int32_t>;

/// The product of a shape; an error names `name` if a size is negative or the
/// product does not fit in 64 bits.
Expected<int64_t> elementCount(const std::string &name,
                               const std::vector<int64_t> &shape);

/// The canonical order with the same memory as `order` (empty: row-major).
/// A dimension of size 1 has no place in memory; it goes behind its logical
/// predecessor, so that equal memory means equal orders. Without elements the
/// order is row-major.
Expected<Order> canonicalOrder(const std::string &name,
                               const std::vector<int64_t> &shape,
                               const Order &order);

/// The canonical order of a dense tensor with these strides, in elements;
/// strides of dimensions of size 1, and of tensors without elements, carry no
/// meaning. An error names the tensor, its shape and its strides if they leave
/// gaps or overlap.
Expected<Order> orderFromStrides(const std::string &name,
                                 const std::vector<int64_t> &shape,
                                 const std::vector<int64_t> &strides);

/// Strides, in elements, of a tensor stored in `order` (as canonicalOrder
/// returned it for this shape).
std::vector<int64_t> stridesFromOrder(const std::vector<int64_t> &shape,
                                      const Order &order);

/// The bijection between the logical index (row-major, as the model counts)
/// and the flat index (as memory counts) of one parameter.
class IndexMap {
public:
  /// `order` must be canonical for `shape`.
  IndexMap(const std::vector<int64_t> &shape, const Order &order);

  int64_t elements() const { return count; }

  /// True if both indices are always equal.
  bool isIdentity() const { return identity; }

  /// Where memory has the element that the model counts as `logical`. Both
  /// maps expect an index in [0, elements()).
  int64_t toFlat(int64_t logical) const {
    return identity ? logical : convert(logical, toFlatSteps);
  }

  /// How the model counts the element that memory has at `flat`.
  int64_t toLogical(int64_t flat) const {
    return identity ? flat : convert(flat, toLogicalSteps);
  }

private:
  /// One dimension of the source: its size and the target's stride for it.
  struct Step {
    int64_t size;
    int64_t stride;
  };

  static int64_t convert(int64_t index, const std::vector<Step> &steps);

  int64_t count = 1;
  bool identity = true;
  std::vector<Step> toFlatSteps;    // fastest dimension first
  std::vector<Step> toLogicalSteps; // fastest dimension first
};

/// "[2, 3]", for messages and dumps.
std::string listText(const std::vector<int64_t> &values);
std::string listText(const std::vector<int32_t> &values);

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_ORDER_H
