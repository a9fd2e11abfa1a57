// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What scalar and control ops compute, as arith and math ops. Control kernels
// and segment kernels are made of this; no pass knows an op by name.

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

/// Short spelling of scalar expressions.
struct Emit {
  OpBuilder &builder;
  Location loc;

  Value f(double value) const {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getF64FloatAttr(value));
  }
  Value i(int64_t value, unsigned width) const {
    return arith::ConstantIntOp::create(builder, loc, value, width);
  }
  Value less(Value a, Value b) const {
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) const {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }
  template <typename Op> Value make(Value a, Value b) const {
    return Op::create(builder, loc, a, b);
  }
  Value infinity() const { return f(std::numeric_limits<double>::infinity()); }
};

} // namespace

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// x^(1/p) for p = 1, 2, 3, ...: a first guess from the exponent, then Newton
/// steps; no libm, so all targets agree. Zero, inf and nan give themselves.
static Value emitRoot(const Emit &e, Value x, int64_t p) {
  OpBuilder &b = e.builder;
  Type i64 = b.getI64Type(), f64 = b.getF64Type();
  Value bits = arith::BitcastOp::create(b, e.loc, i64, x);
  Value part = e.make<arith::DivSIOp>(bits, e.i(p, 64));
  constexpr int64_t one = 0x3ff0000000000000; // bits of 1.0
  Value guess = e.make<arith::AddIOp>(part, e.i(one - one / p, 64));
  Value y = arith::BitcastOp::create(b, e.loc, f64, guess);
  // The guess is right to 10 %; the error squares with each step.
  for (int step = 0; step < 7; ++step) {
    Value power = PowiOp::create(b, e.loc, y, e.i(p - 1, 64));
    Value excess = e.make<arith::SubFOp>(
        y, e.make<arith::DivFOp>(x, power)); // y - x / y^(p-1)
    y = e.make<arith::SubFOp>(
        y, e.make<arith::DivFOp>(excess, e.f(static_cast<double>(p))));
  }
  Value positive = e.less(e.f(0.0), x);
  Value finite = e.less(x, e.infinity());
  return e.select(e.make<arith::AndIOp>(positive, finite), y, x);
}

Value NormFinishOp::emitScalar(OpBuilder &builder, ValueRange operands) {
  PartialType type = getPartial().getType();
  switch (type.getKind()) {
  case Accumulation::L2:
    return math::SqrtOp::create(builder, getLoc(), operands[0]);
  case Accumulation::Lp:
    return emitRoot({builder, getLoc()}, operands[0],
                    static_cast<int64_t>(type.getOrder().getValueAsDouble()));
  default:
    return operands[0];
  }
}

/// The accumulator of a flag is 0 or 1; where a norm's accumulator stands in
/// for it, it is inf or nan exactly if an element is.
Value FlagFinishOp::emitScalar(OpBuilder &builder, ValueRange operands) {
  Emit e{builder, getLoc()};
  return arith::CmpFOp::create(builder, getLoc(), arith::CmpFPredicate::UNE,
                               operands[0], e.f(0.0));
}

Value ClipFactorOp::emitScalar(OpBuilder &builder, ValueRange operands) {
  Emit e{builder, getLoc()};
  Value norm = operands[0], maxNorm = operands[1], one = e.f(1.0);
  Value ratio =
      e.make<arith::DivFOp>(maxNorm, e.make<arith::AddFOp>(norm, e.f(1e-6)));
  // Ordered comparisons are false for nan, so nan and inf give 1.
  Value use =
      e.make<arith::AndIOp>(e.less(ratio, one), e.less(norm, e.infinity()));
  return e.select(use, ratio, one);
}

Value TrustRatioOp::emitScalar(OpBuilder &builder, ValueRange operands) {
  Emit e{builder, getLoc()};
  Value zero = e.f(0.0);
  Value ratio = e.make<arith::DivFOp>(operands[0], operands[1]);
  Value use = e.make<arith::AndIOp>(e.less(zero, operands[0]),
                                    e.less(zero, operands[1]));
  return e.select(use, ratio, e.f(1.0));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

Value GradFactorOp::emitControl(OpBuilder &builder, ControlFields &fields,
                                ValueRange) {
  Value average = fields.read(builder, getLoc(), "average");
  Value scale = arith::ExtFOp::create(builder, getLoc(), builder.getF64Type(),
                                      fields.read(builder, getLoc(), "scale"));
  return arith::DivFOp::create(builder, getLoc(), average, scale);
}

Value ReadOp::emitControl(OpBuilder &builder, ControlFields &fields,
                          ValueRange) {
  return fields.read(builder, getLoc(), getField());
}

Value WriteOp::emitControl(OpBuilder &builder, ControlFields &fields,
                           ValueRange operands) {
  Value value = operands[0];
  if (value.getType().isInteger(1))
    value =
        arith::ExtUIOp::create(builder, getLoc(), builder.getI32Type(), value);
  fields.write(getField(), value);
  return {};
}

Value ScalerUpdateOp::emitControl(OpBuilder &builder, ControlFields &fields,
                                  ValueRange operands) {
  Emit e{builder, getLoc()};
  auto read = [&](StringRef field) {
    return fields.read(builder, getLoc(), field);
  };
  auto scaled = [&](Value scale, Value factor) -> Value {
    Value wide =
        arith::ExtFOp::create(builder, getLoc(), builder.getF64Type(), scale);
    return arith::TruncFOp::create(builder, getLoc(), builder.getF32Type(),
                                   e.make<arith::MulFOp>(wide, factor));
  };
  Value inf = operands[0], scale = read("scale");
  Value zero = e.i(0, 32), one = e.i(1, 32);

  // Overflow: back off once the tolerated ones are used up.
  Value left = e.make<arith::SubIOp>(read("hysteresis_tracker"), one);
  Value exhausted = e.compare(arith::CmpIPredicate::sle, left, zero);
  Value smaller = scaled(scale, read("backoff_factor"));
  Value afterInf = e.select(exhausted, smaller, scale);

  // No overflow: grow after `growth_interval` steps, never beyond f32.
  Value good = e.make<arith::AddIOp>(read("growth_tracker"), one);
  Value due =
      e.compare(arith::CmpIPredicate::sge, good, read("growth_interval"));
  Value larger = scaled(scale, read("growth_factor"));
  Value infinite = arith::ConstantOp::create(
      builder, getLoc(),
      builder.getF32FloatAttr(std::numeric_limits<float>::infinity()));
  Value grows = e.make<arith::AndIOp>(due, e.less(larger, infinite));
  Value afterGood = e.select(grows, larger, scale);

  fields.write("scale", e.select(inf, afterInf, afterGood));
  fields.write("growth_tracker",
               e.select(inf, zero, e.select(due, zero, good)));
  // The tolerance is restored when the scale grows, not by any good step.
  fields.write(
      "hysteresis_tracker",
      e.select(inf, left,
               e.select(due, read("hysteresis"), read("hysteresis_tracker"))));
  return {};
}

Value StepCountOp::emitControl(OpBuilder &builder, ControlFields &fields,
                               ValueRange operands) {
  Emit e{builder, getLoc()};
  auto count = [&](StringRef field, Value amount) {
    fields.write(field, e.make<arith::AddIOp>(
                            fields.read(builder, getLoc(), field), amount));
  };
  Value zero = e.i(0, 64), one = e.i(1, 64);
  if (operands.empty()) {
    count("step", one);
    fields.write("found_inf", e.i(0, 32));
    return {};
  }
  count("step", e.select(operands[0], zero, one));
  count("skipped", e.select(operands[0], one, zero));
  fields.write("found_inf",
               arith::ExtUIOp::create(builder, getLoc(), builder.getI32Type(),
                                      operands[0]));
  return {};
}

Value ZeroGradOp::emitControl(OpBuilder &builder, ControlFields &fields,
                              ValueRange) {
  Emit e{builder, getLoc()};
  Value generation = fields.read(builder, getLoc(), "generation");
  fields.write("generation", e.make<arith::AddIOp>(generation, e.i(1, 32)));
  return {};
}
