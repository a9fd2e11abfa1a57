// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an optimizer must know of a layout on one rank: segments, chunks, atoms
// and buckets, as plain arrays. They come from runtime/layout, or from a caller
// of the C ABI that has a layout of its own.

#ifndef DFA_PROGRAM_TABLES_H
#define DFA_PROGRAM_TABLES_H

#include "base/Status.h"
#include "dfa-rt/abi.h"
#include "program/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dfa::layout {
class Plan;
struct RankTables;
} // namespace dfa::layout

namespace dfa::rt {

/// A half-open run of rows.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// One parameter of a class on this rank. A parameter of which the rank owns
/// nothing has a row with no elements.
struct SegmentInfo {
  int64_t elements = 0; // of the local part
  int64_t firstAtom = 0;
  int64_t atoms = 0;
  uint32_t group = 0;
  int64_t bucket = 0;       // index into Tables::buckets
  int64_t shardOffset = 0;  // of the local part in the class's shard arrays
  int64_t fullOffset = 0;   // of the parameter in the class's full arrays
  int64_t fullElements = 0; // of the whole parameter
  int64_t localOffset = 0;  // of the local part in the parameter
};

/// The rows that one bucket, or one class, owns of each table.
struct TableRanges {
  RowRange segments; // counted from the first segment of the class
  RowRange chunks;
  RowRange atoms;
  RowRange full;
};

struct BucketInfo {
  TableRanges rows;
  int64_t shardBase = 0;
  int64_t shardElements = 0;
  int64_t fullBase = 0;
  int64_t fullElements = 0;
};

struct ClassInfo {
  TableRanges rows;
  std::vector<SegmentInfo> segments;
  RowRange buckets;
  std::vector<int64_t> order; // its buckets in the order of collectives
  int64_t shardElements = 0;
  int64_t fullElements = 0;
};

/// One entry of `classes` for each class of the program, in its order.
struct Tables {
  int64_t groups = 1;
  std::vector<ClassInfo> classes;
  std::vector<BucketInfo> buckets;
  std::vector<dfa_rt_chunk_t> chunks;
  std::vector<dfa_rt_chunk_t> atoms;
  std::vector<dfa_rt_chunk_t> full; // chunks of whole, unsharded buckets

  /// Takes the tables of a rank from the layout library, classes matched by
  /// name.
  static Result<Tables> fromLayout(const Program &program,
                                   const layout::Plan &plan,
                                   const layout::RankTables &rank);

  /// Checks that the rows are consistent and fit the program: a wrong row
  /// would make kernels write out of bounds.
  Status verify(const Program &program) const;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_TABLES_H
