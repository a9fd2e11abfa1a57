// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts a plan into one rank's tables; see the header.
#include "layout/Tables.h"

#include "layout/Checked.h"

#include <algorithm>
#include <new>

namespace dfa {
namespace layout {

static constexpr int64_t minChunkElements = 512;
static constexpr int64_t maxChunkElements = 65536;

/// Checks a chunk size that someone chose.
static Status checkChunkElements(int64_t elements) {
  if (isPowerOfTwo(elements) && elements >= minChunkElements &&
      elements <= maxChunkElements)
    return Status();
  return Status::error("expected chunk elements that are a power of two from "
                       "512 to 65536, but got " +
                       std::to_string(elements));
}

/// Appends rows for `elements` elements of a segment, the first of which stands
/// `phase` elements behind a multiple of `step`: cuts are at the multiples.
static void appendRows(std::vector<dfa_rt_chunk_t> &rows, int64_t segment,
                       int64_t elements, int64_t step, int64_t phase) {
  for (int64_t offset = 0; offset < elements;) {
    int64_t length =
        std::min(step - (offset + phase) % step, elements - offset);
    dfa_rt_chunk_t row;
    row.offset = offset;
    row.length = static_cast<uint32_t>(length);
    row.segment = static_cast<uint32_t>(segment);
    rows.push_back(row);
    offset += length;
  }
}

/// The local fragment of a parameter as a segment row; atoms are not counted.
static Segment localSegment(const Plan &plan, int64_t param, int64_t shard) {
  const Placement &place = plan.placements()[static_cast<size_t>(param)];
  const Bucket &bucket = plan.buckets()[static_cast<size_t>(place.bucket)];
  Segment segment;
  segment.param = param;
  segment.bucket = place.bucket;
  segment.fullOffset = bucket.fullBase + place.start;
  int64_t low = shard * bucket.shardElements;
  int64_t begin = std::max(place.start, low);
  int64_t end =
      std::min(place.start + place.elements, low + bucket.shardElements);
  if (begin >= end)
    return segment;
  segment.elements = end - begin;
  segment.paramOffset = begin - place.start;
  segment.shardOffset = bucket.shardBase + (begin - low);
  return segment;
}

uint32_t partsPerChunkLog2(int64_t chunkElements, int64_t tileElements) {
  // A tile larger than the chunk leaves one warp with idle lanes.
  int64_t parts = ceilDiv(chunkElements, std::max<int64_t>(tileElements, 1));
  uint32_t log2 = 0;
  while ((int64_t(1) << log2) < parts)
    ++log2;
  return log2;
}

int64_t chooseChunkElements(const std::vector<Segment> &segments,
                            int64_t tileElements) {
  auto parts = [&](int64_t chunkElements) {
    int64_t chunks = 0;
    for (const Segment &segment : segments)
      chunks += ceilDiv(segment.elements, chunkElements);
    return static_cast<double>(chunks) *
           static_cast<double>(
               int64_t(1) << partsPerChunkLog2(chunkElements, tileElements));
  };
  double allowed = parts(minChunkElements) * (1 + 1.0 / 256);
  for (int64_t size = maxChunkElements; size > minChunkElements; size /= 2)
    if (parts(size) <= allowed)
      return size;
  return minChunkElements;
}

static Status checkTile(int64_t tileElements) {
  if (tileElements >= 1 && tileElements <= maxChunkElements)
    return Status();
  return Status::error("expected a tile of 1 to 65536 elements, but got " +
                       std::to_string(tileElements));
}

static Expected<RankTables> build(const Plan &plan, int64_t rank,
                                  const TableOptions &options) {
  Expected<Coordinate> coordinate = coordinateOf(plan.mesh(), rank);
  if (!coordinate)
    return coordinate.status();
  Status status = checkTile(options.tileElements);
  if (status.ok() && options.chunkElements != 0)
    status = checkChunkElements(options.chunkElements);
  if (!status.ok())
    return status;

  RankTables tables;
  tables.rank = rank;
  tables.coordinate = *coordinate;
  tables.segments.reserve(plan.sequence().size());
  for (int64_t param : plan.sequence())
    tables.segments.push_back(localSegment(plan, param, coordinate->shard));
  tables.chunkElements =
      options.chunkElements != 0
          ? options.chunkElements
          : chooseChunkElements(tables.segments, options.tileElements);

  tables.buckets.resize(plan.buckets().size());
  for (const ClassLayout &row : plan.classLayouts()) {
    TableRanges ofClass;
    ofClass.segments = {row.sequenceBegin, row.sequenceEnd};
    ofClass.chunks.begin = static_cast<int64_t>(tables.chunks.size());
    ofClass.atoms.begin = static_cast<int64_t>(tables.atoms.size());
    for (int64_t b = row.bucketBegin; b < row.bucketEnd; ++b) {
      const Bucket &bucket = plan.buckets()[static_cast<size_t>(b)];
      TableRanges &ofBucket = tables.buckets[static_cast<size_t>(b)];
      ofBucket.segments = {bucket.sequenceBegin, bucket.sequenceEnd};
      ofBucket.chunks.begin = static_cast<int64_t>(tables.chunks.size());
      ofBucket.atoms.begin = static_cast<int64_t>(tables.atoms.size());
      for (int64_t i = bucket.sequenceBegin; i < bucket.sequenceEnd; ++i) {
        Segment &segment = tables.segments[static_cast<size_t>(i)];
        int64_t number = i - row.sequenceBegin;
        appendRows(tables.chunks, number, segment.elements,
                   tables.chunkElements, 0);
        segment.firstAtom = static_cast<int64_t>(tables.atoms.size());
        // Atoms keep the parameter's own grid, wherever the shard was cut.
        appendRows(tables.atoms, number, segment.elements, DFA_RT_ATOM_ELEMENTS,
                   segment.paramOffset % DFA_RT_ATOM_ELEMENTS);
        segment.atoms =
            static_cast<int64_t>(tables.atoms.size()) - segment.firstAtom;
      }
      ofBucket.chunks.end = static_cast<int64_t>(tables.chunks.size());
      ofBucket.atoms.end = static_cast<int64_t>(tables.atoms.size());
    }
    ofClass.chunks.end = static_cast<int64_t>(tables.chunks.size());
    ofClass.atoms.end = static_cast<int64_t>(tables.atoms.size());
    tables.classes.push_back(ofClass);
  }
  return tables;
}

Expected<RankTables> buildRankTables(const Plan &plan, int64_t rank,
                                     const TableOptions &options) {
  try {
    return build(plan, rank, options);
  } catch (const std::bad_alloc &) {
    return Status::error("out of memory while building the tables of rank " +
                         std::to_string(rank));
  }
}

Expected<std::vector<dfa_rt_chunk_t>>
buildFullChunks(const Plan &plan, int64_t bucket, int64_t chunkElements) {
  if (bucket < 0 || static_cast<size_t>(bucket) >= plan.buckets().size())
    return Status::error("expected a bucket from 0 to " +
                         std::to_string(int64_t(plan.buckets().size()) - 1) +
                         ", but got " + std::to_string(bucket));
  Status status = checkChunkElements(chunkElements);
  if (!status.ok())
    return status;
  try {
    const Bucket &row = plan.buckets()[static_cast<size_t>(bucket)];
    std::vector<dfa_rt_chunk_t> chunks;
    for (int64_t i = row.sequenceBegin; i < row.sequenceEnd; ++i) {
      int64_t param = plan.sequence()[static_cast<size_t>(i)];
      const Placement &place = plan.placements()[static_cast<size_t>(param)];
      appendRows(chunks, place.segment, place.elements, chunkElements, 0);
    }
    return chunks;
  } catch (const std::bad_alloc &) {
    return Status::error("out of memory while cutting bucket " +
                         std::to_string(bucket) + " into chunks");
  }
}

std::vector<Fragment> fragmentsOf(const Plan &plan, int64_t param) {
  std::vector<Fragment> fragments;
  const Placement &place = plan.placements()[static_cast<size_t>(param)];
  if (place.bucket < 0 || place.elements == 0)
    return fragments;
  const Bucket &bucket = plan.buckets()[static_cast<size_t>(place.bucket)];
  int64_t first = place.start / bucket.shardElements;
  int64_t last = (place.start + place.elements - 1) / bucket.shardElements;
  for (int64_t shard = first; shard <= last; ++shard) {
    Segment segment = localSegment(plan, param, shard);
    Fragment fragment;
    fragment.shard = shard;
    fragment.paramOffset = segment.paramOffset;
    fragment.shardOffset = segment.shardOffset;
    fragment.elements = segment.elements;
    fragments.push_back(fragment);
  }
  return fragments;
}

} // namespace layout
} // namespace dfa
