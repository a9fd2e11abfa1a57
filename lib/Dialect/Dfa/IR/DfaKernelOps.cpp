// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level C kernels: verification.

#include "DfaAsm.h"
#include "dfa-rt/abi.h"
#include "dfa/IR/Dfa.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::dfa;

unsigned KernelOp::getNumAccumulators() { return getAccumulators().size(); }
unsigned ControlKernelOp::getNumAccumulators() {
  return getAccumulators().size() + getGroupAccumulators().size();
}
unsigned SegmentKernelOp::getNumAccumulators() {
  return getAccumulators().size();
}

LogicalResult KernelOp::verify() {
  llvm::StringSet<> names;
  for (auto array : getArrays().getAsRange<KernelArrayAttr>())
    if (!names.insert(array.getName().getValue()).second)
      return emitOpError("expects arrays that differ, but got '")
             << array.getName().getValue() << "' twice";
  return success();
}

/// A kernel is on a class of a layout. A layout that is not in scope is not
/// looked into: kernels are compiled apart from it.
static LogicalResult verifyClass(Operation *op, SymbolRefAttr cls,
                                 SymbolTableCollection &tables) {
  if (cls.getNestedReferences().size() != 1)
    return op->emitOpError("expects a class of a layout, as in "
                           "'@layout::@class', but got ")
           << cls;
  LayoutOp layout = tables.lookupNearestSymbolFrom<LayoutOp>(
      op, FlatSymbolRefAttr::get(cls.getRootReference()));
  if (!layout || layout.getClass(cls.getLeafReference().getValue()))
    return success();
  InFlightDiagnostic diag = op->emitOpError("expects ")
                            << cls << " to be a 'dfa.class', but found none";
  diag.attachNote(layout.getLoc()) << "layout defined here";
  return diag;
}

LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyClass(*this, getCls(), tables);
}
LogicalResult SegmentKernelOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyClass(*this, getCls(), tables);
}

/// The region's block ends in a dfa.yield of the expected types.
static LogicalResult verifyYield(Operation *op, Region &region, StringRef what,
                                 TypeRange expected) {
  auto yield = dyn_cast<YieldOp>(region.front().getTerminator());
  if (!yield)
    return op->emitOpError("expects ") << what << " to end in 'dfa.yield'";
  if (TypeRange(yield.getValues()) != expected)
    return yield.emitOpError("expects values of types (")
           << expected << "), but got (" << TypeRange(yield.getValues()) << ")";
  return success();
}

static LogicalResult verifyArguments(Operation *op, Region &region,
                                     StringRef what, TypeRange expected) {
  if (TypeRange(region.getArguments()) == expected)
    return success();
  return op->emitOpError("expects ")
         << what << " to have arguments (" << expected << "), but got ("
         << TypeRange(region.getArguments()) << ")";
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyArguments(*this, getUniform(), "'uniform'", {})))
    return failure();
  auto uniform = dyn_cast<YieldOp>(getUniform().front().getTerminator());
  if (!uniform || uniform.getValues().empty() ||
      !uniform.getValues().front().getType().isInteger(1))
    return emitOpError("expects 'uniform' to yield an i1 predicate first");
  SmallVector<Type> arguments(llvm::drop_begin(uniform.getValues().getTypes()));
  SmallVector<Type> results;
  for (auto array : getArrays().getAsRange<KernelArrayAttr>()) {
    if (array.isRead())
      arguments.push_back(array.getType());
    if (array.isWritten())
      results.push_back(array.getType());
  }
  results.append(getAccumulators().size(), Float64Type::get(getContext()));
  if (failed(verifyArguments(*this, getBody(), "'body'", arguments)))
    return failure();
  return verifyYield(*this, getBody(), "'body'", results);
}

LogicalResult ControlKernelOp::verifyRegions() {
  SmallVector<Type> arguments(getAccumulators().size(),
                              Float64Type::get(getContext()));
  if (failed(verifyArguments(*this, getBody(), "the body", arguments)))
    return failure();
  return verifyYield(*this, getBody(), "the body", {});
}

LogicalResult SegmentKernelOp::verifyRegions() {
  SmallVector<Type> arguments(getAccumulators().size(),
                              Float64Type::get(getContext()));
  if (failed(verifyArguments(*this, getBody(), "the body", arguments)))
    return failure();
  return verifyYield(*this, getBody(), "the body", {});
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

static LogicalResult verifyType(Operation *op, Type expected, Type got) {
  if (expected == got)
    return success();
  return op->emitOpError("expects type ") << expected << ", but got " << got;
}

static LogicalResult verifyControlField(Operation *op, StringRef field,
                                        Type type) {
  Type expected = getControlFieldType(field, op->getContext());
  if (!expected)
    return op->emitOpError("has no control field '")
           << field << "'; fields are " << listControlFields();
  return verifyType(op, expected, type);
}

static LogicalResult verifySlot(Operation *op, int64_t slot, int64_t limit) {
  if (slot >= 0 && slot < limit)
    return success();
  return op->emitOpError("expects a slot from 0 to ")
         << limit - 1 << ", but got " << slot;
}

static LogicalResult verifyScratchType(Operation *op, Type type) {
  if (type.isF64() || type.isF32() || type.isInteger(64) || type.isInteger(32))
    return success();
  return op->emitOpError("expects a scalar of type f64, f32, i64 or i32, "
                         "but got ")
         << type;
}

LogicalResult LoadControlOp::verify() {
  return verifyControlField(*this, getField(), getResult().getType());
}
LogicalResult StoreControlOp::verify() {
  return verifyControlField(*this, getField(), getValue().getType());
}

LogicalResult LoadScratchOp::verify() {
  if (failed(verifySlot(*this, getSlot(), DFA_RT_CONTROL_SCRATCH)))
    return failure();
  return verifyScratchType(*this, getResult().getType());
}
LogicalResult StoreScratchOp::verify() {
  if (failed(verifySlot(*this, getSlot(), DFA_RT_CONTROL_SCRATCH)))
    return failure();
  return verifyScratchType(*this, getValue().getType());
}

LogicalResult LoadHyperOp::verify() {
  if (static_cast<int64_t>(getColumn()) < 0)
    return emitOpError("expects a column of at least 0, but got ")
           << static_cast<int64_t>(getColumn());
  if (getName().empty())
    return emitOpError("expects the name of a hyper-parameter, but got \"\"");
  return verifyType(*this, Float64Type::get(getContext()),
                    getResult().getType());
}

static Type getSegmentFieldType(SegmentField field, MLIRContext *context) {
  return IntegerType::get(context, field == SegmentField::Step ? 64 : 32);
}

LogicalResult LoadSegmentOp::verify() {
  return verifyType(*this, getSegmentFieldType(getField(), getContext()),
                    getResult().getType());
}
LogicalResult StoreSegmentOp::verify() {
  return verifyType(*this, getSegmentFieldType(getField(), getContext()),
                    getValue().getType());
}

/// More derived values than this are a mistake, not a rule.
static constexpr int64_t maxDerived = 256;

LogicalResult LoadDerivedOp::verify() {
  if (failed(verifySlot(*this, getSlot(), maxDerived)))
    return failure();
  return verifyType(*this, Float32Type::get(getContext()),
                    getResult().getType());
}
LogicalResult StoreDerivedOp::verify() {
  if (failed(verifySlot(*this, getSlot(), maxDerived)))
    return failure();
  return verifyType(*this, Float32Type::get(getContext()),
                    getValue().getType());
}

LogicalResult LoadGroupStatOp::verify() {
  if (failed(verifySlot(*this, getSlot(), maxDerived)))
    return failure();
  return verifyType(*this, Float64Type::get(getContext()),
                    getResult().getType());
}
