// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adagrad as a generic update. docs/rules.md shows the same tree.

#include "Rules.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::rules;

SmallVector<StringRef> AdagradOp::getHyperNames() {
  return {"lr", "lr_decay", "eps", "weight_decay"};
}

LogicalResult AdagradOp::verify() {
  return rules::verify(*this, getGrad().getType(), getOuts().getTypes(),
                       getResults().getTypes(), {"param", "sum"});
}

FailureOr<SmallVector<Value>> AdagradOp::decompose(OpBuilder &builder) {
  auto derive = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    Value step = b.toF64(args[0]), lr = args[1], lrDecay = args[2];
    Value one = b.constant(1.0, lr);
    Value slowed = b.add(one, b.mul(b.sub(step, one), lrDecay));
    return {b.toF32(b.div(lr, slowed)), b.toF32(args[3]), b.toF32(args[4])};
  };

  auto apply = [&](ScalarBuilder b, ValueRange x, ValueRange d) -> Scalars {
    Value g = x[0], p = x[1], sum = x[2];
    if (getMaximize())
      g = b.neg(g);
    g = b.fma(d[2], p, g);
    Value total = b.fma(g, g, sum);
    Value ratio = b.div(g, b.add(b.sqrt(total), d[1]));
    return {b.fma(b.neg(d[0]), ratio, p), total};
  };

  Generic rule{getGrad(), getOuts(),       getControl(), getFoundInf(), {},
               {},        getHyperNames(), derive,       apply};
  UpdateOp update = rules::create(builder, getLoc(), rule);
  return SmallVector<Value>(update.getResults());
}
