// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lion as a generic update. docs/rules.md shows the same tree.

#include "Rules.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::rules;

SmallVector<StringRef> LionOp::getHyperNames() {
  return {"lr", "beta1", "beta2", "weight_decay"};
}

LogicalResult LionOp::verify() {
  return rules::verify(*this, getGrad().getType(), getOuts().getTypes(),
                       getResults().getTypes(), {"param", "exp_avg"});
}

FailureOr<SmallVector<Value>> LionOp::decompose(OpBuilder &builder) {
  auto derive = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    Value lr = args[1], beta1 = args[2], beta2 = args[3], decay = args[4];
    Value one = b.constant(1.0, lr);
    return {b.toF32(b.sub(one, beta1)), b.toF32(b.sub(one, beta2)), b.toF32(lr),
            b.toF32(b.mul(lr, decay))};
  };

  auto apply = [&](ScalarBuilder b, ValueRange x, ValueRange d) -> Scalars {
    Value g = x[0], p = x[1], m = x[2];
    if (getMaximize())
      g = b.neg(g);
    Value distance = b.sub(g, m);
    Value direction = b.fma(d[0], distance, m);
    // sign(0) is 0 and sign(nan) is nan: both are x * 0.
    Value zero = b.constant(0.0, direction);
    Value one = b.constant(1.0, direction);
    Value minusOne = b.constant(-1.0, direction);
    Value negative =
        b.select(b.less(direction, zero), minusOne, b.mul(direction, zero));
    Value sign = b.select(b.less(zero, direction), one, negative);
    Value change = b.fma(d[2], sign, b.mul(d[3], p));
    return {b.sub(p, change), b.fma(d[1], distance, m)};
  };

  Generic rule{getGrad(), getOuts(),       getControl(), getFoundInf(), {},
               {},        getHyperNames(), derive,       apply};
  UpdateOp update = rules::create(builder, getLoc(), rule);
  return SmallVector<Value>(update.getResults());
}
