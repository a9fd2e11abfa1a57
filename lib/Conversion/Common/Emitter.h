// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels are written with: a builder for address arithmetic, table
// accesses and loops on i64. It knows nothing of kernels.

#ifndef DFA_LIB_CONVERSION_COMMON_EMITTER_H
#define DFA_LIB_CONVERSION_COMMON_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::dfa {

/// Sizes and offsets are i64 everywhere. Memory is reached through pointers
/// of one address space: 0 on hosts, global memory on devices.
class Emitter : public ImplicitLocOpBuilder {
public:
  using Values = SmallVector<Value>;

  Emitter(Location loc, const OpBuilder &builder, unsigned addressSpace)
      : ImplicitLocOpBuilder(loc, builder), addressSpace(addressSpace) {}

  Type getPointerType() {
    return LLVM::LLVMPointerType::get(getContext(), addressSpace);
  }

  Value constI64(int64_t value) {
    return arith::ConstantIntOp::create(*this, value, 64);
  }
  Value constI32(int64_t value) {
    return arith::ConstantIntOp::create(*this, value, 32);
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(*this, a, b); }
  Value bitAnd(Value a, Value b) { return arith::AndIOp::create(*this, a, b); }
  Value bitOr(Value a, Value b) { return arith::OrIOp::create(*this, a, b); }
  Value shiftRight(Value a, Value b) {
    return arith::ShRUIOp::create(*this, a, b);
  }
  Value shiftLeft(Value a, Value b) {
    return arith::ShLIOp::create(*this, a, b);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(*this, condition, yes, no);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(*this, predicate, a, b);
  }
  Value lessThan(Value a, Value b) {
    return compare(arith::CmpIPredicate::slt, a, b);
  }
  /// An unsigned i32 as i64.
  Value widen(Value a) {
    return arith::ExtUIOp::create(*this, getI64Type(), a);
  }

  /// The address `bytes` behind `pointer`.
  Value at(Value pointer, Value bytes);
  Value at(Value pointer, int64_t bytes);
  /// The address of element `index` of an array of `bytes` wide elements.
  Value element(Value pointer, Value index, int64_t bytes);

  Value load(Type type, Value pointer, unsigned alignment) {
    return LLVM::LoadOp::create(*this, type, pointer, alignment);
  }
  void store(Value value, Value pointer, unsigned alignment) {
    LLVM::StoreOp::create(*this, value, pointer, alignment);
  }
  Value loadI64(Value pointer) { return load(getI64Type(), pointer, 8); }
  Value loadF64(Value pointer) { return load(getF64Type(), pointer, 8); }
  /// Loads an unsigned 32-bit word.
  Value loadU32(Value pointer) { return widen(load(getI32Type(), pointer, 4)); }
  /// Whether a pointer of any address space is null.
  Value isNull(Value pointer);
  /// Stack memory for `count` f64; to be called at the start of a function.
  Value allocate(int64_t count);

  /// for (iv = lower; iv < upper; iv += step), signed.
  void loop(Value lower, Value upper, Value step,
            function_ref<void(Value)> body);
  /// The same with carried values; `body` returns their new values.
  Values loop(Value lower, Value upper, Value step, ValueRange carried,
              function_ref<Values(Value, ValueRange)> body);
  void ifTrue(Value condition, function_ref<void()> yes,
              function_ref<void()> no = nullptr);
  Values ifElse(Value condition, TypeRange types, function_ref<Values()> yes,
                function_ref<Values()> no);

private:
  unsigned addressSpace;
};

} // namespace mlir::dfa

#endif // DFA_LIB_CONVERSION_COMMON_EMITTER_H
