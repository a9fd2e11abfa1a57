// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segment kernels: what depends on the parameter, its group and its step.

#include "ElementEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::dfa;

/// Adds the rows of parameter scope that `value` is made of.
void SegmentEmitter::discoverRows(Value value, llvm::SetVector<int64_t> &rows,
                                  DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return;
  if (auto partial = dyn_cast<PartialType>(value.getType())) {
    if (partial.getScope() == Scope::Param)
      rows.insert(schedule.getRow(value)->index);
    return;
  }
  if (!isa<PerType>(value.getType()) || !value.getDefiningOp())
    return;
  for (Value operand : value.getDefiningOp()->getOperands())
    discoverRows(operand, rows, seen);
}

Value SegmentEmitter::loadHyper(OpBuilder &builder, Location loc,
                                StringRef name) {
  Value &known = hyper[name];
  if (known)
    return known;
  auto it = llvm::find(hyperNames, name);
  int64_t column = it - hyperNames.begin();
  if (it == hyperNames.end())
    hyperNames.push_back(name);
  known = LoadHyperOp::create(builder, loc, builder.getF64Type(), name, column);
  return known;
}

/// The number of the update at hand: one more than those applied so far.
Value SegmentEmitter::loadStep(OpBuilder &builder, Location loc) {
  if (step)
    return step;
  Value applied = LoadSegmentOp::create(builder, loc, builder.getI64Type(),
                                        SegmentField::Step);
  Value one = arith::ConstantIntOp::create(builder, loc, 1, 64);
  step = arith::AddIOp::create(builder, loc, applied, one);
  return step;
}

FailureOr<Value> SegmentEmitter::evaluate(OpBuilder &builder, Location loc,
                                          Value scalar) {
  if (Value known = values.lookup(scalar))
    return known;
  if (auto partial = dyn_cast<PartialType>(scalar.getType())) {
    // Rows of parameter scope are block arguments, known already.
    int64_t slot = 0;
    const AccumulatorRow *row = schedule.getRow(scalar);
    for (const KernelStage &stage : schedule.getStages())
      for (const AccumulatorRow &other : stage.rows)
        if (other.scope == Scope::Group && other.index < row->index)
          ++slot;
    Value loaded =
        LoadGroupStatOp::create(builder, loc, builder.getF64Type(), slot);
    values[scalar] = loaded;
    return loaded;
  }
  auto op = scalar.getDefiningOp<ScalarOpInterface>();
  FailureOr<Value> value = failure();
  if (!isa<PerType>(scalar.getType())) {
    value = scratch.load(builder, loc, scalar);
  } else if (op) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> inner = evaluate(builder, loc, operand);
      if (failed(inner))
        return failure();
      operands.push_back(*inner);
    }
    value = op.emitScalar(builder, operands);
  } else {
    return emitError(scalar.getLoc())
           << "expects one scalar a group or parameter that the step computes";
  }
  if (failed(value))
    return failure();
  values[scalar] = *value;
  return value;
}

FailureOr<SmallVector<Value>> SegmentEmitter::emitDerive(OpBuilder &builder,
                                                         UpdateOp op) {
  IRMapping mapping;
  Block &block = op.getDerive().front();
  SmallVector<Value> arguments = {loadStep(builder, op.getLoc())};
  for (auto name : op.getHyper().getAsRange<StringAttr>())
    arguments.push_back(loadHyper(builder, op.getLoc(), name.getValue()));
  for (Value scalar : op.getScalars()) {
    FailureOr<Value> value = evaluate(builder, op.getLoc(), scalar);
    if (failed(value))
      return failure();
    arguments.push_back(*value);
  }
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator())
    builder.clone(inner, mapping);
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

FailureOr<SegmentKernelOp> SegmentEmitter::emit(OpBuilder &builder,
                                                StringRef name,
                                                const DerivedSlots &derived,
                                                bool countsStep, Value flag,
                                                bool marksGradient) {
  Location loc = schedule.getStep().getLoc();
  llvm::SetVector<int64_t> rows;
  DenseSet<Value> seen;
  for (const DerivedValue &value : derived.getValues()) {
    if (value.factor)
      discoverRows(value.factor, rows, seen);
    if (value.op)
      for (Value scalar : UpdateOp(value.op).getScalars())
        discoverRows(scalar, rows, seen);
  }
  int64_t end = 0;
  if (!rows.empty()) {
    firstRow = *llvm::min_element(rows);
    end = *llvm::max_element(rows) + 1;
  }
  SmallVector<Attribute> kinds;
  SmallVector<Value> partials;
  FlatSymbolRefAttr layout;
  for (const KernelStage &stage : schedule.getStages())
    for (const AccumulatorRow &row : stage.rows)
      if (row.index >= firstRow && row.index < end) {
        kinds.push_back(CombineAttr::get(builder.getContext(), row.combine));
        partials.push_back(row.partial);
      }
  for (Value argument : schedule.getStep().getArguments())
    if (auto flat = dyn_cast<FlatType>(argument.getType()))
      layout = flat.getLayout();

  auto kernel = SegmentKernelOp::create(
      builder, loc, name,
      SymbolRefAttr::get(layout.getAttr(), {FlatSymbolRefAttr::get(cls)}),
      builder.getArrayAttr(kinds));
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&kernel.getBody());
  for (Value partial : partials)
    values[partial] = body->addArgument(builder.getF64Type(), loc);

  DenseMap<Operation *, SmallVector<Value>> results;
  for (auto [slot, value] : llvm::enumerate(derived.getValues())) {
    Value result;
    if (value.op) {
      SmallVector<Value> &known = results[UpdateOp(value.op)];
      if (known.empty()) {
        FailureOr<SmallVector<Value>> made = emitDerive(builder, value.op);
        if (failed(made))
          return failure();
        known = *made;
      }
      result = known[value.index];
    } else {
      FailureOr<Value> factor = evaluate(builder, loc, value.factor);
      if (failed(factor))
        return failure();
      result = *factor;
      if (result.getType().isF64())
        result =
            arith::TruncFOp::create(builder, loc, builder.getF32Type(), result);
    }
    StoreDerivedOp::create(builder, loc, static_cast<int64_t>(slot), result);
  }
  if (countsStep && failed(emitCount(builder, loc, flag)))
    return failure();
  if (marksGradient)
    emitMark(builder, loc);
  YieldOp::create(builder, loc);
  return kernel;
}

/// Whether the segment has a gradient in this step.
Value SegmentEmitter::loadActive(OpBuilder &builder, Location loc) {
  Value word = LoadSegmentOp::create(builder, loc, builder.getI32Type(),
                                     SegmentField::Active);
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, word,
                               zero);
}

LogicalResult SegmentEmitter::emitCount(OpBuilder &builder, Location loc,
                                        Value flag) {
  Value next = loadStep(builder, loc);
  Value applied = loadActive(builder, loc);
  if (flag) {
    FailureOr<Value> set = scratch.load(builder, loc, flag);
    if (failed(set))
      return failure();
    Value truth = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value clear = arith::XOrIOp::create(builder, loc, *set, truth);
    applied = arith::AndIOp::create(builder, loc, applied, clear);
  }
  Value one = arith::ConstantIntOp::create(builder, loc, 1, 64);
  Value before = arith::SubIOp::create(builder, loc, next, one);
  Value kept = arith::SelectOp::create(builder, loc, applied, next, before);
  StoreSegmentOp::create(builder, loc, SegmentField::Step, kept);
  return success();
}

/// From now on a contribution adds instead of copying.
void SegmentEmitter::emitMark(OpBuilder &builder, Location loc) {
  Type i32 = builder.getI32Type();
  Value current = LoadControlOp::create(builder, loc, i32, "generation");
  Value own =
      LoadSegmentOp::create(builder, loc, i32, SegmentField::Generation);
  Value kept = arith::SelectOp::create(builder, loc, loadActive(builder, loc),
                                       current, own);
  StoreSegmentOp::create(builder, loc, SegmentField::Generation, kept);
}
