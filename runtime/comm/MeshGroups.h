// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ranks form the group of each mesh axis, for a mesh laid on any subset
// of the world's ranks. Arithmetic only.

#ifndef DFA_COMM_MESHGROUPS_H
#define DFA_COMM_MESHGROUPS_H

#include "base/Status.h"

#include <string>
#include <vector>

namespace dfa::rt {

/// One axis of the mesh.
struct MeshAxis {
  std::string name;
  int size = 1;
};

/// The group along one axis that a rank belongs to.
struct AxisGroup {
  std::string axis;
  std::vector<int> ranks; ///< world ranks, in axis order
  int index = 0;          ///< this rank's place in `ranks`
  int color = 0;          ///< number of the group among those of its axis
};

/// Computes the groups of world rank `self`, one an axis. Axes come slowest
/// first (replicate, then shard); ranks[i] is the world rank at mesh position
/// i. Fails if sizes and ranks do not match, a rank occurs twice, or `self` is
/// not among them.
Status meshGroups(const std::vector<MeshAxis> &axes,
                  const std::vector<int> &ranks, int worldSize, int self,
                  std::vector<AxisGroup> &groups);

} // namespace dfa::rt

#endif // DFA_COMM_MESHGROUPS_H
