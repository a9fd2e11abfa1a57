// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index arithmetic of permuted dimensions.
#include "support/ElementOrder.h"

#include "support/Array.h"

#include <algorithm>

using namespace dfa::run;

Status ElementOrder::create(const std::vector<int64_t> &shape,
                            const std::vector<int64_t> &order,
                            ElementOrder &result) {
  size_t rank = shape.size();
  std::vector<bool> seen(rank, false);
  bool valid = order.empty() || order.size() == rank;
  for (int64_t dim : order) {
    bool inRange = dim >= 0 && dim < static_cast<int64_t>(rank);
    valid = valid && inRange && !seen[dim];
    if (!valid)
      break;
    seen[dim] = true;
  }
  if (!valid)
    return Status::expects("a permutation of the " + std::to_string(rank) +
                               " dimensions",
                           describeShape(order));
  ArrayInfo info;
  info.type = ElementType::F64; // as large as elements get
  info.shape = shape;
  Status status = info.check();
  if (!status.ok())
    return status;

  result = ElementOrder();
  result.total = info.elements();
  std::vector<int64_t> logical(rank, 1);
  for (size_t d = rank; d > 1; --d)
    logical[d - 2] = logical[d - 1] * std::max<int64_t>(shape[d - 1], 1);
  for (size_t k = 0; k < rank; ++k) {
    size_t dim = order.empty() ? k : static_cast<size_t>(order[k]);
    if (shape[dim] == 1)
      continue;
    result.extents.push_back(shape[dim]);
    result.strides.push_back(logical[dim]);
  }
  // Strides that never grow from one dimension to the next are C order.
  result.identity = result.total == 0 || std::is_sorted(result.strides.rbegin(),
                                                        result.strides.rend());
  return Status();
}

void ElementOrder::indices(int64_t begin, int64_t count,
                           int64_t *target) const {
  if (identity) {
    for (int64_t i = 0; i < count; ++i)
      target[i] = begin + i;
    return;
  }
  size_t rank = extents.size();
  std::vector<int64_t> position(rank, 0);
  int64_t rest = begin, index = 0;
  for (size_t k = rank; k > 0; --k) {
    position[k - 1] = rest % extents[k - 1];
    index += position[k - 1] * strides[k - 1];
    rest /= extents[k - 1];
  }
  int64_t rowExtent = extents[rank - 1], rowStride = strides[rank - 1];
  while (count > 0) {
    int64_t run = std::min(count, rowExtent - position[rank - 1]);
    for (int64_t i = 0; i < run; ++i)
      target[i] = index + i * rowStride;
    target += run;
    count -= run;
    // Back to the start of the row, then on to the next one.
    index -= position[rank - 1] * rowStride;
    position[rank - 1] = 0;
    for (size_t k = rank - 1; k > 0; --k) {
      index += strides[k - 1];
      if (++position[k - 1] < extents[k - 1])
        break;
      index -= strides[k - 1] * extents[k - 1];
      position[k - 1] = 0;
    }
  }
}
