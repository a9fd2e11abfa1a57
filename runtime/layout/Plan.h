// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where every parameter lies: the part of the layout that is the same on all
// ranks. What one rank owns of it is in Tables.h; texts and hashes in Dump.h.
#ifndef DFA_LAYOUT_PLAN_H
#define DFA_LAYOUT_PLAN_H

#include "layout/Format.h"
#include "layout/Mesh.h"
#include "layout/Order.h"
#include "layout/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dfa {
namespace layout {

enum ParamFlags : uint32_t {
  /// No place in any bucket, hence no state, until it is unfrozen (which gives
  /// it a new epoch).
  ParamFrozen = 1u,
};

/// One tensor of the model.
struct ParamSpec {
  std::string name;
  std::vector<int64_t> shape;
  /// Dimensions slowest first; empty means row-major. At most one of order and
  /// strides (in elements) is given.
  Order order;
  std::vector<int64_t> strides;
  int32_t cls = 0;   // index into PlanInput::classes
  int32_t group = 0; // row of the group table
  uint32_t flags = 0;
  /// Index of an earlier parameter with the same storage (tied weights): this
  /// one gets no elements of its own. -1 if it is its own.
  int64_t sharedWith = -1;
  /// Parameters with the same unit (>= 0) form one bucket a class, however
  /// large, so that they communicate as one. -1: filled by size.
  int32_t unit = -1;
  /// Later epochs only append: the offsets of earlier ones stay as they are
  /// when parameters are added or unfrozen.
  int32_t epoch = 0;
};

/// In which order parameters enter buckets (within an epoch).
enum class FillOrder : uint8_t {
  Reverse, // the last parameter first, as its gradient usually arrives first
  Forward,
  Explicit, // PlanOptions::explicitOrder, then the others in reverse
};

struct PlanOptions {
  /// Bytes of a full bucket in the class's syncFormat. Its shard is rounded
  /// down to 128 bytes, but never below 128 bytes.
  int64_t bucketBytes = int64_t(100) * 1024 * 1024;
  FillOrder fillOrder = FillOrder::Reverse;
  std::vector<int64_t> explicitOrder; // indices into PlanInput::params
};

struct PlanInput {
  Mesh mesh;
  PlanOptions options;
  std::vector<ClassSpec> classes;
  std::vector<ParamSpec> params;
};

/// A parameter in the layout.
struct Placement {
  int64_t elements = 0;
  int64_t storage = 0;  // the parameter that holds the elements: itself, or
                        // the one it is shared with
  int64_t bucket = -1;  // -1: frozen, or an alias of a frozen one
  int64_t start = 0;    // first element, counted from the bucket's start
  int64_t segment = -1; // row in its class's tables; -1 as for bucket
};

/// A run of parameters of one class that travels as a whole. Every rank of the
/// shard axis owns an equal part.
struct Bucket {
  int32_t cls = 0;
  int32_t unit = -1;
  int32_t epoch = 0;
  int64_t used = 0;          // end of its last parameter
  int64_t shardElements = 0; // a multiple of the alignment; 0 if it holds only
                             // parameters without elements
  int64_t padded = 0;        // shardElements x ranks of the shard axis
  int64_t shardBase = 0; // where its shard starts in the class's shard arrays
  int64_t fullBase = 0;  // where it starts in the class's full arrays
  int64_t sequenceBegin = 0; // its parameters: Plan::sequence()[begin, end),
  int64_t sequenceEnd = 0;   // by ascending start
};

/// The buckets and segments of a class: contiguous runs, as buckets and
/// sequence are sorted by class first.
struct ClassLayout {
  int64_t alignment = 1;
  int64_t bucketBegin = 0;
  int64_t bucketEnd = 0;
  int64_t sequenceBegin = 0; // segment i of the class is the parameter
  int64_t sequenceEnd = 0;   // Plan::sequence()[sequenceBegin + i]
  int64_t shardElements = 0; // of a shard array: the sum over its buckets
  int64_t fullElements = 0;  // of a full array
};

/// The layout of a model on a mesh, equal on all ranks. Immutable.
class Plan {
public:
  /// Lays out the parameters; errors name the parameter, class or option.
  static Expected<Plan> create(PlanInput input);

  const Mesh &mesh() const { return input.mesh; }
  const PlanOptions &options() const { return input.options; }
  const std::vector<ClassSpec> &classes() const { return input.classes; }
  /// As given, but with canonical orders and without strides.
  const std::vector<ParamSpec> &params() const { return input.params; }
  const std::vector<Placement> &placements() const { return places; }
  /// By class, then in the order in which they were opened.
  const std::vector<Bucket> &buckets() const { return bucketRows; }
  const std::vector<ClassLayout> &classLayouts() const { return classRows; }
  /// Placed parameters by class, bucket and start: one segment each.
  const std::vector<int64_t> &sequence() const { return placedParams; }
  /// All buckets in the one order in which collectives may start: that in
  /// which they become full when gradients arrive in fill order.
  const std::vector<int64_t> &bucketOrder() const { return startOrder; }
  /// Elements of all placed parameters; shared ones count once.
  int64_t elements() const { return elementTotal; }
  /// Used share of what bucketBytes allow, over all buckets but the last of
  /// each class (which is as full as the model happens to make it); 1 if there
  /// is none. apex warns below 0.7.
  double fillFraction() const { return fill; }

  /// The bucket-relative element at which the bucket of `cls` counts as full.
  int64_t capacity(int32_t cls) const {
    return capacities[static_cast<size_t>(cls)];
  }

private:
  friend class PlanBuilder;
  Plan() = default;

  PlanInput input;
  std::vector<Placement> places;
  std::vector<Bucket> bucketRows;
  std::vector<ClassLayout> classRows;
  std::vector<int64_t> placedParams;
  std::vector<int64_t> startOrder;
  std::vector<int64_t> capacities;
  int64_t elementTotal = 0;
  double fill = 1;
};

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_PLAN_H
