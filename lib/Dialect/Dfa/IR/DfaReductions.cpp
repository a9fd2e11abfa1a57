// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one element contributes to a reduction. All accumulators are f64, so no
// finite f32 gradient can overflow one.

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::dfa;

static Value toF64(OpBuilder &builder, Location loc, Value element) {
  if (element.getType().isF64())
    return element;
  return arith::ExtFOp::create(builder, loc, builder.getF64Type(), element);
}

Combine NormPartialOp::getCombine() {
  return getResult().getType().getKind() == Accumulation::Inf ? Combine::Max
                                                              : Combine::Sum;
}

Value NormPartialOp::emitContribution(OpBuilder &builder, Value element) {
  Location loc = getLoc();
  PartialType type = getResult().getType();
  Value wide = toF64(builder, loc, element);
  if (type.getKind() == Accumulation::L2)
    return arith::MulFOp::create(builder, loc, wide, wide);
  Value magnitude = math::AbsFOp::create(builder, loc, wide);
  if (type.getKind() != Accumulation::Lp)
    return magnitude;
  // |x|^p by squaring, most significant bit first; p is a small integer.
  auto order = static_cast<uint64_t>(type.getOrder().getValueAsDouble());
  Value power = magnitude;
  for (int bit = static_cast<int>(llvm::Log2_64(order)) - 1; bit >= 0; --bit) {
    power = arith::MulFOp::create(builder, loc, power, power);
    if (order >> bit & 1)
      power = arith::MulFOp::create(builder, loc, power, magnitude);
  }
  return power;
}

Combine NonFiniteOp::getCombine() { return Combine::Max; }

Value NonFiniteOp::emitContribution(OpBuilder &builder, Value element) {
  Location loc = getLoc();
  Value wide = toF64(builder, loc, element);
  Value magnitude = math::AbsFOp::create(builder, loc, wide);
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getF64FloatAttr(value));
  };
  // Ordered: false for nan.
  Value finite =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, magnitude,
                            constant(std::numeric_limits<double>::infinity()));
  return arith::SelectOp::create(builder, loc, finite, constant(0.0),
                                 constant(1.0));
}
