// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Control kernels: scalar work that runs once between two kernel stages.

#include "ControlEmitter.h"
#include "dfa-rt/abi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::dfa;

//===----------------------------------------------------------------------===//
// ScratchSlots
//===----------------------------------------------------------------------===//

static bool isConstant(Value value) {
  return matchPattern(value, m_Constant());
}

FailureOr<int64_t> ScratchSlots::request(Value scalar) {
  auto [it, isNew] = slots.insert({scalar, static_cast<int64_t>(slots.size())});
  if (it->second < DFA_RT_CONTROL_SCRATCH)
    return it->second;
  return emitError(scalar.getLoc())
         << "is one scalar too many; there is room for "
         << DFA_RT_CONTROL_SCRATCH << " between kernels";
}

std::optional<int64_t> ScratchSlots::lookup(Value scalar) const {
  auto it = slots.find(scalar);
  if (it == slots.end())
    return std::nullopt;
  return it->second;
}

FailureOr<Value> ScratchSlots::load(OpBuilder &builder, Location loc,
                                    Value scalar) {
  if (isConstant(scalar))
    return builder.clone(*scalar.getDefiningOp())->getResult(0);
  FailureOr<int64_t> slot = request(scalar);
  if (failed(slot))
    return failure();
  if (!scalar.getType().isInteger(1)) {
    Value loaded = LoadScratchOp::create(builder, loc, scalar.getType(), *slot);
    return loaded;
  }
  Value word = LoadScratchOp::create(builder, loc, builder.getI32Type(), *slot);
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value flag =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, word, zero);
  return flag;
}

//===----------------------------------------------------------------------===//
// Control values
//===----------------------------------------------------------------------===//

/// The control block as one op sees it; writes make the next version.
class ControlEmitter::Fields final : public ControlFields {
public:
  Fields(ControlEmitter &emitter, Value version)
      : emitter(emitter), version(version) {}

  Value read(OpBuilder &builder, Location loc, StringRef field) override {
    auto it = written.find(builder.getStringAttr(field));
    if (it != written.end())
      return it->second;
    return emitter.readField(builder, loc, version, field);
  }

  void write(StringRef field, Value value) override {
    written[StringAttr::get(value.getContext(), field)] = value;
  }

  llvm::MapVector<StringAttr, Value> written;

private:
  ControlEmitter &emitter;
  Value version;
};

Value ControlEmitter::readField(OpBuilder &builder, Location loc, Value version,
                                StringRef field) {
  StringAttr name = builder.getStringAttr(field);
  while (versionsHere.contains(version)) {
    Version &known = versions[version];
    auto it = known.written.find(name);
    if (it != known.written.end())
      return it->second;
    version = known.parent;
  }
  // What earlier kernels stored is in memory; the value before is not.
  for (Value later = lastVersion; later && later != version;
       later = versions.lookup(later).parent) {
    auto it = versions.find(later);
    if (it == versions.end() || !it->second.written.contains(name) ||
        versionsHere.contains(later))
      continue;
    emitError(loc) << "reads control field '" << field
                   << "' as it was before a later write, which an earlier "
                      "kernel has made; read it before the write";
    failedRead = true;
  }
  Value &loaded = loads[name];
  if (!loaded) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(body);
    loaded = LoadControlOp::create(
        builder, loc, getControlFieldType(field, builder.getContext()), name);
  }
  return loaded;
}

void ControlEmitter::emitStores(OpBuilder &builder, Location loc) {
  // The last write of each field wins; versions form one chain.
  llvm::MapVector<StringAttr, Value> final;
  SmallVector<Value> chain;
  for (Value version = lastVersion; versionsHere.contains(version);
       version = versions[version].parent)
    chain.push_back(version);
  for (Value version : llvm::reverse(chain))
    for (auto &[field, value] : versions[version].written)
      final[field] = value;
  for (auto &[field, value] : final)
    StoreControlOp::create(builder, loc, field, value);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

LogicalResult ControlEmitter::requestSlots() {
  for (int stage : schedule.getControlStages()) {
    ArrayRef<Operation *> ops = schedule.getControlOps(stage);
    for (Operation *op : ops)
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || isConstant(operand) ||
            llvm::is_contained(ops, producer) ||
            isa<ControlType, PartialType>(operand.getType()))
          continue;
        if (failed(slots.request(operand)))
          return failure();
      }
  }
  return success();
}

FailureOr<Value> ControlEmitter::evaluate(OpBuilder &builder, Location loc,
                                          Value scalar) {
  Value &known = values[scalar];
  if (known)
    return known;
  FailureOr<Value> loaded = slots.load(builder, loc, scalar);
  if (failed(loaded))
    return failure();
  values[scalar] = *loaded;
  return *loaded;
}

LogicalResult ControlEmitter::emitOp(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
  SmallVector<Value> operands;
  Value version;
  for (Value operand : op->getOperands()) {
    if (isa<ControlType>(operand.getType())) {
      version = operand;
      continue;
    }
    if (isa<FlatType>(operand.getType()))
      continue;
    if (!isa<PartialType>(operand.getType())) {
      FailureOr<Value> value = evaluate(builder, loc, operand);
      if (failed(value))
        return failure();
      operands.push_back(*value);
      continue;
    }
    bool isStandIn = false;
    const AccumulatorRow *row = schedule.getRow(operand, &isStandIn);
    Value accumulator = values.lookup(row->partial);
    if (isStandIn) {
      // A norm's accumulator is finite exactly if every element is.
      auto constant = [&](double value) -> Value {
        return arith::ConstantOp::create(builder, loc,
                                         builder.getF64FloatAttr(value));
      };
      Value finite = arith::CmpFOp::create(
          builder, loc, arith::CmpFPredicate::OLT, accumulator,
          constant(std::numeric_limits<double>::infinity()));
      accumulator = arith::SelectOp::create(builder, loc, finite, constant(0.0),
                                            constant(1.0));
    }
    operands.push_back(accumulator);
  }
  if (auto scalar = dyn_cast<ScalarOpInterface>(op)) {
    values[op->getResult(0)] = scalar.emitScalar(builder, operands);
    return success();
  }
  if (auto control = dyn_cast<ControlOpInterface>(op)) {
    Fields fields(*this, version);
    Value result = control.emitControl(builder, fields, operands);
    if (result) {
      values[op->getResult(0)] = result;
      return failure(failedRead);
    }
    Value next = op->getResult(0);
    versions[next] = {version, std::move(fields.written)};
    versionsHere.insert(next);
    lastVersion = next;
    return failure(failedRead);
  }
  IRMapping mapping;
  for (auto [operand, value] : llvm::zip(op->getOperands(), operands))
    mapping.map(operand, value);
  Operation *copy = builder.clone(*op, mapping);
  for (auto [result, value] : llvm::zip(op->getResults(), copy->getResults()))
    values[result] = value;
  return success();
}

FailureOr<ControlKernelOp> ControlEmitter::emit(OpBuilder &builder, int stage,
                                                StringRef name) {
  values.clear();
  loads.clear();
  versionsHere.clear();
  SmallVector<const AccumulatorRow *> whole;
  SmallVector<Attribute> wholeKinds, groupKinds;
  if (stage > 0) {
    for (const AccumulatorRow &row : schedule.getStage(stage - 1).rows) {
      Attribute kind = CombineAttr::get(builder.getContext(), row.combine);
      if (row.scope == Scope::Whole) {
        whole.push_back(&row);
        wholeKinds.push_back(kind);
      }
      if (row.scope == Scope::Group)
        groupKinds.push_back(kind);
    }
  }
  Location loc = schedule.getStep().getLoc();
  auto kernel = ControlKernelOp::create(builder, loc, name,
                                        builder.getArrayAttr(wholeKinds),
                                        builder.getArrayAttr(groupKinds));
  OpBuilder::InsertionGuard guard(builder);
  body = builder.createBlock(&kernel.getBody());
  for (const AccumulatorRow *row : whole)
    values[row->partial] = body->addArgument(builder.getF64Type(), loc);

  for (Operation *op : schedule.getControlOps(stage))
    if (failed(emitOp(builder, op)))
      return failure();

  for (Operation *op : schedule.getControlOps(stage)) {
    for (Value result : op->getResults()) {
      std::optional<int64_t> slot = slots.lookup(result);
      if (!slot)
        continue;
      Value value = values.lookup(result);
      if (value.getType().isInteger(1))
        value =
            arith::ExtUIOp::create(builder, loc, builder.getI32Type(), value);
      StoreScratchOp::create(builder, loc, *slot, value);
    }
  }
  emitStores(builder, loc);
  YieldOp::create(builder, loc);
  return kernel;
}
