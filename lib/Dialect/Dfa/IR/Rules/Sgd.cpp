// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SGD as a generic update. docs/rules.md shows the same tree.

#include "Rules.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::rules;

SmallVector<StringRef> SgdOp::getHyperNames() {
  if (getOuts().size() == 1)
    return {"lr", "weight_decay"};
  return {"lr", "weight_decay", "momentum", "dampening"};
}

LogicalResult SgdOp::verify() {
  SmallVector<StringRef> names = {"param"};
  if (getOuts().size() != 1)
    names.push_back("momentum_buffer");
  if (getNesterov() && getOuts().size() == 1)
    return emitOpError("expects a momentum_buffer with 'nesterov'");
  return rules::verify(*this, getGrad().getType(), getOuts().getTypes(),
                       getResults().getTypes(), names);
}

FailureOr<SmallVector<Value>> SgdOp::decompose(OpBuilder &builder) {
  bool hasMomentum = getOuts().size() == 2;

  auto derive = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    Scalars derived = {b.toF32(args[1]), b.toF32(args[2])};
    if (!hasMomentum)
      return derived;
    // The first update copies the gradient: factors 0 and 1.
    Value momentum = args[3], dampening = args[4];
    Value one = b.constant(1.0, momentum), zero = b.constant(0.0, momentum);
    Value first = b.equal(args[0], b.constantInt(1));
    derived.push_back(b.toF32(b.select(first, zero, momentum)));
    derived.push_back(b.toF32(b.select(first, one, b.sub(one, dampening))));
    derived.push_back(b.toF32(momentum));
    return derived;
  };

  auto apply = [&](ScalarBuilder b, ValueRange x, ValueRange d) -> Scalars {
    Value g = x[0], p = x[1], lr = d[0], decay = d[1];
    if (getMaximize())
      g = b.neg(g);
    g = b.fma(decay, p, g);
    if (!hasMomentum)
      return {b.fma(b.neg(lr), g, p)};
    Value buffer = b.fma(d[2], x[2], b.mul(d[3], g));
    Value direction = getNesterov() ? b.fma(d[4], buffer, g) : buffer;
    return {b.fma(b.neg(lr), direction, p), buffer};
  };

  Generic rule{getGrad(), getOuts(),       getControl(), getFoundInf(), {},
               {},        getHyperNames(), derive,       apply};
  UpdateOp update = rules::create(builder, getLoc(), rule);
  return SmallVector<Value>(update.getResults());
}
