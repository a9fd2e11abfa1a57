// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders, strides and index maps; see the header.
#include "layout/Order.h"

#include "layout/Checked.h"

#include <algorithm>

namespace dfa {
namespace layout {

template <typename T>
static std::string listTextOf(const std::vector<T> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0)
      text += ", ";
    text += std::to_string(values[i]);
  }
  return text + "]";
}

std::string listText(const std::vector<int64_t> &values) {
  return listTextOf(values);
}

std::string listText(const std::vector<int32_t> &values) {
  return listTextOf(values);
}

static std::string tensorText(const std::string &name,
                              const std::vector<int64_t> &shape) {
  return "parameter '" + name + "' of shape " + listText(shape);
}

Expected<int64_t> elementCount(const std::string &name,
                               const std::vector<int64_t> &shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return Status::error(tensorText(name, shape) +
                           ": expected sizes of at least 0, but got " +
                           std::to_string(size));
    empty |= size == 0;
  }
  if (empty)
    return int64_t(0);
  for (int64_t size : shape)
    if (!checkedMul(count, size, count))
      return Status::error(tensorText(name, shape) +
                           ": expected an element count that fits in 64 bits");
  return count;
}

static Order rowMajor(size_t rank) {
  Order order(rank);
  for (size_t i = 0; i < rank; ++i)
    order[i] = static_cast<int32_t>(i);
  return order;
}

/// Inserts the dimensions of size 1 into an order of the others.
static Order insertUnitDims(const std::vector<int64_t> &shape,
                            const Order &others) {
  Order order = others;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] != 1)
      continue;
    auto place = order.begin();
    if (dim != 0)
      place =
          std::find(order.begin(), order.end(), static_cast<int32_t>(dim) - 1) +
          1;
    order.insert(place, static_cast<int32_t>(dim));
  }
  return order;
}

Expected<Order> canonicalOrder(const std::string &name,
                               const std::vector<int64_t> &shape,
                               const Order &order) {
  Expected<int64_t> count = elementCount(name, shape);
  if (!count)
    return count.status();
  if (order.empty() && !shape.empty())
    return rowMajor(shape.size());
  std::vector<bool> seen(shape.size(), false);
  bool valid = order.size() == shape.size();
  for (size_t i = 0; valid && i < order.size(); ++i) {
    valid = order[i] >= 0 && static_cast<size_t>(order[i]) < shape.size() &&
            !seen[static_cast<size_t>(order[i])];
    if (valid)
      seen[static_cast<size_t>(order[i])] = true;
  }
  if (!valid)
    return Status::error(tensorText(name, shape) +
                         ": expected an order that lists each of its " +
                         std::to_string(shape.size()) +
                         " dimensions once, but got " + listText(order));
  if (*count == 0)
    return rowMajor(shape.size());
  Order others;
  for (int32_t dim : order)
    if (shape[static_cast<size_t>(dim)] != 1)
      others.push_back(dim);
  return insertUnitDims(shape, others);
}

Expected<Order> orderFromStrides(const std::string &name,
                                 const std::vector<int64_t> &shape,
                                 const std::vector<int64_t> &strides) {
  Expected<int64_t> count = elementCount(name, shape);
  if (!count)
    return count.status();
  std::string what =
      tensorText(name, shape) + " and strides " + listText(strides);
  if (strides.size() != shape.size())
    return Status::error(what + ": expected one stride for each dimension");
  if (*count == 0)
    return rowMajor(shape.size());
  Order others;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (shape[dim] != 1)
      others.push_back(static_cast<int32_t>(dim));
  std::sort(others.begin(), others.end(), [&](int32_t a, int32_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  int64_t dense = 1;
  for (size_t i = others.size(); i-- > 0;) {
    size_t dim = static_cast<size_t>(others[i]);
    if (strides[dim] != dense)
      return Status::error(
          what +
          ": expected a dense tensor (no gaps, no overlap), but "
          "dimension " +
          std::to_string(dim) + " has stride " + std::to_string(strides[dim]) +
          " where " + std::to_string(dense) + " is dense");
    dense *= shape[dim]; // at most *count, which fits
  }
  return insertUnitDims(shape, others);
}

std::vector<int64_t> stridesFromOrder(const std::vector<int64_t> &shape,
                                      const Order &order) {
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    size_t dim = static_cast<size_t>(order[i]);
    strides[dim] = stride;
    // A size of 0 leaves the strides of a size of 1, as PyTorch does; this
    // also keeps the product of huge sizes beside a 0 from being needed.
    int64_t next = 0;
    if (checkedMul(stride, std::max<int64_t>(shape[dim], 1), next))
      stride = next;
  }
  return strides;
}

IndexMap::IndexMap(const std::vector<int64_t> &shape, const Order &order) {
  std::vector<int64_t> flat = stridesFromOrder(shape, order);
  std::vector<int64_t> logical =
      stridesFromOrder(shape, rowMajor(shape.size()));
  for (int64_t size : shape)
    if (size == 0)
      count = 0;
  if (count == 0)
    return;
  for (size_t i = shape.size(); i-- > 0;) {
    count *= shape[i];
    if (shape[i] == 1)
      continue;
    identity &= flat[i] == logical[i];
    toFlatSteps.push_back({shape[i], flat[i]});
  }
  for (size_t i = order.size(); i-- > 0;) {
    size_t dim = static_cast<size_t>(order[i]);
    if (shape[dim] != 1)
      toLogicalSteps.push_back({shape[dim], logical[dim]});
  }
}

int64_t IndexMap::convert(int64_t index, const std::vector<Step> &steps) {
  int64_t result = 0;
  for (const Step &step : steps) {
    result += index % step.size * step.stride;
    index /= step.size;
  }
  return result;
}

} // namespace layout
} // namespace dfa
