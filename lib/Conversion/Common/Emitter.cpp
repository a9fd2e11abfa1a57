// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The builder that kernels are written with.

#include "Emitter.h"

using namespace mlir;
using namespace mlir::dfa;

Value Emitter::at(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer,
                             ValueRange{bytes});
}

Value Emitter::at(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return at(pointer, constI64(bytes));
}

Value Emitter::element(Value pointer, Value index, int64_t bytes) {
  return at(pointer, mul(index, constI64(bytes)));
}

Value Emitter::isNull(Value pointer) {
  Value null = LLVM::ZeroOp::create(*this, pointer.getType());
  return LLVM::ICmpOp::create(*this, LLVM::ICmpPredicate::eq, pointer, null);
}

Value Emitter::allocate(int64_t count) {
  return LLVM::AllocaOp::create(*this, getPointerType(), getF64Type(),
                                constI64(count), /*alignment=*/64);
}

void Emitter::loop(Value lower, Value upper, Value step,
                   function_ref<void(Value)> body) {
  scf::ForOp op = scf::ForOp::create(*this, lower, upper, step);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

Emitter::Values Emitter::loop(Value lower, Value upper, Value step,
                              ValueRange carried,
                              function_ref<Values(Value, ValueRange)> body) {
  scf::ForOp op = scf::ForOp::create(*this, lower, upper, step, carried);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  Values next = body(op.getInductionVar(), op.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return Values(op.getResults());
}

void Emitter::ifTrue(Value condition, function_ref<void()> yes,
                     function_ref<void()> no) {
  scf::IfOp op = scf::IfOp::create(*this, condition,
                                   /*withElseRegion=*/static_cast<bool>(no));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  yes();
  if (!no)
    return;
  setInsertionPointToStart(op.elseBlock());
  no();
}

Emitter::Values Emitter::ifElse(Value condition, TypeRange types,
                                function_ref<Values()> yes,
                                function_ref<Values()> no) {
  if (types.empty()) {
    ifTrue(condition, [&] { (void)yes(); }, [&] { (void)no(); });
    return {};
  }
  scf::IfOp op = scf::IfOp::create(*this, types, condition,
                                   /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(*this, yes());
  setInsertionPointToStart(op.elseBlock());
  scf::YieldOp::create(*this, no());
  return Values(op.getResults());
}
