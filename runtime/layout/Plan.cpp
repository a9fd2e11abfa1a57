// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills buckets; see the header for what the result means.
//
// A parameter lies whole in one bucket, and a bucket grows beyond its size for
// a parameter that is larger. apex splits parameters over buckets instead. We
// do not, because parameters are views of gathered buckets, and because one
// segment a parameter keeps its atoms, statistics and step count in one row;
// splitting would buy overlap only within a single gradient, which arrives at
// once anyway.
#include "layout/Plan.h"

#include "dfa-rt/abi.h"
#include "layout/Checked.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string_view>
#include <unordered_set>

namespace dfa {
namespace layout {

class PlanBuilder {
public:
  explicit PlanBuilder(PlanInput &&input) { plan.input = std::move(input); }

  Expected<Plan> run() {
    Status status = checkMesh();
    if (status.ok())
      status = checkClasses();
    if (status.ok())
      status = checkParams();
    if (status.ok())
      status = fillBuckets();
    if (status.ok())
      status = finishBuckets();
    if (!status.ok())
      return status;
    return std::move(plan);
  }

private:
  /// A bucket that still takes parameters. Sizes are not known before it is
  /// closed.
  struct Open {
    Bucket bucket;
    std::vector<int64_t> params;
    int64_t lastPosition = 0; // in fill order, of its last parameter
  };

  Status checkMesh();
  Status checkClasses();
  Status checkParams();
  Status checkShared(int64_t index);
  Expected<std::vector<int64_t>> fillSequence() const;
  Status fillBuckets();
  Status place(int64_t index, int64_t position);
  Status finishBuckets();
  void measureFill();

  static Status tooLarge(const std::string &what) {
    return Status::error(what + ": expected sizes that fit in 64 bits");
  }

  Plan plan;
  std::vector<std::vector<Open>> filled; // a list a class
  std::vector<bool> accepting;           // its last bucket is open
};

Status PlanBuilder::checkMesh() {
  Expected<int64_t> ranks = meshRanks(plan.input.mesh);
  if (!ranks)
    return ranks.status();
  int64_t bytes = plan.input.options.bucketBytes;
  if (bytes < 1)
    return Status::error("expected bucket_bytes of at least 1, but got " +
                         std::to_string(bytes));
  return Status();
}

Status PlanBuilder::checkClasses() {
  std::unordered_set<std::string_view> names;
  const int64_t shards = plan.input.mesh.shard;
  for (const ClassSpec &spec : plan.input.classes) {
    if (!names.insert(spec.name).second)
      return Status::error("class '" + spec.name + "': given twice");
    Expected<int64_t> alignment = classAlignment(spec);
    if (!alignment)
      return alignment.status();
    ClassLayout row;
    row.alignment = *alignment;
    plan.classRows.push_back(row);

    // The shard is rounded down, not the bucket: each rank's cut is aligned.
    int64_t shardBytes = plan.input.options.bucketBytes / shards /
                         DFA_RT_ALIGN_BYTES * DFA_RT_ALIGN_BYTES;
    int64_t shard =
        shardBytes / formatBytes(spec.syncFormat) / *alignment * *alignment;
    shard = std::max(shard, *alignment); // at least 128 bytes
    int64_t capacity = 0;
    if (!checkedMul(shard, shards, capacity))
      return tooLarge("class '" + spec.name + "'");
    plan.capacities.push_back(capacity);
  }
  return Status();
}

Status PlanBuilder::checkShared(int64_t index) {
  const ParamSpec &param = plan.input.params[static_cast<size_t>(index)];
  if (param.sharedWith < 0 || param.sharedWith >= index)
    return Status::error("parameter '" + param.name +
                         "': expected to be shared with an earlier one, but "
                         "got index " +
                         std::to_string(param.sharedWith));
  const ParamSpec &first =
      plan.input.params[static_cast<size_t>(param.sharedWith)];
  if (first.shape != param.shape || first.order != param.order ||
      first.cls != param.cls)
    return Status::error(
        "parameter '" + param.name + "' is shared with '" + first.name +
        "': expected the same shape, order and class, but "
        "got shape " +
        listText(param.shape) + ", order " + listText(param.order) +
        " and shape " + listText(first.shape) + ", order " +
        listText(first.order));
  return Status();
}

Status PlanBuilder::checkParams() {
  std::unordered_set<std::string_view> names;
  std::vector<ParamSpec> &params = plan.input.params;
  names.reserve(params.size());
  plan.places.resize(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    ParamSpec &param = params[i];
    std::string what = "parameter '" + param.name + "'";
    if (!names.insert(param.name).second)
      return Status::error(what + ": given twice (a tied parameter is given "
                                  "as shared)");
    if (param.cls < 0 ||
        static_cast<size_t>(param.cls) >= plan.input.classes.size())
      return Status::error(what + ": expected a class from 0 to " +
                           std::to_string(int64_t(plan.classRows.size()) - 1) +
                           ", but got " + std::to_string(param.cls));
    if (param.group < 0 || param.epoch < 0)
      return Status::error(what +
                           ": expected a group and an epoch of at "
                           "least 0, but got " +
                           std::to_string(param.group) + " and " +
                           std::to_string(param.epoch));
    bool byStrides = !param.strides.empty();
    if (byStrides && !param.order.empty())
      return Status::error(what + ": expected an order or strides, not both");
    Expected<int64_t> count = elementCount(param.name, param.shape);
    if (!count)
      return count.status();
    Expected<Order> order =
        byStrides ? orderFromStrides(param.name, param.shape, param.strides)
                  : canonicalOrder(param.name, param.shape, param.order);
    if (!order)
      return order.status();
    param.order = std::move(*order);
    std::vector<int64_t>().swap(param.strides);

    Placement &place = plan.places[i];
    place.elements = *count;
    place.storage = static_cast<int64_t>(i);
    if (param.sharedWith == -1)
      continue;
    Status shared = checkShared(static_cast<int64_t>(i));
    if (!shared.ok())
      return shared;
    place.storage = plan.places[static_cast<size_t>(param.sharedWith)].storage;
  }
  return Status();
}

Expected<std::vector<int64_t>> PlanBuilder::fillSequence() const {
  const PlanOptions &options = plan.input.options;
  const int64_t count = static_cast<int64_t>(plan.input.params.size());
  std::vector<int64_t> sequence;
  std::vector<bool> listed(static_cast<size_t>(count), false);
  sequence.reserve(static_cast<size_t>(count));
  if (options.fillOrder == FillOrder::Explicit)
    for (int64_t index : options.explicitOrder) {
      if (index < 0 || index >= count || listed[static_cast<size_t>(index)])
        return Status::error(
            "expected a fill order of distinct parameters from 0 to " +
            std::to_string(count - 1) + ", but got " + std::to_string(index) +
            (index >= 0 && index < count ? " twice" : ""));
      listed[static_cast<size_t>(index)] = true;
      sequence.push_back(index);
    }
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = options.fillOrder == FillOrder::Forward ? i : count - 1 - i;
    if (!listed[static_cast<size_t>(index)])
      sequence.push_back(index);
  }
  std::stable_sort(sequence.begin(), sequence.end(), [&](int64_t a, int64_t b) {
    return plan.input.params[static_cast<size_t>(a)].epoch <
           plan.input.params[static_cast<size_t>(b)].epoch;
  });
  return sequence;
}

Status PlanBuilder::fillBuckets() {
  Expected<std::vector<int64_t>> sequence = fillSequence();
  if (!sequence)
    return sequence.status();
  filled.resize(plan.classRows.size());
  accepting.assign(plan.classRows.size(), false);
  int32_t unit = -1;
  int32_t epoch = 0;
  for (size_t position = 0; position < sequence->size(); ++position) {
    int64_t index = (*sequence)[position];
    const ParamSpec &param = plan.input.params[static_cast<size_t>(index)];
    if (param.sharedWith != -1 || (param.flags & ParamFrozen))
      continue;
    // A unit is fenced off in every class: what comes after it must not wait
    // in a bucket that was opened before it.
    if (param.unit != unit || param.epoch != epoch)
      accepting.assign(accepting.size(), false);
    unit = param.unit;
    epoch = param.epoch;
    Status status = place(index, static_cast<int64_t>(position));
    if (!status.ok())
      return status;
  }
  return Status();
}

Status PlanBuilder::place(int64_t index, int64_t position) {
  const ParamSpec &param = plan.input.params[static_cast<size_t>(index)];
  Placement &place = plan.places[static_cast<size_t>(index)];
  size_t cls = static_cast<size_t>(param.cls);
  std::vector<Open> &buckets = filled[cls];
  int64_t start = 0;
  int64_t end = 0;
  if (accepting[cls]) {
    if (!checkedAlignUp(buckets.back().bucket.used,
                        plan.classRows[cls].alignment, start) ||
        !checkedAdd(start, place.elements, end))
      return tooLarge("parameter '" + param.name + "'");
    // Nothing is gained by closing a bucket that has no elements yet, or for
    // a parameter that brings none.
    bool overflows = end > plan.capacities[cls] && place.elements != 0 &&
                     buckets.back().bucket.used != 0;
    if (overflows && param.unit < 0)
      accepting[cls] = false;
  }
  if (!accepting[cls]) {
    start = 0;
    end = place.elements;
    buckets.emplace_back();
    buckets.back().bucket.cls = param.cls;
    buckets.back().bucket.unit = param.unit;
    buckets.back().bucket.epoch = param.epoch;
    accepting[cls] = true;
  }
  Open &open = buckets.back();
  place.start = start;
  open.bucket.used = place.elements == 0 ? open.bucket.used : end;
  open.params.push_back(index);
  open.lastPosition = position;
  return Status();
}

Status PlanBuilder::finishBuckets() {
  const int64_t shards = plan.input.mesh.shard;
  std::vector<int64_t> lastPositions;
  int64_t total = 0;
  for (size_t cls = 0; cls < filled.size(); ++cls) {
    ClassLayout &row = plan.classRows[cls];
    row.bucketBegin = static_cast<int64_t>(plan.bucketRows.size());
    row.sequenceBegin = static_cast<int64_t>(plan.placedParams.size());
    for (Open &open : filled[cls]) {
      Bucket bucket = open.bucket;
      bucket.shardBase = row.shardElements;
      bucket.fullBase = row.fullElements;
      if (!checkedAlignUp(ceilDiv(bucket.used, shards), row.alignment,
                          bucket.shardElements) ||
          !checkedMul(bucket.shardElements, shards, bucket.padded) ||
          !checkedAdd(row.shardElements, bucket.shardElements,
                      row.shardElements) ||
          !checkedAdd(row.fullElements, bucket.padded, row.fullElements))
        return tooLarge("class '" + plan.input.classes[cls].name + "'");
      bucket.sequenceBegin = static_cast<int64_t>(plan.placedParams.size());
      for (int64_t index : open.params) {
        Placement &place = plan.places[static_cast<size_t>(index)];
        place.bucket = static_cast<int64_t>(plan.bucketRows.size());
        place.segment =
            static_cast<int64_t>(plan.placedParams.size()) - row.sequenceBegin;
        plan.placedParams.push_back(index);
        if (!checkedAdd(total, place.elements, total))
          return tooLarge("the model");
      }
      bucket.sequenceEnd = static_cast<int64_t>(plan.placedParams.size());
      plan.bucketRows.push_back(bucket);
      lastPositions.push_back(open.lastPosition);
      std::vector<int64_t>().swap(open.params);
    }
    row.bucketEnd = static_cast<int64_t>(plan.bucketRows.size());
    row.sequenceEnd = static_cast<int64_t>(plan.placedParams.size());
    // Chunk rows hold a segment in 32 bits.
    if (row.sequenceEnd - row.sequenceBegin >
        std::numeric_limits<int32_t>::max())
      return Status::error("class '" + plan.input.classes[cls].name +
                           "': expected at most 2147483647 parameters");
    // Bytes are computed from elements everywhere: 8 is the widest format.
    int64_t bytes = 0;
    if (!checkedMul(row.fullElements, 8, bytes))
      return tooLarge("class '" + plan.input.classes[cls].name + "'");
  }
  plan.elementTotal = total;
  for (size_t i = 0; i < plan.places.size(); ++i) {
    Placement &place = plan.places[i];
    const Placement &owner = plan.places[static_cast<size_t>(place.storage)];
    place.bucket = owner.bucket;
    place.start = owner.start;
    place.segment = owner.segment;
  }
  plan.startOrder.resize(plan.bucketRows.size());
  for (size_t i = 0; i < plan.startOrder.size(); ++i)
    plan.startOrder[i] = static_cast<int64_t>(i);
  // Epochs are filled one after the other, so positions order them as well.
  std::sort(plan.startOrder.begin(), plan.startOrder.end(),
            [&](int64_t a, int64_t b) {
              return lastPositions[static_cast<size_t>(a)] <
                     lastPositions[static_cast<size_t>(b)];
            });
  measureFill();
  return Status();
}

void PlanBuilder::measureFill() {
  double used = 0;
  double allowed = 0;
  for (const ClassLayout &row : plan.classRows)
    for (int64_t i = row.bucketBegin; i + 1 < row.bucketEnd; ++i) {
      const Bucket &bucket = plan.bucketRows[static_cast<size_t>(i)];
      int64_t capacity = plan.capacities[static_cast<size_t>(bucket.cls)];
      used += static_cast<double>(bucket.used);
      allowed += static_cast<double>(std::max(capacity, bucket.padded));
    }
  plan.fill = allowed > 0 ? used / allowed : 1;
}

Expected<Plan> Plan::create(PlanInput input) {
  // The only exception the standard library can raise here.
  try {
    return PlanBuilder(std::move(input)).run();
  } catch (const std::bad_alloc &) {
    return Status::error("out of memory while planning the layout");
  }
}

} // namespace layout
} // namespace dfa
