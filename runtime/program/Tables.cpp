// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables from the layout library, and the check that rows stay in bounds.

#include "program/Tables.h"

#include "layout/Plan.h"
#include "layout/Tables.h"

#include <algorithm>

namespace dfa::rt {

static TableRanges convert(const layout::TableRanges &ranges) {
  TableRanges rows;
  rows.segments = {ranges.segments.begin, ranges.segments.end};
  rows.chunks = {ranges.chunks.begin, ranges.chunks.end};
  rows.atoms = {ranges.atoms.begin, ranges.atoms.end};
  return rows;
}

Result<Tables> Tables::fromLayout(const Program &program,
                                  const layout::Plan &plan,
                                  const layout::RankTables &rank) {
  Tables tables;
  tables.chunks = rank.chunks;
  tables.atoms = rank.atoms;
  tables.groups = 1;
  for (const layout::ParamSpec &param : plan.params())
    tables.groups = std::max<int64_t>(tables.groups, param.group + 1);

  const std::vector<layout::ClassLayout> &classes = plan.classLayouts();
  for (size_t index = 0; index < plan.buckets().size(); ++index) {
    const layout::Bucket &from = plan.buckets()[index];
    BucketInfo bucket;
    bucket.rows = convert(rank.buckets[index]);
    int64_t firstSegment = rank.classes[from.cls].segments.begin;
    bucket.rows.segments.begin -= firstSegment;
    bucket.rows.segments.end -= firstSegment;
    bucket.shardBase = from.shardBase;
    bucket.shardElements = from.shardElements;
    bucket.fullBase = from.fullBase;
    bucket.fullElements = from.padded;
    layout::Expected<std::vector<dfa_rt_chunk_t>> full =
        layout::buildFullChunks(plan, index, rank.chunkElements);
    if (!full.ok())
      return DFA_RT_ERROR(InvalidArgument, "%s", full.message().c_str());
    bucket.rows.full.begin = static_cast<int64_t>(tables.full.size());
    tables.full.insert(tables.full.end(), full->begin(), full->end());
    bucket.rows.full.end = static_cast<int64_t>(tables.full.size());
    tables.buckets.push_back(bucket);
  }

  for (const ProgramClass &record : program.classes) {
    size_t from = 0;
    while (from < plan.classes().size() &&
           plan.classes()[from].name != record.name)
      ++from;
    if (from == plan.classes().size())
      return DFA_RT_ERROR(InvalidArgument,
                          "the layout has no class '%s' of the program",
                          record.name.c_str());
    ClassInfo info;
    info.rows = convert(rank.classes[from]);
    info.buckets = {classes[from].bucketBegin, classes[from].bucketEnd};
    info.shardElements = classes[from].shardElements;
    info.fullElements = classes[from].fullElements;
    if (info.buckets.size() > 0)
      info.rows.full = {tables.buckets[info.buckets.begin].rows.full.begin,
                        tables.buckets[info.buckets.end - 1].rows.full.end};
    for (int64_t bucket : plan.bucketOrder())
      if (bucket >= info.buckets.begin && bucket < info.buckets.end)
        info.order.push_back(bucket);
    for (int64_t row = info.rows.segments.begin; row < info.rows.segments.end;
         ++row) {
      const layout::Segment &segment = rank.segments[row];
      uint32_t group = plan.params()[segment.param].group;
      info.segments.push_back(
          {segment.elements, segment.firstAtom, segment.atoms, group,
           segment.bucket, segment.shardOffset, segment.fullOffset,
           plan.placements()[segment.param].elements, segment.paramOffset});
    }
    // Rows hold addresses of the local parts, in full arrays too: offsets of
    // the full table count from there.
    for (int64_t row = info.rows.full.begin; row < info.rows.full.end; ++row)
      tables.full[row].offset -=
          info.segments[tables.full[row].segment].localOffset;
    info.rows.segments = {0, static_cast<int64_t>(info.segments.size())};
    tables.classes.push_back(std::move(info));
  }
  return tables;
}

namespace {

class TableVerifier {
public:
  TableVerifier(const Tables &tables, const Program &program)
      : tables(tables), program(program) {}

  Status run() const {
    if (tables.groups < 1)
      return DFA_RT_ERROR(InvalidArgument, "expects at least one group");
    if (tables.classes.size() != program.classes.size())
      return DFA_RT_ERROR(InvalidArgument,
                          "expects tables of %zu classes, but got %zu",
                          program.classes.size(), tables.classes.size());
    for (size_t index = 0; index < tables.classes.size(); ++index)
      DFA_RT_TRY(checkClass(tables.classes[index],
                            program.classes[index].name.c_str()));
    return Status();
  }

private:
  static bool within(RowRange inner, RowRange outer) {
    return inner.begin <= inner.end && inner.begin >= outer.begin &&
           inner.end <= outer.end;
  }
  template <typename Rows> static RowRange all(const Rows &rows) {
    return {0, static_cast<int64_t>(rows.size())};
  }

  Status checkClass(const ClassInfo &info, const char *name) const {
    if (!within(info.rows.segments, all(info.segments)) ||
        !within(info.rows.chunks, all(tables.chunks)) ||
        !within(info.rows.atoms, all(tables.atoms)) ||
        !within(info.rows.full, all(tables.full)) ||
        !within(info.buckets, all(tables.buckets)))
      return DFA_RT_ERROR(InvalidArgument,
                          "class '%s' refers to rows that do not exist", name);
    if (static_cast<int64_t>(info.order.size()) != info.buckets.size())
      return DFA_RT_ERROR(InvalidArgument,
                          "class '%s' expects an order of its %lld buckets",
                          name, static_cast<long long>(info.buckets.size()));
    for (int64_t bucket : info.order)
      if (bucket < info.buckets.begin || bucket >= info.buckets.end)
        return DFA_RT_ERROR(InvalidArgument,
                            "class '%s' orders a bucket that is not its own",
                            name);
    for (int64_t index = info.buckets.begin; index < info.buckets.end; ++index)
      DFA_RT_TRY(checkBucket(info, tables.buckets[index], name));
    for (size_t row = 0; row < info.segments.size(); ++row)
      DFA_RT_TRY(checkSegment(info, row, name));
    DFA_RT_TRY(checkRows(info, tables.chunks, info.rows.chunks, name));
    return checkRows(info, tables.atoms, info.rows.atoms, name);
  }

  Status checkBucket(const ClassInfo &info, const BucketInfo &bucket,
                     const char *name) const {
    if (within(bucket.rows.segments, info.rows.segments) &&
        within(bucket.rows.chunks, info.rows.chunks) &&
        within(bucket.rows.atoms, info.rows.atoms) &&
        within(bucket.rows.full, info.rows.full) && bucket.shardBase >= 0 &&
        bucket.shardElements >= 0 && bucket.fullBase >= 0 &&
        bucket.fullElements >= 0 &&
        bucket.shardBase + bucket.shardElements <= info.shardElements &&
        bucket.fullBase + bucket.fullElements <= info.fullElements)
      return Status();
    return DFA_RT_ERROR(InvalidArgument,
                        "a bucket of class '%s' exceeds its class", name);
  }

  Status checkSegment(const ClassInfo &info, size_t row,
                      const char *name) const {
    const SegmentInfo &segment = info.segments[row];
    if (segment.group >= tables.groups)
      return DFA_RT_ERROR(InvalidArgument,
                          "segment %zu of class '%s' expects a group below "
                          "%lld, but got %u",
                          row, name, static_cast<long long>(tables.groups),
                          segment.group);
    RowRange atoms{segment.firstAtom, segment.firstAtom + segment.atoms};
    if (segment.elements < 0 || segment.atoms < 0 ||
        (segment.atoms > 0 && !within(atoms, info.rows.atoms)) ||
        segment.bucket < info.buckets.begin ||
        segment.bucket >= info.buckets.end)
      return DFA_RT_ERROR(InvalidArgument,
                          "segment %zu of class '%s' refers to rows that do "
                          "not exist",
                          row, name);
    if (segment.elements > segment.fullElements || segment.shardOffset < 0 ||
        segment.localOffset < 0 ||
        segment.localOffset + segment.elements > segment.fullElements ||
        segment.fullOffset < 0 ||
        segment.shardOffset + segment.elements > info.shardElements ||
        segment.fullOffset + segment.fullElements > info.fullElements)
      return DFA_RT_ERROR(InvalidArgument,
                          "segment %zu of class '%s' exceeds its arrays", row,
                          name);
    return Status();
  }

  Status checkRows(const ClassInfo &info,
                   const std::vector<dfa_rt_chunk_t> &rows, RowRange range,
                   const char *name) const {
    for (int64_t row = range.begin; row < range.end; ++row) {
      const dfa_rt_chunk_t &chunk = rows[row];
      if (chunk.segment < info.segments.size() && chunk.offset >= 0 &&
          chunk.offset + chunk.length <= info.segments[chunk.segment].elements)
        continue;
      return DFA_RT_ERROR(InvalidArgument,
                          "row %lld of class '%s' exceeds its segment",
                          static_cast<long long>(row), name);
    }
    return Status();
  }

  const Tables &tables;
  const Program &program;
};

} // namespace

Status Tables::verify(const Program &program) const {
  return TableVerifier(*this, program).run();
}

} // namespace dfa::rt
