// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses of arrays, and the allocation of those that nobody bound.

#include "program/Arrays.h"

#include <algorithm>

namespace dfa::rt {

int64_t ArrayStorage::segmentElements(int64_t segment) const {
  const SegmentInfo &row = info.segments[segment];
  return array.full ? row.fullElements : row.elements;
}

int64_t ArrayStorage::bucketElements(int64_t bucket) const {
  return array.full ? bucketInfo(bucket).fullElements
                    : bucketInfo(bucket).shardElements;
}

void *ArrayStorage::segmentAddress(int64_t segment) const {
  if (segments[segment])
    return segments[segment];
  const SegmentInfo &row = info.segments[segment];
  if (segmentElements(segment) == 0)
    return nullptr;
  char *base = static_cast<char *>(buckets[row.bucket - info.buckets.begin]);
  if (!base)
    return nullptr;
  const BucketInfo &bucket = tables.buckets[row.bucket];
  int64_t offset = array.full ? row.fullOffset - bucket.fullBase
                              : row.shardOffset - bucket.shardBase;
  return base + offset * static_cast<int64_t>(sizeOf(array.element));
}

void *ArrayStorage::bucketAddress(int64_t bucket) const {
  const RowRange &rows = bucketInfo(bucket).rows.segments;
  for (int64_t segment = rows.begin; segment < rows.end; ++segment)
    if (segments[segment])
      return nullptr;
  return buckets[bucket];
}

bool ArrayStorage::isBound() const {
  auto isSet = [](const void *address) { return address != nullptr; };
  return std::any_of(buckets.begin(), buckets.end(), isSet) ||
         std::any_of(segments.begin(), segments.end(), isSet);
}

Status ArrayStorage::allocateUnbound(Device &device, Stream stream) {
  size_t width = sizeOf(array.element);
  // Buckets whose segments are all bound need nothing; the others share one
  // allocation, so that a class with one bucket is one flat array. A rank that
  // owns only padding of a bucket still takes part in its collectives.
  std::vector<bool> wanted(buckets.size());
  int64_t elements = 0;
  for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const RowRange &rows = bucketInfo(bucket).rows.segments;
    bool bound = false;
    bool unbound = false;
    for (int64_t segment = rows.begin; segment < rows.end; ++segment) {
      bound |= segments[segment] != nullptr;
      unbound |= !segments[segment] && segmentElements(segment) > 0;
    }
    wanted[bucket] = !buckets[bucket] && (unbound || !bound);
    if (wanted[bucket])
      elements += bucketElements(bucket);
  }
  if (elements == 0)
    return Status();
  DFA_RT_TRY(allocate(device, elements * width, memory));
  DFA_RT_TRY(device.zero(memory.get().handle, elements * width, stream));
  char *next = static_cast<char *>(memory.get().handle);
  for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    if (!wanted[bucket])
      continue;
    buckets[bucket] = next;
    next += bucketElements(bucket) * static_cast<int64_t>(width);
  }
  return Status();
}

} // namespace dfa::rt
