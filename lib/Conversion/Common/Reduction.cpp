// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Combining accumulators.

#include "Reduction.h"
#include "BodyEmitter.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::dfa;

SmallVector<Combine> dfa::getCombines(ArrayAttr list) {
  SmallVector<Combine> kinds;
  for (CombineAttr attr : list.getAsRange<CombineAttr>())
    kinds.push_back(attr.getValue());
  return kinds;
}

Value dfa::emitIdentity(Emitter &emitter, unsigned width) {
  TypedAttr zero = emitter.getF64FloatAttr(0.0);
  if (width > 1)
    zero = DenseElementsAttr::get(
        cast<ShapedType>(getWideType(emitter.getF64Type(), width)),
        ArrayRef<Attribute>(zero));
  return arith::ConstantOp::create(emitter, zero);
}

/// i64 of the shape of `type`.
static Type getBitsType(Emitter &emitter, Type type) {
  if (VectorType vector = dyn_cast<VectorType>(type))
    return vector.clone(emitter.getI64Type());
  return emitter.getI64Type();
}

Value dfa::emitCombine(Emitter &emitter, Combine kind, Value a, Value b) {
  if (kind == Combine::Sum)
    return arith::AddFOp::create(emitter, a, b);
  // Never negative, so their bits compare as the numbers do, and a nan is
  // above all: an integer maximum, exact and alike on every target.
  Type type = a.getType();
  Type bits = getBitsType(emitter, type);
  Value larger = arith::MaxUIOp::create(
      emitter, arith::BitcastOp::create(emitter, bits, a),
      arith::BitcastOp::create(emitter, bits, b));
  return arith::BitcastOp::create(emitter, type, larger);
}

/// Combines lane 2i with lane 2i + 1 of the concatenation of two vectors.
static Value combineLanes(Emitter &emitter, Combine kind, Value low, Value high,
                          int64_t lanes) {
  SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < lanes; i += 2) {
    even.push_back(i);
    odd.push_back(i + 1);
  }
  Value left = vector::ShuffleOp::create(emitter, low, high, even);
  Value right = vector::ShuffleOp::create(emitter, low, high, odd);
  return emitCombine(emitter, kind, left, right);
}

Value dfa::emitPairs(Emitter &emitter, Combine kind, Value low, Value high) {
  VectorType type = dyn_cast<VectorType>(low.getType());
  if (!type)
    return emitCombine(emitter, kind, low, high);
  return combineLanes(emitter, kind, low, high, 2 * type.getNumElements());
}

Value dfa::emitLaneTree(Emitter &emitter, Combine kind, Value value) {
  VectorType type = dyn_cast<VectorType>(value.getType());
  if (!type)
    return value;
  for (int64_t lanes = type.getNumElements(); lanes > 1; lanes /= 2)
    value = combineLanes(emitter, kind, value, value, lanes);
  return vector::ExtractOp::create(emitter, value, 0);
}
