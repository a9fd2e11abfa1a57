// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each elementwise op computes from one element, as scalar ops. Fusion
// calls this; no pass knows an op by name.

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::dfa;

using Values = SmallVector<Value>;

/// `value` as f32, rounded to nearest even if it is wider.
static Value toF32(OpBuilder &builder, Location loc, Value value) {
  Type f32 = builder.getF32Type();
  unsigned width = cast<FloatType>(value.getType()).getWidth();
  if (width == 32)
    return value;
  if (width < 32)
    return arith::ExtFOp::create(builder, loc, f32, value);
  return arith::TruncFOp::create(builder, loc, f32, value);
}

/// An f32 value as `type`, rounded to nearest even if that is narrower.
static Value fromF32(OpBuilder &builder, Location loc, Value value, Type type) {
  unsigned width = cast<FloatType>(type).getWidth();
  if (width == 32)
    return value;
  if (width > 32)
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

static Value constantInt(OpBuilder &builder, Location loc, int64_t value,
                         unsigned width) {
  return arith::ConstantIntOp::create(builder, loc, value, width);
}

//===----------------------------------------------------------------------===//
// Factors and clipping
//===----------------------------------------------------------------------===//

Values UnscaleOp::emitElement(OpBuilder &builder, ValueRange elements,
                              ValueRange scalars) {
  // f64 gradients are multiplied before they are rounded.
  if (elements[0].getType().isF64()) {
    Value factor = scalars[0];
    if (!factor.getType().isF64())
      factor = arith::ExtFOp::create(builder, getLoc(), builder.getF64Type(),
                                     factor);
    Value product =
        arith::MulFOp::create(builder, getLoc(), elements[0], factor);
    return {toF32(builder, getLoc(), product)};
  }
  Value wide = toF32(builder, getLoc(), elements[0]);
  Value factor = toF32(builder, getLoc(), scalars[0]);
  return {arith::MulFOp::create(builder, getLoc(), wide, factor)};
}

Values ClipOp::emitElement(OpBuilder &builder, ValueRange elements,
                           ValueRange scalars) {
  Value factor =
      ClipFactorOp::create(builder, getLoc(), scalars[0], scalars[1]);
  return {arith::MulFOp::create(builder, getLoc(), elements[0],
                                toF32(builder, getLoc(), factor))};
}

Values ClipValueOp::emitElement(OpBuilder &builder, ValueRange elements,
                                ValueRange scalars) {
  Location loc = getLoc();
  Value bound = toF32(builder, loc, scalars[0]);
  Value low = arith::NegFOp::create(builder, loc, bound);
  Value x = elements[0];
  Value above =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, x, bound);
  Value below =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, x, low);
  Value capped = arith::SelectOp::create(builder, loc, above, bound, x);
  return {arith::SelectOp::create(builder, loc, below, low, capped)};
}

//===----------------------------------------------------------------------===//
// Storage formats
//===----------------------------------------------------------------------===//

Values EncodeOp::emitElement(OpBuilder &builder, ValueRange elements,
                             ValueRange) {
  Location loc = getLoc();
  if (getFormat() != Format::Remainder)
    return {fromF32(builder, loc, elements[0],
                    getStoredTypes(getFormat(), getContext()).front())};
  // Adding half of the low part's range rounds ties away from zero; the low
  // 16 bits are kept as they are and read back as a signed correction.
  Type i32 = builder.getI32Type(), i16 = builder.getI16Type();
  Value bits = arith::BitcastOp::create(builder, loc, i32, elements[0]);
  Value rounded = arith::AddIOp::create(builder, loc, bits,
                                        constantInt(builder, loc, 0x8000, 32));
  Value shifted = arith::ShRUIOp::create(builder, loc, rounded,
                                         constantInt(builder, loc, 16, 32));
  Value high = arith::TruncIOp::create(builder, loc, i16, shifted);
  Value low = arith::TruncIOp::create(builder, loc, i16, bits);
  Value param =
      arith::BitcastOp::create(builder, loc, builder.getBF16Type(), high);
  return {param, low};
}

Values DecodeOp::emitElement(OpBuilder &builder, ValueRange elements,
                             ValueRange) {
  Location loc = getLoc();
  if (getFormat() != Format::Remainder)
    return {toF32(builder, loc, elements[0])};
  Type i32 = builder.getI32Type(), i16 = builder.getI16Type();
  Value high = arith::BitcastOp::create(builder, loc, i16, elements[0]);
  Value wide = arith::ExtUIOp::create(builder, loc, i32, high);
  Value shifted = arith::ShLIOp::create(builder, loc, wide,
                                        constantInt(builder, loc, 16, 32));
  Value low = arith::ExtSIOp::create(builder, loc, i32, elements[1]);
  Value bits = arith::AddIOp::create(builder, loc, shifted, low);
  return {arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits)};
}

//===----------------------------------------------------------------------===//
// Accumulation
//===----------------------------------------------------------------------===//

Values AccumulateOp::emitElement(OpBuilder &builder, ValueRange elements,
                                 ValueRange) {
  // The loads do not depend on the element: fusion moves them, and the
  // comparison, to the kernel's uniform region.
  Location loc = getLoc();
  Type stored = getBucket().getType().getElementType();
  Value input = toF32(builder, loc, elements[0]);
  Value held = toF32(builder, loc, elements[1]);
  Value sum = arith::AddFOp::create(builder, loc, held, input);
  Value generation =
      LoadControlOp::create(builder, loc, builder.getI32Type(), "generation");
  Value own = LoadSegmentOp::create(builder, loc, builder.getI32Type(),
                                    SegmentField::Generation);
  Value further = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        generation, own);
  Value result = arith::SelectOp::create(builder, loc, further, sum, input);
  return {fromF32(builder, loc, result, stored)};
}

//===----------------------------------------------------------------------===//
// UpdateOp
//===----------------------------------------------------------------------===//

Value UpdateOp::getUnlessFlag() { return getFoundInf(); }

/// Derived values reach the elements; the `with` operands reach `derive`.
SmallVector<Value> UpdateOp::getUniformOperands() { return getScalars(); }

/// `scalars` are the values that `derive` yields.
Values UpdateOp::emitElement(OpBuilder &builder, ValueRange elements,
                             ValueRange scalars) {
  IRMapping mapping;
  Block &block = getApply().front();
  Values arguments(elements);
  llvm::append_range(arguments, scalars);
  mapping.map(block.getArguments(), arguments);
  for (Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  Values results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}
