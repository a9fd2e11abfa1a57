// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on the mesh of ranks; see the header.
#include "layout/Mesh.h"

#include "layout/Checked.h"

#include <limits>
#include <string>

namespace dfa {
namespace layout {

Expected<int64_t> meshRanks(const Mesh &mesh) {
  std::string found = "replicate=" + std::to_string(mesh.replicate) +
                      ", shard=" + std::to_string(mesh.shard);
  if (mesh.replicate < 1 || mesh.shard < 1)
    return Status::error("mesh: expected axes of at least 1 rank, but got " +
                         found);
  int64_t ranks = 0;
  if (!checkedMul(mesh.replicate, mesh.shard, ranks) ||
      ranks > std::numeric_limits<int32_t>::max())
    return Status::error("mesh: expected at most 2147483647 ranks, but got " +
                         found);
  return ranks;
}

Expected<Coordinate> coordinateOf(const Mesh &mesh, int64_t rank) {
  Expected<int64_t> ranks = meshRanks(mesh);
  if (!ranks)
    return ranks.status();
  if (rank < 0 || rank >= *ranks)
    return Status::error("mesh: expected a rank from 0 to " +
                         std::to_string(*ranks - 1) + ", but got " +
                         std::to_string(rank));
  Coordinate result;
  result.replica = rank / mesh.shard;
  result.shard = rank % mesh.shard;
  return result;
}

Expected<std::vector<int64_t>> axisGroup(const Mesh &mesh, int64_t rank,
                                         Axis axis) {
  Expected<Coordinate> at = coordinateOf(mesh, rank);
  if (!at)
    return at.status();
  bool alongShard = axis == Axis::Shard;
  int64_t count = alongShard ? mesh.shard : mesh.replicate;
  int64_t first = alongShard ? at->replica * mesh.shard : at->shard;
  int64_t stride = alongShard ? 1 : mesh.shard;
  std::vector<int64_t> ranks;
  ranks.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ranks.push_back(first + i * stride);
  return ranks;
}

} // namespace layout
} // namespace dfa
