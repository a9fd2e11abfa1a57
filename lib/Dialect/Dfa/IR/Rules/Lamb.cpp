// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LAMB: three generic updates with two norms a parameter between them. The
// direction has no destination, so fusion computes it again instead of
// storing it. docs/rules.md shows the same trees.

#include "Rules.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::rules;

SmallVector<StringRef> LambOp::getHyperNames() {
  return {"lr", "beta1", "beta2", "eps", "weight_decay"};
}

LogicalResult LambOp::verify() {
  return rules::verify(*this, getGrad().getType(), getOuts().getTypes(),
                       getResults().getTypes(),
                       {"param", "exp_avg", "exp_avg_sq"});
}

/// The l2 norm of each parameter's elements, over all ranks that hold some.
static Value createNorm(OpBuilder &builder, Location loc, Value input) {
  auto partialType =
      PartialType::get(builder.getContext(), Accumulation::L2, Scope::Param);
  auto normType =
      PerType::get(builder.getContext(), Scope::Param, builder.getF64Type());
  Value partial = NormPartialOp::create(builder, loc, partialType, input);
  if (cast<FlatType>(input.getType()).getPart() == Part::Shard)
    partial = CombineOp::create(builder, loc, partialType, partial,
                                builder.getStrArrayAttr({"shard"}));
  return NormFinishOp::create(builder, loc, normType, partial);
}

FailureOr<SmallVector<Value>> LambOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  bool correct = !getNoBiasCorrection();
  ValueRange outs = getOuts();

  auto deriveMoments = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    Value one = b.constant(1.0, args[1]);
    return {b.toF32(b.sub(one, args[1])), b.toF32(b.sub(one, args[2]))};
  };
  auto applyMoments = [&](ScalarBuilder b, ValueRange x,
                          ValueRange d) -> Scalars {
    Value g = x[0], m = x[1], v = x[2];
    if (getMaximize())
      g = b.neg(g);
    return {b.fma(d[0], b.sub(g, m), m), b.fma(d[1], b.fma(g, g, b.neg(v)), v)};
  };
  Generic moments{
      getGrad(), outs.drop_front(),  getControl(),  getFoundInf(), {},
      {},        {"beta1", "beta2"}, deriveMoments, applyMoments};
  UpdateOp states = rules::create(builder, loc, moments);

  auto deriveDirection = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    Value step = args[0], one = b.constant(1.0, args[1]);
    Value scale = one, root = one;
    if (correct) {
      scale = b.div(one, b.sub(one, b.powi(args[1], step)));
      root = b.div(one, b.sqrt(b.sub(one, b.powi(args[2], step))));
    }
    return {b.toF32(scale), b.toF32(root), b.toF32(args[3]), b.toF32(args[4])};
  };
  auto applyDirection = [&](ScalarBuilder b, ValueRange x,
                            ValueRange d) -> Scalars {
    Value p = x[0], m = x[1], v = x[2];
    Value ratio = b.div(m, b.fma(b.sqrt(v), d[1], d[2]));
    return {b.fma(d[0], ratio, b.mul(d[3], p))};
  };
  SmallVector<Value> sources = {outs[0], states.getResults()[0],
                                states.getResults()[1]};
  Generic directionRule{sources,
                        {},
                        getControl(),
                        {},
                        {},
                        {outs[0].getType()},
                        {"beta1", "beta2", "eps", "weight_decay"},
                        deriveDirection,
                        applyDirection};
  Value direction = rules::create(builder, loc, directionRule).getResult(0);

  Value paramNorm = createNorm(builder, loc, outs[0]);
  Value updateNorm = createNorm(builder, loc, direction);
  Value trust = TrustRatioOp::create(builder, loc, paramNorm, updateNorm);

  auto deriveStep = [&](ScalarBuilder b, ValueRange args) -> Scalars {
    return {b.toF32(b.mul(args[1], args[2]))};
  };
  auto applyStep = [&](ScalarBuilder b, ValueRange x, ValueRange d) -> Scalars {
    return {b.fma(b.neg(d[0]), x[0], x[1])};
  };
  Generic step{
      direction, outs.take_front(), getControl(), getFoundInf(), trust, {},
      {"lr"},    deriveStep,        applyStep};
  UpdateOp param = rules::create(builder, loc, step);
  return SmallVector<Value>{param.getResult(0), states.getResults()[0],
                            states.getResults()[1]};
}
