// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adam and AdamW as generic updates. docs/rules.md shows the same trees.

#include "Rules.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::rules;

static SmallVector<StringRef> getOutNames(AdamOp op) {
  SmallVector<StringRef> names = {"param", "exp_avg", "exp_avg_sq"};
  if (op.getAmsgrad())
    names.push_back("max_exp_avg_sq");
  return names;
}

SmallVector<StringRef> AdamOp::getHyperNames() {
  return {"lr", "beta1", "beta2", "eps", "weight_decay"};
}

LogicalResult AdamOp::verify() {
  return rules::verify(*this, getGrad().getType(), getOuts().getTypes(),
                       getResults().getTypes(), getOutNames(*this));
}

FailureOr<SmallVector<Value>> AdamOp::decompose(OpBuilder &builder) {
  bool correct = !getNoBiasCorrection();
  bool decoupled = getMode() == AdamMode::AdamW;

  // Everything that depends on the parameter's group and step only, in f64.
  // 1 - beta is rounded, not beta: it is the small number that matters.
  auto derive = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    Value step = args[0], lr = args[1], beta1 = args[2], beta2 = args[3],
          eps = args[4], decay = args[5];
    Value one = b.constant(1.0, lr);
    Value rate = lr, root = one;
    if (correct) {
      rate = b.div(lr, b.sub(one, b.powi(beta1, step)));
      root = b.div(one, b.sqrt(b.sub(one, b.powi(beta2, step))));
    }
    return {b.toF32(b.sub(one, beta1)),
            b.toF32(b.sub(one, beta2)),
            b.toF32(rate),
            b.toF32(root),
            b.toF32(eps),
            b.toF32(decoupled ? b.mul(lr, decay) : decay)};
  };

  auto apply = [&](ScalarBuilder b, ValueRange x, ValueRange d) -> Scalars {
    Value g = x[0], p = x[1], m = x[2], v = x[3];
    Value c1 = d[0], c2 = d[1], rate = d[2], root = d[3], eps = d[4],
          decay = d[5];
    if (getMaximize())
      g = b.neg(g);
    if (!decoupled)
      g = b.fma(decay, p, g);
    // The moments move towards g and g^2 by 1 - beta of the distance.
    Value m1 = b.fma(c1, b.sub(g, m), m);
    Value v1 = b.fma(c2, b.fma(g, g, b.neg(v)), v);
    Scalars states = {m1, v1};
    Value second = v1;
    if (getAmsgrad()) {
      Value old = x[4];
      // nan in v1 must survive: keep old only where it is greater.
      second = b.select(b.less(v1, old), old, v1);
      states.push_back(second);
    }
    Value denominator = b.fma(b.sqrt(second), root, eps);
    Value ratio = b.div(m1, denominator);
    // One rounding at the parameter's magnitude: the change is summed first.
    Value change =
        decoupled ? b.fma(rate, ratio, b.mul(decay, p)) : b.mul(rate, ratio);
    Scalars results = {b.sub(p, change)};
    llvm::append_range(results, states);
    return results;
  };

  Generic rule{getGrad(), getOuts(),       getControl(), getFoundInf(), {},
               {},        getHyperNames(), derive,       apply};
  UpdateOp update = rules::create(builder, getLoc(), rule);
  return SmallVector<Value>(update.getResults());
}
