// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element kernels of one stage and class, and the segment kernel that makes
// the scalars they need.

#ifndef DFA_LIB_TRANSFORMS_FORMKERNELS_ELEMENTEMITTER_H
#define DFA_LIB_TRANSFORMS_FORMKERNELS_ELEMENTEMITTER_H

#include "ControlEmitter.h"

namespace mlir::dfa {

/// A scalar that is the same for all elements of a segment: what `derive` of
/// an update yields at `index`, or a factor (then `op` is null).
struct DerivedValue {
  UpdateOp op;
  unsigned index = 0;
  Value factor;

  bool operator==(const DerivedValue &other) const {
    return op == other.op && index == other.index && factor == other.factor;
  }
};

/// The derived rows of a class in one stage: a slot a value.
class DerivedSlots {
public:
  int64_t request(DerivedValue value);
  ArrayRef<DerivedValue> getValues() const { return values; }

private:
  SmallVector<DerivedValue> values;
};

/// Builds one element kernel from the values it must store and the reductions
/// it must accumulate.
class ElementEmitter {
public:
  ElementEmitter(StepSchedule &schedule, ScratchSlots &scratch,
                 DerivedSlots &derived, int stage, StringAttr cls)
      : schedule(schedule), scratch(scratch), derived(derived), stage(stage),
        cls(cls) {}

  /// Stores, reductions and the flag that disables them all (or null).
  SmallVector<StoredValue> stores;
  SmallVector<ReductionOpInterface> reductions;
  Value predicate;

  /// First accumulator row, after `emit`.
  int64_t getFirstRow() const { return firstRow; }
  /// Ops fused into the kernel, for remarks.
  ArrayRef<Operation *> getFused() const { return fused.getArrayRef(); }

  /// Finds what the stores and reductions are made of. Call it before all
  /// below.
  LogicalResult discover();

  /// Whether it reads an array that `other` writes.
  bool readsFrom(const ElementEmitter &other) const;

  /// Rows of its stage that its reductions contribute to, ascending.
  SmallVector<const AccumulatorRow *> getRows() const;

  FailureOr<KernelOp> emit(OpBuilder &builder, StringRef name);

private:
  LogicalResult discover(Value value);
  LogicalResult discoverOp(ElementwiseOpInterface op);
  Value emitElement(OpBuilder &builder, Value value);
  Value emitContribution(OpBuilder &builder, Location loc,
                         const AccumulatorRow &row);
  SmallVector<DerivedValue> getUniforms(ElementwiseOpInterface op);
  LogicalResult emitUniform(OpBuilder &builder, KernelOp kernel);
  void emitBody(OpBuilder &builder, KernelOp kernel);
  void hoistUniform(OpBuilder &builder, KernelOp kernel);
  SmallVector<Attribute> describeArrays(OpBuilder &builder);

  StepSchedule &schedule;
  ScratchSlots &scratch;
  DerivedSlots &derived;
  int stage;
  StringAttr cls;

  /// Values loaded from arrays, by array, and the uniform values, in order.
  llvm::MapVector<StringAttr, Value> loads;
  SmallVector<int64_t> uniforms;
  llvm::SetVector<Operation *> fused;
  llvm::SmallDenseSet<Value> seen;
  int64_t firstRow = 0;

  // While the body is emitted.
  DenseMap<Value, Value> elements;
  DenseMap<int64_t, Value> uniformValues;
};

/// Builds the segment kernel that fills the derived rows of one stage. With
/// `countsStep` it also counts the step of every segment that is active while
/// `flag` (if any) is not set; with `marksGradient` it notes that active
/// segments have a gradient since zero_grad.
class SegmentEmitter {
public:
  SegmentEmitter(StepSchedule &schedule, ScratchSlots &scratch,
                 SmallVectorImpl<StringRef> &hyperNames, StringAttr cls)
      : schedule(schedule), scratch(scratch), hyperNames(hyperNames), cls(cls) {
  }

  FailureOr<SegmentKernelOp> emit(OpBuilder &builder, StringRef name,
                                  const DerivedSlots &derived, bool countsStep,
                                  Value flag, bool marksGradient);

  /// First accumulator row, after `emit`.
  int64_t getFirstRow() const { return firstRow; }

private:
  void discoverRows(Value value, llvm::SetVector<int64_t> &rows,
                    DenseSet<Value> &seen);
  FailureOr<Value> evaluate(OpBuilder &builder, Location loc, Value scalar);
  FailureOr<SmallVector<Value>> emitDerive(OpBuilder &builder, UpdateOp op);
  Value loadHyper(OpBuilder &builder, Location loc, StringRef name);
  Value loadStep(OpBuilder &builder, Location loc);
  Value loadActive(OpBuilder &builder, Location loc);
  LogicalResult emitCount(OpBuilder &builder, Location loc, Value flag);
  void emitMark(OpBuilder &builder, Location loc);

  StepSchedule &schedule;
  ScratchSlots &scratch;
  SmallVectorImpl<StringRef> &hyperNames;
  StringAttr cls;
  int64_t firstRow = 0;

  DenseMap<Value, Value> values;
  llvm::StringMap<Value> hyper;
  Value step;
};

} // namespace mlir::dfa

#endif // DFA_LIB_TRANSFORMS_FORMKERNELS_ELEMENTEMITTER_H
