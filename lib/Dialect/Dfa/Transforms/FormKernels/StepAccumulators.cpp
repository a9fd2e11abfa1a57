// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which reductions share an accumulator, and where the accumulators lie.

#include "StepSchedule.h"

using namespace mlir;
using namespace mlir::dfa;

/// Partials of one accumulator; a bound, since combines of combines double.
static constexpr size_t kMaxLeaves = 1024;

LogicalResult StepSchedule::collectLeaves(Value partial, AccumulatorRow &row) {
  Operation *op = partial.getDefiningOp();
  if (auto leaf = dyn_cast_or_null<ReductionOpInterface>(op)) {
    row.leaves.push_back(leaf);
    row.combine = leaf.getCombine();
    if (row.leaves.size() <= kMaxLeaves)
      return success();
    return leaf.emitError("expects at most ")
           << kMaxLeaves << " partials in one norm or flag, but got more";
  }
  auto combine = dyn_cast_or_null<CombineOp>(op);
  if (!combine)
    return emitError(partial.getLoc(), "expects a partial that the step "
                                       "computes");
  if (combine.getAxes()) {
    if (combine.getAxes()->size() != 1 || row.axis)
      return combine.emitOpError("expects partials to be combined over one "
                                 "axis, once");
    row.axis = cast<StringAttr>((*combine.getAxes())[0]);
  }
  for (Value operand : combine.getPartials())
    if (failed(collectLeaves(operand, row)))
      return failure();
  return success();
}

LogicalResult StepSchedule::collectRows() {
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (isa<CombineOp>(op))
      continue;
    for (Value operand : op.getOperands()) {
      auto type = dyn_cast<PartialType>(operand.getType());
      if (!type || getRow(operand))
        continue;
      AccumulatorRow row;
      row.partial = operand;
      row.scope = type.getScope();
      if (failed(collectLeaves(operand, row)))
        return failure();
      KernelStage &stage = stages[getStage(operand)];
      for (const AccumulatorRow &other : stage.rows)
        if (other.scope != Scope::Param && row.scope != Scope::Param &&
            other.axis != row.axis)
          return op.emitOpError("expects all partials that are ready together "
                                "to be combined over the same ranks");
      stage.rows.push_back(row);
    }
  }
  return verifyGroupRows();
}

/// There is one table of group statistics, which one control kernel fills.
LogicalResult StepSchedule::verifyGroupRows() {
  const KernelStage *first = nullptr;
  for (const KernelStage &stage : stages) {
    for (const AccumulatorRow &row : stage.rows) {
      if (row.scope != Scope::Group)
        continue;
      if (first && first != &stage)
        return emitError(row.partial.getLoc(),
                         "expects all statistics of groups to be ready "
                         "together");
      first = &stage;
    }
  }
  return success();
}

/// A sum of |x| or x^2 in f64, or a largest |x|, is inf or nan exactly if an
/// element is: f32 and narrower squares cannot overflow it. So a flag over the
/// same elements needs no accumulator of its own.
void StepSchedule::shareRows() {
  auto inputs = [](const AccumulatorRow &row) {
    SmallVector<Value> values;
    for (ReductionOpInterface leaf : row.leaves)
      values.push_back(leaf->getOperand(0));
    llvm::sort(values, [](Value a, Value b) {
      return a.getAsOpaquePointer() < b.getAsOpaquePointer();
    });
    return values;
  };
  auto kindOf = [](const AccumulatorRow &row) {
    return cast<PartialType>(row.partial.getType()).getKind();
  };
  for (KernelStage &stage : stages) {
    for (const AccumulatorRow &flag : stage.rows) {
      if (kindOf(flag) != Accumulation::Flag)
        continue;
      bool hasF64 = llvm::any_of(inputs(flag), [](Value value) {
        return cast<FlatType>(value.getType()).getElementType().isF64();
      });
      for (const AccumulatorRow &norm : stage.rows) {
        Accumulation kind = kindOf(norm);
        bool fits = kind == Accumulation::L1 || kind == Accumulation::L2 ||
                    kind == Accumulation::Inf;
        if (!hasF64 && fits && norm.scope == Scope::Whole &&
            inputs(norm) == inputs(flag))
          standIns[flag.partial] = norm.partial;
      }
    }
    llvm::erase_if(stage.rows, [&](const AccumulatorRow &row) {
      return standIns.contains(row.partial);
    });
  }
}

const AccumulatorRow *StepSchedule::getRow(Value partial,
                                           bool *isStandIn) const {
  Value other = standIns.lookup(partial);
  if (isStandIn)
    *isStandIn = static_cast<bool>(other);
  Value wanted = other ? other : partial;
  for (const KernelStage &stage : stages)
    for (const AccumulatorRow &row : stage.rows)
      if (row.partial == wanted)
        return &row;
  return nullptr;
}
