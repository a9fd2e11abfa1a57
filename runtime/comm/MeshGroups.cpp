// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row-major coordinates: stepping along an axis moves by the product of the
// sizes of the faster axes.

#include "comm/MeshGroups.h"

#include <algorithm>
#include <cstdint>

namespace dfa::rt {

static Status checkMesh(const std::vector<MeshAxis> &axes,
                        const std::vector<int> &ranks, int worldSize) {
  int64_t product = 1;
  for (const MeshAxis &axis : axes) {
    if (axis.size < 1)
      return DFA_RT_ERROR(InvalidArgument,
                          "mesh axis '%s': expected a size of at least 1, "
                          "found %d",
                          axis.name.c_str(), axis.size);
    for (const MeshAxis &other : axes)
      if (&other != &axis && other.name == axis.name)
        return DFA_RT_ERROR(InvalidArgument, "mesh axis '%s' occurs twice",
                            axis.name.c_str());
    product *= axis.size;
    if (product > INT32_MAX)
      break;
  }
  if (product != int64_t(ranks.size()))
    return DFA_RT_ERROR(InvalidArgument,
                        "mesh: expected as many ranks as the axes multiply to "
                        "(%lld), found %zu",
                        (long long)product, ranks.size());
  std::vector<bool> seen(size_t(std::max(worldSize, 0)));
  for (int rank : ranks) {
    if (rank < 0 || rank >= worldSize)
      return DFA_RT_ERROR(InvalidArgument,
                          "mesh: expected ranks below %d, found %d", worldSize,
                          rank);
    if (seen[size_t(rank)])
      return DFA_RT_ERROR(InvalidArgument, "mesh: rank %d occurs twice", rank);
    seen[size_t(rank)] = true;
  }
  return Status();
}

Status meshGroups(const std::vector<MeshAxis> &axes,
                  const std::vector<int> &ranks, int worldSize, int self,
                  std::vector<AxisGroup> &groups) {
  groups.clear();
  DFA_RT_TRY(checkMesh(axes, ranks, worldSize));
  auto place = std::find(ranks.begin(), ranks.end(), self);
  if (place == ranks.end())
    return DFA_RT_ERROR(InvalidArgument,
                        "mesh: rank %d is not one of its %zu ranks", self,
                        ranks.size());
  int64_t position = place - ranks.begin();
  int64_t stride = int64_t(ranks.size());
  for (const MeshAxis &axis : axes) {
    stride /= axis.size;
    AxisGroup group;
    group.axis = axis.name;
    group.index = int(position / stride % axis.size);
    int64_t first = position - int64_t(group.index) * stride;
    for (int i = 0; i < axis.size; ++i)
      group.ranks.push_back(ranks[size_t(first + i * stride)]);
    // Positions of equal coordinates apart from this axis, counted without it.
    int64_t slower = position / (stride * axis.size);
    group.color = int(slower * stride + position % stride);
    groups.push_back(std::move(group));
  }
  return Status();
}

} // namespace dfa::rt
