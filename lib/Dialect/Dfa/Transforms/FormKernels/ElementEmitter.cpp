// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element kernels: all work of one stage on one class, each array read once
// and written once.

#include "ElementEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::dfa;

int64_t DerivedSlots::request(DerivedValue value) {
  auto it = llvm::find(values, value);
  if (it == values.end()) {
    values.push_back(value);
    return static_cast<int64_t>(values.size()) - 1;
  }
  return it - values.begin();
}

//===----------------------------------------------------------------------===//
// What the kernel needs
//===----------------------------------------------------------------------===//

SmallVector<DerivedValue>
ElementEmitter::getUniforms(ElementwiseOpInterface op) {
  SmallVector<DerivedValue> result;
  if (auto update = dyn_cast<UpdateOp>(*op)) {
    Operation *yield = update.getDerive().front().getTerminator();
    for (unsigned index = 0; index < yield->getNumOperands(); ++index)
      result.push_back({update, index, {}});
    return result;
  }
  for (Value factor : op.getUniformOperands())
    result.push_back({{}, 0, factor});
  return result;
}

LogicalResult ElementEmitter::discoverOp(ElementwiseOpInterface op) {
  for (Value operand : op->getOperands())
    if (isa<FlatType>(operand.getType()) && failed(discover(operand)))
      return failure();
  if (!fused.insert(op))
    return success();
  for (const DerivedValue &value : getUniforms(op)) {
    int64_t slot = derived.request(value);
    if (!llvm::is_contained(uniforms, slot))
      uniforms.push_back(slot);
  }
  return success();
}

LogicalResult ElementEmitter::discover(Value value) {
  if (!seen.insert(value).second)
    return success();
  StringAttr array = schedule.getArray(value, stage);
  if (!array)
    return discoverOp(value.getDefiningOp<ElementwiseOpInterface>());
  if (schedule.isOverwritten(value, stage)) {
    InFlightDiagnostic diag = emitError(value.getLoc())
                              << "is needed after array '" << array.getValue()
                              << "' of class '@" << cls.getValue()
                              << "' was overwritten; it would need a buffer of "
                              << "its own";
    return diag;
  }
  auto [it, isNew] = loads.insert({array, value});
  if (!isNew && it->second != value)
    return emitError(value.getLoc())
           << "is one of two values that array '" << array.getValue()
           << "' would have to hold at once";
  return success();
}

LogicalResult ElementEmitter::discover() {
  for (const StoredValue &stored : stores)
    if (failed(discover(stored.value)))
      return failure();
  for (ReductionOpInterface reduction : reductions)
    if (failed(discover(reduction->getOperand(0))))
      return failure();
  return success();
}

bool ElementEmitter::readsFrom(const ElementEmitter &other) const {
  return llvm::any_of(other.stores, [&](const StoredValue &stored) {
    return loads.contains(stored.array);
  });
}

SmallVector<const AccumulatorRow *> ElementEmitter::getRows() const {
  SmallVector<const AccumulatorRow *> rows;
  for (const AccumulatorRow &row : schedule.getStage(stage).rows)
    for (ReductionOpInterface leaf : row.leaves)
      if (llvm::is_contained(reductions, leaf) &&
          !llvm::is_contained(rows, &row))
        rows.push_back(&row);
  return rows;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

SmallVector<Attribute> ElementEmitter::describeArrays(OpBuilder &builder) {
  SmallVector<Attribute> attributes;
  for (const StepSchedule::ArrayInfo &info : schedule.getArrays(cls)) {
    bool isRead = loads.contains(info.name);
    bool isWritten = llvm::any_of(stores, [&](const StoredValue &stored) {
      return stored.array == info.name;
    });
    if (!isRead && !isWritten)
      continue;
    Access access = isRead && isWritten ? Access::ReadWrite
                    : isRead            ? Access::Read
                                        : Access::Write;
    attributes.push_back(KernelArrayAttr::get(builder.getContext(), info.name,
                                              info.type, access));
  }
  return attributes;
}

FailureOr<KernelOp> ElementEmitter::emit(OpBuilder &builder, StringRef name) {
  // Rows between the first and the last that are not ours get the identity.
  SmallVector<Attribute> kinds;
  SmallVector<const AccumulatorRow *> rows = getRows();
  if (!rows.empty()) {
    firstRow = rows.front()->index;
    for (const AccumulatorRow &row : schedule.getStage(stage).rows) {
      if (row.index < firstRow || row.index > rows.back()->index)
        continue;
      kinds.push_back(CombineAttr::get(builder.getContext(), row.combine));
    }
  }
  Location loc = schedule.getStep().getLoc();
  FlatSymbolRefAttr layout =
      cast<FlatType>(
          (stores.empty() ? reductions[0]->getOperand(0) : stores[0].value)
              .getType())
          .getLayout();
  auto classRef =
      SymbolRefAttr::get(layout.getAttr(), {FlatSymbolRefAttr::get(cls)});
  auto kernel = KernelOp::create(builder, loc, name, classRef,
                                 builder.getArrayAttr(describeArrays(builder)),
                                 builder.getArrayAttr(kinds));
  OpBuilder::InsertionGuard guard(builder);
  if (failed(emitUniform(builder, kernel)))
    return failure();
  emitBody(builder, kernel);
  hoistUniform(builder, kernel);
  return kernel;
}

LogicalResult ElementEmitter::emitUniform(OpBuilder &builder, KernelOp kernel) {
  Location loc = kernel.getLoc();
  builder.createBlock(&kernel.getUniform());
  Value word = LoadSegmentOp::create(builder, loc, builder.getI32Type(),
                                     SegmentField::Active);
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value run =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, word, zero);
  if (predicate) {
    FailureOr<Value> flag = scratch.load(builder, loc, predicate);
    if (failed(flag))
      return failure();
    Value truth = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value clear = arith::XOrIOp::create(builder, loc, *flag, truth);
    run = arith::AndIOp::create(builder, loc, run, clear);
  }
  SmallVector<Value> yielded = {run};
  for (int64_t slot : uniforms)
    yielded.push_back(
        LoadDerivedOp::create(builder, loc, builder.getF32Type(), slot));
  YieldOp::create(builder, loc, yielded);
  return success();
}

void ElementEmitter::emitBody(OpBuilder &builder, KernelOp kernel) {
  Location loc = kernel.getLoc();
  Block *block = builder.createBlock(&kernel.getBody());
  for (int64_t slot : uniforms)
    uniformValues[slot] = block->addArgument(builder.getF32Type(), loc);
  for (auto array : kernel.getArrays().getAsRange<KernelArrayAttr>())
    if (array.isRead())
      elements[loads[array.getName()]] =
          block->addArgument(array.getType(), loc);

  SmallVector<Value> yielded;
  for (auto array : kernel.getArrays().getAsRange<KernelArrayAttr>())
    for (const StoredValue &stored : stores)
      if (array.isWritten() && stored.array == array.getName())
        yielded.push_back(emitElement(builder, stored.value));
  int64_t lastRow =
      firstRow + static_cast<int64_t>(kernel.getNumAccumulators());
  for (const AccumulatorRow &row : schedule.getStage(stage).rows) {
    if (row.index < firstRow || row.index >= lastRow)
      continue;
    yielded.push_back(emitContribution(builder, loc, row));
  }
  YieldOp::create(builder, loc, yielded);
}

/// What one element adds to `row`: that of all its reductions that are here,
/// each as often as the row has it.
Value ElementEmitter::emitContribution(OpBuilder &builder, Location loc,
                                       const AccumulatorRow &row) {
  Value total;
  for (ReductionOpInterface leaf : row.leaves) {
    if (!llvm::is_contained(reductions, leaf))
      continue;
    Value next = leaf.emitContribution(
        builder, emitElement(builder, leaf->getOperand(0)));
    if (!total) {
      total = next;
    } else if (row.combine == Combine::Sum) {
      total = arith::AddFOp::create(builder, loc, total, next);
    } else {
      // The larger one; a nan on either side stays.
      Value larger = arith::CmpFOp::create(
          builder, loc, arith::CmpFPredicate::OGT, total, next);
      Value isNan = arith::CmpFOp::create(
          builder, loc, arith::CmpFPredicate::UNO, total, total);
      Value keep = arith::OrIOp::create(builder, loc, larger, isNan);
      total = arith::SelectOp::create(builder, loc, keep, total, next);
    }
  }
  if (total)
    return total;
  return arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(0.0));
}

Value ElementEmitter::emitElement(OpBuilder &builder, Value value) {
  if (Value known = elements.lookup(value))
    return known;
  auto op = value.getDefiningOp<ElementwiseOpInterface>();
  SmallVector<Value> operands, scalars;
  for (Value operand : op->getOperands())
    if (isa<FlatType>(operand.getType()))
      operands.push_back(emitElement(builder, operand));
  for (const DerivedValue &uniform : getUniforms(op))
    scalars.push_back(uniformValues.lookup(derived.request(uniform)));
  SmallVector<Value> results = op.emitElement(builder, operands, scalars);
  unsigned next = 0;
  for (Value result : op->getResults())
    if (isa<FlatType>(result.getType()))
      elements[result] = results[next++];
  return elements.lookup(value);
}

/// Moves what does not depend on the element to the uniform region.
void ElementEmitter::hoistUniform(OpBuilder &builder, KernelOp kernel) {
  Block &uniform = kernel.getUniform().front();
  Block &body = kernel.getBody().front();
  Operation *yield = uniform.getTerminator();
  llvm::SmallDenseSet<Value> hoisted;
  SmallVector<Operation *> moved;
  for (Operation &op : body.without_terminator()) {
    bool invariant = llvm::all_of(op.getOperands(), [&](Value operand) {
      return hoisted.contains(operand);
    });
    bool reads = hasSingleEffect<MemoryEffects::Read>(&op);
    // Constants stay where they are used; alone they are worth nothing.
    if (!invariant || !(isMemoryEffectFree(&op) || reads) ||
        op.hasTrait<OpTrait::ConstantLike>())
      continue;
    moved.push_back(&op);
    hoisted.insert(op.result_begin(), op.result_end());
  }
  SmallVector<Value> yielded(yield->getOperands());
  unsigned position = uniforms.size();
  for (Operation *op : moved) {
    op->moveBefore(yield);
    for (Value result : op->getResults()) {
      bool escapes = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !llvm::is_contained(moved, user);
      });
      if (!escapes)
        continue;
      Value argument =
          body.insertArgument(position++, result.getType(), op->getLoc());
      result.replaceUsesWithIf(argument, [&](OpOperand &use) {
        return use.getOwner()->getBlock() == &body &&
               !llvm::is_contained(moved, use.getOwner());
      });
      yielded.push_back(result);
    }
  }
  yield->setOperands(yielded);
}
