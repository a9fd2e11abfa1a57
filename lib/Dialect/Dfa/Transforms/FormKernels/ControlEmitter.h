// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Control kernels: scalar work that runs once between two kernel stages, and
// the scratch slots through which scalars reach later kernels.

#ifndef DFA_LIB_TRANSFORMS_FORMKERNELS_CONTROLEMITTER_H
#define DFA_LIB_TRANSFORMS_FORMKERNELS_CONTROLEMITTER_H

#include "StepSchedule.h"

namespace mlir::dfa {

/// Scalars of the step that kernels after their control kernel load.
class ScratchSlots {
public:
  /// Emits a load of `scalar` (a constant: a copy of it).
  FailureOr<Value> load(OpBuilder &builder, Location loc, Value scalar);

  /// The slot of `scalar`, making one if there is none.
  FailureOr<int64_t> request(Value scalar);

  /// The slot of `scalar`, if one was requested.
  std::optional<int64_t> lookup(Value scalar) const;

private:
  llvm::MapVector<Value, int64_t> slots;
};

class ControlEmitter {
public:
  ControlEmitter(StepSchedule &schedule, ScratchSlots &slots)
      : schedule(schedule), slots(slots) {}

  /// Requests slots for scalars that one control kernel leaves to another.
  /// Call it before the first `emit`.
  LogicalResult requestSlots();

  /// Builds the control kernel of `stage` at the builder's insertion point.
  /// Stages must come in ascending order.
  FailureOr<ControlKernelOp> emit(OpBuilder &builder, int stage,
                                  StringRef name);

private:
  class Fields;
  struct Version {
    Value parent;
    llvm::MapVector<StringAttr, Value> written;
  };

  FailureOr<Value> evaluate(OpBuilder &builder, Location loc, Value scalar);
  LogicalResult emitOp(OpBuilder &builder, Operation *op);
  Value readField(OpBuilder &builder, Location loc, Value version,
                  StringRef field);
  void emitStores(OpBuilder &builder, Location loc);

  StepSchedule &schedule;
  ScratchSlots &slots;

  /// Control values made so far, in this kernel or before it.
  DenseMap<Value, Version> versions;
  llvm::SmallDenseSet<Value> versionsHere;
  Value lastVersion;

  // Of the kernel that is being built.
  DenseMap<Value, Value> values;
  llvm::MapVector<StringAttr, Value> loads;
  Block *body = nullptr;
  bool failedRead = false;
};

} // namespace mlir::dfa

#endif // DFA_LIB_TRANSFORMS_FORMKERNELS_CONTROLEMITTER_H
