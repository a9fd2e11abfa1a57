// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the arrays of the classes lie: in memory of the caller, a segment or a
// bucket at a time, or in memory allocated here.

#ifndef DFA_PROGRAM_ARRAYS_H
#define DFA_PROGRAM_ARRAYS_H

#include "base/Owned.h"
#include "program/Program.h"
#include "program/Tables.h"

#include <vector>

namespace dfa::rt {

/// One array of one class.
class ArrayStorage {
public:
  ArrayStorage(const ProgramArray &array, const ClassInfo &info,
               const Tables &tables)
      : array(array), info(info), tables(tables), buckets(info.buckets.size()),
        segments(info.segments.size()) {}

  /// Uses the caller's memory for one segment; null undoes it.
  void bindSegment(int64_t segment, void *address) {
    segments[segment] = address;
  }
  /// Uses the caller's memory for a bucket (counted within the class).
  void bindBucket(int64_t bucket, void *address) { buckets[bucket] = address; }

  /// Whether any part of it is in the caller's memory.
  bool isBound() const;

  /// Allocates zeroed memory for whatever is bound to none.
  Status allocateUnbound(Device &device, Stream stream);

  /// The address of the segment's first element, null if it has none.
  void *segmentAddress(int64_t segment) const;
  /// The address of the bucket's first element, null if it is not contiguous
  /// because a segment of it is bound on its own.
  void *bucketAddress(int64_t bucket) const;
  int64_t bucketElements(int64_t bucket) const;
  int64_t segmentElements(int64_t segment) const;

private:
  const BucketInfo &bucketInfo(int64_t bucket) const {
    return tables.buckets[info.buckets.begin + bucket];
  }

  const ProgramArray &array;
  const ClassInfo &info;
  const Tables &tables;
  std::vector<void *> buckets;
  std::vector<void *> segments;
  DeviceMemory memory;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_ARRAYS_H
