// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage in which contributions of gradients are added up, which is not
// repeated with the rest of the step.

#include "StepSchedule.h"

using namespace mlir;
using namespace mlir::dfa;

/// Contributions go into the bucket in a stage of their own, the first, which
/// runs as often as gradients arrive. What uses the bucket comes after it.
LogicalResult StepSchedule::assignAccumulate(AccumulateOp op) {
  StringAttr input = memory.lookup(op.getInput());
  StringAttr bucket = memory.lookup(op.getBucket());
  if (!input || !bucket || !isa<BlockArgument>(op.getInput()) ||
      !isa<BlockArgument>(op.getBucket()))
    return op.emitOpError("expects gradients and buckets that are arguments of "
                          "the step");
  for (Value value : {op.getInput(), op.getBucket()})
    if (cast<FlatType>(value.getType()).getPart() != Part::Full)
      return op.emitOpError("expects gradients and buckets of part 'full', but "
                            "got ")
             << value.getType();
  accumulates = true;
  stageOf[op.getResult()] = 0;
  stages.resize(std::max<size_t>(stages.size(), 2));
  stages[0].stores.push_back({op.getResult(), bucket});
  return success();
}

/// The first stage that can use `operand`.
int StepSchedule::getOperandStage(Value operand) const {
  return getStage(operand) +
         static_cast<bool>(operand.getDefiningOp<AccumulateOp>());
}

/// The first stage is for accumulation alone: finish does not run it again.
LogicalResult StepSchedule::verifyAccumulates() {
  if (!accumulates)
    return success();
  for (const AccumulatorRow &row : stages[0].rows)
    return emitError(row.partial.getLoc(),
                     "expects gradients that are accumulated, as others of "
                     "this step are");
  for (const StoredValue &stored : stages[0].stores)
    if (!stored.value.getDefiningOp<AccumulateOp>())
      return emitError(stored.value.getLoc(),
                       "expects values that are made of accumulated "
                       "gradients, as others of this step are");
  for (Operation *op : stages[0].collectives)
    return op->emitOpError("expects a gradient that is accumulated, as others "
                           "of this step are");
  return success();
}
