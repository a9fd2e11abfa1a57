// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies scalar regions, widened to vectors where asked.

#include "BodyEmitter.h"
#include "dfa-rt/abi.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::dfa;

Type dfa::getWideType(Type type, unsigned width) {
  if (width <= 1)
    return type;
  return VectorType::get({static_cast<int64_t>(width)}, type);
}

Value dfa::widenValue(Emitter &emitter, Value value, unsigned width) {
  if (width <= 1)
    return value;
  return vector::BroadcastOp::create(
      emitter, cast<VectorType>(getWideType(value.getType(), width)), value);
}

namespace {

class BodyEmitter {
public:
  BodyEmitter(Emitter &emitter, const TableRows &rows, unsigned width)
      : emitter(emitter), rows(rows), width(width) {}

  LogicalResult emitBlock(Block &block);
  IRMapping mapping;

private:
  LogicalResult emit(Operation &op);
  LogicalResult emitTableOp(Operation &op);
  LogicalResult emitConstant(arith::ConstantOp op);
  LogicalResult emitElementwise(Operation &op);
  LogicalResult emitNested(Operation &op);
  void emitPowi(PowiOp op);
  Value emitScalarPowi(Value base, Value exponent);
  LogicalResult emitAccess(Operation &op, StringRef table, Value row,
                           int64_t offset);

  Emitter &emitter;
  const TableRows &rows;
  unsigned width;
};

} // namespace

/// Ops on 16-bit floats that only move or compare bits, or round once.
static bool isExactOnNarrowFloats(Operation &op) {
  return isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::NegFOp,
             arith::CmpFOp, arith::SelectOp, arith::ConstantOp>(op);
}

static bool isNarrowFloat(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
}

/// Arithmetic on 16-bit floats is rounded differently by different targets,
/// and so is a conversion from f64 to them.
static LogicalResult checkBits(Operation &op) {
  auto anyNarrow = [](TypeRange types) {
    return llvm::any_of(types, isNarrowFloat);
  };
  if (!anyNarrow(op.getOperandTypes()) && !anyNarrow(op.getResultTypes()))
    return success();
  if (arith::TruncFOp trunc = dyn_cast<arith::TruncFOp>(op))
    if (!trunc.getIn().getType().isF32())
      return op.emitOpError("expects an operand of type f32 where the result "
                            "is ")
             << trunc.getType() << ", but got " << trunc.getIn().getType();
  if (isExactOnNarrowFloats(op))
    return success();
  return op.emitOpError("has no lowering on 16-bit floats; expects f32 or f64 "
                        "operands, extended before and rounded after");
}

LogicalResult BodyEmitter::emitAccess(Operation &op, StringRef table, Value row,
                                      int64_t offset) {
  if (!row)
    return op.emitOpError("is not available in this kind of kernel, which has "
                          "no ")
           << table;
  if (width > 1)
    return op.emitOpError("expects to be in 'uniform', but is in 'body'");
  Value address = emitter.at(row, offset);
  if (op.getNumResults() == 1) {
    Type type = op.getResult(0).getType();
    unsigned bytes = type.getIntOrFloatBitWidth() / 8;
    mapping.map(op.getResult(0), emitter.load(type, address, bytes));
    return success();
  }
  Value value = mapping.lookup(op.getOperand(0));
  emitter.store(value, address, value.getType().getIntOrFloatBitWidth() / 8);
  return success();
}

static int64_t getSegmentFieldOffset(SegmentField field) {
  switch (field) {
  case SegmentField::Step:
    return offsetof(dfa_rt_segment_state_t, step);
  case SegmentField::Active:
    return offsetof(dfa_rt_segment_state_t, active);
  case SegmentField::Generation:
    return offsetof(dfa_rt_segment_state_t, generation);
  }
  return 0;
}

LogicalResult BodyEmitter::emitTableOp(Operation &op) {
  constexpr int64_t scratch = offsetof(dfa_rt_control_t, scratch);
  if (LoadControlOp load = dyn_cast<LoadControlOp>(op))
    return emitAccess(op, "control block", rows.control,
                      getControlFieldOffset(load.getField()));
  if (StoreControlOp store = dyn_cast<StoreControlOp>(op))
    return emitAccess(op, "control block", rows.control,
                      getControlFieldOffset(store.getField()));
  if (LoadScratchOp load = dyn_cast<LoadScratchOp>(op))
    return emitAccess(op, "control block", rows.control,
                      scratch + 8 * load.getSlot());
  if (StoreScratchOp store = dyn_cast<StoreScratchOp>(op))
    return emitAccess(op, "control block", rows.control,
                      scratch + 8 * store.getSlot());
  if (LoadHyperOp load = dyn_cast<LoadHyperOp>(op))
    return emitAccess(op, "group row", rows.hyper, 8 * load.getColumn());
  if (LoadSegmentOp load = dyn_cast<LoadSegmentOp>(op))
    return emitAccess(op, "segment", rows.state,
                      getSegmentFieldOffset(load.getField()));
  if (StoreSegmentOp store = dyn_cast<StoreSegmentOp>(op))
    return emitAccess(op, "segment", rows.state,
                      getSegmentFieldOffset(store.getField()));
  if (LoadDerivedOp load = dyn_cast<LoadDerivedOp>(op))
    return emitAccess(op, "derived row", rows.derived, 4 * load.getSlot());
  if (StoreDerivedOp store = dyn_cast<StoreDerivedOp>(op))
    return emitAccess(op, "derived row", rows.derived, 4 * store.getSlot());
  if (LoadGroupStatOp load = dyn_cast<LoadGroupStatOp>(op))
    return emitAccess(op, "group statistics", rows.groupStats,
                      8 * load.getSlot());
  return op.emitOpError("has no lowering in a kernel");
}

/// dfa.powi as its description says: bits of the exponent from the lowest up.
Value BodyEmitter::emitScalarPowi(Value base, Value exponent) {
  Value one = arith::ConstantOp::create(emitter, emitter.getF64FloatAttr(1.0));
  Value zero = emitter.constI64(0);
  Value bit = emitter.constI64(1);
  scf::WhileOp loop = scf::WhileOp::create(
      emitter, TypeRange{one.getType(), base.getType(), exponent.getType()},
      ValueRange{one, base, exponent},
      [&](OpBuilder &b, Location loc, ValueRange v) {
        Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                           v[2], zero);
        scf::ConditionOp::create(b, loc, more, v);
      },
      [&](OpBuilder &b, Location loc, ValueRange v) {
        Value low = arith::AndIOp::create(b, loc, v[2], bit);
        Value odd =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, low, zero);
        Value product = arith::MulFOp::create(b, loc, v[0], v[1]);
        Value result = arith::SelectOp::create(b, loc, odd, product, v[0]);
        Value square = arith::MulFOp::create(b, loc, v[1], v[1]);
        Value rest = arith::ShRUIOp::create(b, loc, v[2], bit);
        scf::YieldOp::create(b, loc, ValueRange{result, square, rest});
      });
  return loop.getResult(0);
}

void BodyEmitter::emitPowi(PowiOp op) {
  Value base = mapping.lookup(op.getBase());
  Value exponent = mapping.lookup(op.getExponent());
  if (width <= 1) {
    mapping.map(op.getResult(), emitScalarPowi(base, exponent));
    return;
  }
  Value result = base;
  for (unsigned i = 0; i < width; ++i) {
    Value lane =
        emitScalarPowi(vector::ExtractOp::create(emitter, base, i),
                       vector::ExtractOp::create(emitter, exponent, i));
    result = vector::InsertOp::create(emitter, lane, result, i);
  }
  mapping.map(op.getResult(), result);
}

LogicalResult BodyEmitter::emitConstant(arith::ConstantOp op) {
  TypedAttr value = op.getValue();
  if (width > 1)
    value = DenseElementsAttr::get(
        cast<ShapedType>(getWideType(op.getType(), width)),
        ArrayRef<Attribute>(value));
  mapping.map(op.getResult(), arith::ConstantOp::create(emitter, value));
  return success();
}

LogicalResult BodyEmitter::emitElementwise(Operation &op) {
  if (width > 1 && !op.hasTrait<OpTrait::Vectorizable>())
    return op.emitOpError("is not an elementwise op, so 'body' cannot be "
                          "widened to vectors");
  // f64 from a 16-bit float in two exact steps, which every target has.
  if (isa<arith::ExtFOp>(op) && isNarrowFloat(op.getOperand(0).getType()) &&
      op.getResult(0).getType().isF64()) {
    Value f32 =
        arith::ExtFOp::create(emitter, getWideType(emitter.getF32Type(), width),
                              mapping.lookup(op.getOperand(0)));
    mapping.map(op.getResult(0),
                arith::ExtFOp::create(
                    emitter, getWideType(emitter.getF64Type(), width), f32));
    return success();
  }
  Operation *copy = emitter.clone(op, mapping);
  for (OpResult result : copy->getResults())
    result.setType(getWideType(result.getType(), width));
  return success();
}

/// Ops with regions, in scalar code: the regions may hold table accesses.
LogicalResult BodyEmitter::emitNested(Operation &op) {
  if (width > 1)
    return op.emitOpError("has regions, so 'body' cannot be widened to "
                          "vectors");
  Operation *copy = op.cloneWithoutRegions(mapping);
  emitter.insert(copy);
  OpBuilder::InsertionGuard guard(emitter);
  for (auto [from, to] : llvm::zip(op.getRegions(), copy->getRegions())) {
    if (!from.empty() && !from.hasOneBlock())
      return op.emitOpError("expects regions of one block");
    for (Block &block : from) {
      Block *target = emitter.createBlock(&to);
      for (BlockArgument argument : block.getArguments())
        mapping.map(argument,
                    target->addArgument(argument.getType(), argument.getLoc()));
      if (failed(emitBlock(block)))
        return failure();
      emitter.clone(*block.getTerminator(), mapping);
    }
  }
  return success();
}

LogicalResult BodyEmitter::emit(Operation &op) {
  emitter.setLoc(op.getLoc());
  if (PowiOp powi = dyn_cast<PowiOp>(op))
    return emitPowi(powi), success();
  if (isa<DfaDialect>(op.getDialect()))
    return emitTableOp(op);
  if (op.getNumRegions() > 0)
    return emitNested(op);
  if (failed(checkBits(op)))
    return failure();
  if (arith::ConstantOp constant = dyn_cast<arith::ConstantOp>(op))
    return emitConstant(constant);
  return emitElementwise(op);
}

LogicalResult BodyEmitter::emitBlock(Block &block) {
  Location loc = emitter.getLoc();
  for (Operation &op : block.without_terminator())
    if (failed(emit(op)))
      return failure();
  emitter.setLoc(loc);
  return success();
}

FailureOr<SmallVector<Value>> dfa::emitRegion(Emitter &emitter, Region &region,
                                              ValueRange arguments,
                                              const TableRows &rows,
                                              unsigned width) {
  BodyEmitter body(emitter, rows, width);
  Block &block = region.front();
  body.mapping.map(block.getArguments(), arguments);
  if (failed(body.emitBlock(block)))
    return failure();
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(body.mapping.lookup(value));
  return results;
}
