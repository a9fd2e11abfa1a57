// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When and where each value of a step is computed. Kernel stage k runs between
// two global barriers; control stage c runs right before kernel stage c, so
// what stage k reduces is finished in control stage k + 1. Nothing is emitted
// here.

#ifndef DFA_LIB_TRANSFORMS_FORMKERNELS_STEPSCHEDULE_H
#define DFA_LIB_TRANSFORMS_FORMKERNELS_STEPSCHEDULE_H

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <set>

namespace mlir::dfa {

/// One accumulator: a partial that is finished somewhere, and the reductions
/// of all classes that contribute to it.
struct AccumulatorRow {
  Value partial;
  SmallVector<ReductionOpInterface> leaves;
  Combine combine = Combine::Sum;
  Scope scope = Scope::Whole;
  StringAttr axis;   // combined over the ranks of this axis, if not null
  int64_t index = 0; // among all rows of the program
};

/// A flat value that is stored: it is returned, or a collective reads it.
struct StoredValue {
  Value value;
  StringAttr array;
};

/// One kernel stage.
struct KernelStage {
  /// Collectives that run before the kernels, in order.
  SmallVector<Operation *> collectives;
  /// Whole, then group, then parameter scope; contiguous in the program.
  SmallVector<AccumulatorRow> rows;
  SmallVector<StoredValue> stores;
};

class StepSchedule {
public:
  explicit StepSchedule(func::FuncOp step) : step(step) {}

  /// Computes everything below; emits an error for what cannot be scheduled.
  LogicalResult build();

  func::FuncOp getStep() { return step; }
  ArrayRef<KernelStage> getStages() const { return stages; }
  KernelStage &getStage(int stage) { return stages[stage]; }

  /// Kernel stage in which a flat value is first computed; for other values
  /// the first kernel stage that can use it.
  int getStage(Value value) const { return stageOf.lookup(value); }

  /// The array that holds `value` when kernels of `stage` run, or null if it
  /// is not in memory then.
  StringAttr getArray(Value value, int stage) const;

  /// Whether the array that held `value` has been overwritten before kernels
  /// of `stage` run.
  bool isOverwritten(Value value, int stage) const;

  /// Control stages in which something runs, ascending.
  const std::set<int> &getControlStages() const { return controlStages; }

  /// Scalar and control ops of a control stage, in order.
  ArrayRef<Operation *> getControlOps(int stage) const {
    auto it = controlOps.find(stage);
    return it == controlOps.end() ? ArrayRef<Operation *>() : it->second;
  }

  /// The row whose accumulator `partial` is, and whether it is a norm's row
  /// that stands in for a flag.
  const AccumulatorRow *getRow(Value partial, bool *isStandIn = nullptr) const;

  /// Classes in the order of first use.
  ArrayRef<StringAttr> getClasses() const { return classes.getArrayRef(); }

  /// Arrays of a class, with element type and part, in the order of base
  /// addresses.
  struct ArrayInfo {
    StringAttr name;
    Type type;
    Part part;
  };
  ArrayRef<ArrayInfo> getArrays(StringAttr cls) const {
    return arrays.find(cls)->second;
  }

  /// The flag that keeps `value` from changing, or null. Fails if values with
  /// different flags meet.
  FailureOr<Value> getPredicate(Value value);

  int64_t getNumRows() const { return numRows; }

  /// The first stage after the accumulation of gradients: 1, or 0 if the step
  /// accumulates nothing.
  int getFirstStage() const { return accumulates ? 1 : 0; }

private:
  LogicalResult assignStages();
  LogicalResult assignCollective(Operation &op);
  LogicalResult assignAccumulate(AccumulateOp op);
  LogicalResult verifyAccumulates();
  int getOperandStage(Value operand) const;
  LogicalResult collectArrays();
  LogicalResult addArray(Location loc, FlatType type, StringAttr role);
  LogicalResult collectStores();
  LogicalResult verifyStores();
  LogicalResult verifyGroupRows();
  bool isCollectiveOver(Operation *op, Value value, StringAttr array) const;
  void sinkReductions();
  int getFirstElementwiseUse(Value scalar, DenseSet<Value> &seen) const;
  LogicalResult collectRows();
  LogicalResult collectLeaves(Value partial, AccumulatorRow &row);
  void shareRows();
  void assignControlStages();
  int getNeededStage(Value value);
  int getLatestUse(Operation *op);

  func::FuncOp step;
  SmallVector<KernelStage> stages;
  DenseMap<Value, int> stageOf;
  /// Array of values that are in memory without being computed by a kernel:
  /// arguments and results of collectives.
  DenseMap<Value, StringAttr> memory;
  llvm::SetVector<StringAttr> classes;
  llvm::MapVector<StringAttr, SmallVector<ArrayInfo>> arrays;
  /// A flag's partial to the norm's partial whose row it uses.
  DenseMap<Value, Value> standIns;
  std::set<int> controlStages;
  DenseMap<int, SmallVector<Operation *>> controlOps;
  DenseMap<Operation *, int> controlStageOf;
  DenseMap<Value, int> neededStages;
  /// Flags by elementwise op, as far as asked for.
  DenseMap<Operation *, Value> predicates;
  int64_t numRows = 0;
  bool accumulates = false;
};

/// Class of a flat value, by name.
inline StringAttr getClassName(Value flat) {
  return cast<FlatType>(flat.getType()).getCls().getAttr();
}

/// Whether `op` moves a flat value between ranks.
bool isCollective(Operation *op);

} // namespace mlir::dfa

#endif // DFA_LIB_TRANSFORMS_FORMKERNELS_STEPSCHEDULE_H
