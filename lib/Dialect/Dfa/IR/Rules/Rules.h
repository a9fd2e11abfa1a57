// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of named rules share: a scalar expression builder and the
// construction of dfa.update from two functions.

#ifndef DFA_LIB_DIALECT_DFA_IR_RULES_RULES_H
#define DFA_LIB_DIALECT_DFA_IR_RULES_RULES_H

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::dfa::rules {

using Scalars = SmallVector<Value>;

/// Writes scalar expressions. Each call is one IEEE operation; nothing is
/// contracted or reassociated behind it.
class ScalarBuilder {
public:
  ScalarBuilder(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc) {}

  Value add(Value a, Value b) const {
    return arith::AddFOp::create(builder, loc, a, b);
  }
  Value sub(Value a, Value b) const {
    return arith::SubFOp::create(builder, loc, a, b);
  }
  Value mul(Value a, Value b) const {
    return arith::MulFOp::create(builder, loc, a, b);
  }
  Value div(Value a, Value b) const {
    return arith::DivFOp::create(builder, loc, a, b);
  }
  Value neg(Value a) const { return arith::NegFOp::create(builder, loc, a); }
  /// a * b + c, rounded once.
  Value fma(Value a, Value b, Value c) const {
    return math::FmaOp::create(builder, loc, a, b, c);
  }
  Value sqrt(Value a) const { return math::SqrtOp::create(builder, loc, a); }
  Value powi(Value base, Value exponent) const {
    return PowiOp::create(builder, loc, base, exponent);
  }
  /// A constant of the type of `like`.
  Value constant(double value, Value like) const {
    return arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(like.getType(), value));
  }
  Value constantInt(int64_t value) const {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }
  /// f64 to f32, to nearest even.
  Value toF32(Value a) const {
    return arith::TruncFOp::create(builder, loc, builder.getF32Type(), a);
  }
  /// i64 to f64.
  Value toF64(Value a) const {
    return arith::SIToFPOp::create(builder, loc, builder.getF64Type(), a);
  }
  Value less(Value a, Value b) const {
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b);
  }
  Value equal(Value a, Value b) const {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  }
  Value select(Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }

  OpBuilder &builder;
  Location loc;
};

/// A dfa.update to be built.
struct Generic {
  ValueRange inputs;
  ValueRange outs;
  Value control;
  Value foundInf;
  ValueRange scalars;
  /// Types of results without a destination.
  SmallVector<Type> extraResults;
  SmallVector<StringRef> hyper;
  /// (step, hyper..., scalars...) to derived f32 values.
  llvm::function_ref<Scalars(ScalarBuilder, ValueRange)> derive;
  /// (elements of inputs and outs, derived values) to new elements.
  llvm::function_ref<Scalars(ScalarBuilder, ValueRange, ValueRange)> apply;
};

/// Builds the update before the builder's insertion point.
UpdateOp create(OpBuilder &builder, Location loc, const Generic &rule);

/// What every named rule's verifier checks: the destinations it wants by
/// name, f32 elements, and that all cover the gradient's elements.
LogicalResult verify(Operation *op, FlatType grad, TypeRange outs,
                     TypeRange results, ArrayRef<StringRef> names);

} // namespace mlir::dfa::rules

#endif // DFA_LIB_DIALECT_DFA_IR_RULES_RULES_H
