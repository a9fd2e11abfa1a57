// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RMSprop as a generic update. docs/rules.md shows the same tree.

#include "Rules.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::rules;

SmallVector<StringRef> RmspropOp::getHyperNames() {
  SmallVector<StringRef> names = {"lr", "alpha", "eps", "weight_decay"};
  if (getWithMomentum())
    names.push_back("momentum");
  return names;
}

LogicalResult RmspropOp::verify() {
  SmallVector<StringRef> names = {"param", "square_avg"};
  if (getCentered())
    names.push_back("grad_avg");
  if (getWithMomentum())
    names.push_back("momentum_buffer");
  return rules::verify(*this, getGrad().getType(), getOuts().getTypes(),
                       getResults().getTypes(), names);
}

FailureOr<SmallVector<Value>> RmspropOp::decompose(OpBuilder &builder) {
  auto derive = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    Value one = b.constant(1.0, args[1]);
    Scalars derived = {b.toF32(args[1]), b.toF32(b.sub(one, args[2])),
                       b.toF32(args[3]), b.toF32(args[4])};
    if (getWithMomentum())
      derived.push_back(b.toF32(args[5]));
    return derived;
  };

  auto apply = [&](ScalarBuilder b, ValueRange x, ValueRange d) -> Scalars {
    Value g = x[0], p = x[1], square = x[2];
    if (getMaximize())
      g = b.neg(g);
    g = b.fma(d[3], p, g);
    Value square1 = b.fma(d[1], b.fma(g, g, b.neg(square)), square);
    Scalars states = {square1};
    Value variance = square1;
    if (getCentered()) {
      Value mean = b.fma(d[1], b.sub(g, x[3]), x[3]);
      states.push_back(mean);
      // Rounding may leave a variance just below zero; nan must survive.
      Value raw = b.fma(b.neg(mean), mean, square1);
      Value zero = b.constant(0.0, raw);
      variance = b.select(b.less(raw, zero), zero, raw);
    }
    Value ratio = b.div(g, b.add(b.sqrt(variance), d[2]));
    if (getWithMomentum()) {
      Value buffer = b.fma(d[4], x[getCentered() ? 4 : 3], ratio);
      states.push_back(buffer);
      ratio = buffer;
    }
    Scalars results = {b.fma(b.neg(d[0]), ratio, p)};
    llvm::append_range(results, states);
    return results;
  };

  Generic rule{getGrad(), getOuts(),       getControl(), getFoundInf(), {},
               {},        getHyperNames(), derive,       apply};
  UpdateOp update = rules::create(builder, getLoc(), rule);
  return SmallVector<Value>(update.getResults());
}
