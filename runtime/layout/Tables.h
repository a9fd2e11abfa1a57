// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one rank owns of a plan: the rows of the segment, chunk and atom tables
// that kernels read. Addresses are filled in by the runtime.
#ifndef DFA_LAYOUT_TABLES_H
#define DFA_LAYOUT_TABLES_H

#include "dfa-rt/abi.h"
#include "layout/Plan.h"

#include <cstdint>
#include <vector>

namespace dfa {
namespace layout {

/// A half-open run of rows.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// One row for each placed parameter, also where this rank owns nothing of it
/// (elements = 0): so row numbers, presence words and step counts mean the
/// same on all ranks.
struct Segment {
  int64_t param = 0;       // index into Plan::params()
  int64_t bucket = 0;      // index into Plan::buckets()
  int64_t elements = 0;    // of the local fragment
  int64_t paramOffset = 0; // its first element, counted in the parameter
  int64_t shardOffset = 0; // and in the class's shard arrays
  int64_t fullOffset = 0;  // the parameter's start in the class's full arrays
  int64_t firstAtom = 0;   // row of its first atom; see dfa_rt_segment_t
  int64_t atoms = 0;
};

struct TableOptions {
  /// Elements that a warp of the kernel handles: lanes x vector width.
  int64_t tileElements = 128;
  /// A power of two from 512 to 65536, or 0: chosen by chooseChunkElements.
  int64_t chunkElements = 0;
};

/// The rows of one class or one bucket within RankTables.
struct TableRanges {
  Range segments;
  Range chunks;
  Range atoms;
};

/// The tables of one rank. Segment numbers in chunks and atoms count from the
/// first segment of their class, offsets from the first local element of their
/// segment.
struct RankTables {
  int64_t rank = 0;
  Coordinate coordinate;
  int64_t chunkElements = 0;
  std::vector<Segment> segments; // in the order of Plan::sequence()
  std::vector<dfa_rt_chunk_t> chunks;
  std::vector<dfa_rt_chunk_t> atoms;
  std::vector<TableRanges> classes; // one for each class
  std::vector<TableRanges> buckets; // one for each bucket
};

/// A part of a parameter on a rank of the shard axis.
struct Fragment {
  int64_t shard = 0;       // index on the shard axis
  int64_t paramOffset = 0; // first element, counted in the parameter
  int64_t shardOffset = 0; // and in the class's shard arrays
  int64_t elements = 0;
};

/// The tables of `rank` (of the mesh). Time and memory are those of the plan
/// and of what this rank owns; other ranks' parts are not computed.
Expected<RankTables> buildRankTables(const Plan &plan, int64_t rank,
                                     const TableOptions &options = {});

/// Chunks of a whole bucket: every element of its parameters, offsets counted
/// from the parameter's first element.
Expected<std::vector<dfa_rt_chunk_t>>
buildFullChunks(const Plan &plan, int64_t bucket, int64_t chunkElements);

/// The fragments of a parameter, by ascending offset; none for a frozen or an
/// empty one, and those of its storage for a shared one.
std::vector<Fragment> fragmentsOf(const Plan &plan, int64_t param);

/// The largest chunk that launches at most 1/256 more parts of `tileElements`
/// than the smallest chunks would: large tensors get few rows, and a model of
/// small ones does not launch warps that find nothing to do.
int64_t chooseChunkElements(const std::vector<Segment> &segments,
                            int64_t tileElements);

/// parts_per_chunk_log2 of a kernel whose warps handle `tileElements`.
uint32_t partsPerChunkLog2(int64_t chunkElements, int64_t tileElements);

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_TABLES_H
