// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mesh of ranks: replicas, each split into shards. Where collectives run
// and which rank owns which shard follow from it; communicators do not live
// here.
#ifndef DFA_LAYOUT_MESH_H
#define DFA_LAYOUT_MESH_H

#include "layout/Status.h"

#include <cstdint>
#include <vector>

namespace dfa {
namespace layout {

/// Sizes of the axes, slowest first: rank = replica * shard + shard index.
struct Mesh {
  int64_t replicate = 1;
  int64_t shard = 1;
};

/// Where a rank of the mesh stands on each axis.
struct Coordinate {
  int64_t replica = 0;
  int64_t shard = 0;
};

enum class Axis : uint8_t { Replicate, Shard };

/// The number of ranks; an error if an axis is below 1 or the product does not
/// fit in 31 bits (collective libraries number ranks with an int).
Expected<int64_t> meshRanks(const Mesh &mesh);

/// The coordinate of a rank of the mesh.
Expected<Coordinate> coordinateOf(const Mesh &mesh, int64_t rank);

/// The ranks of the group along `axis` that contains `rank`, in axis order.
Expected<std::vector<int64_t>> axisGroup(const Mesh &mesh, int64_t rank,
                                         Axis axis);

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_MESH_H
