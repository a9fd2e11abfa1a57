// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-defer-factors: unscale, average and clip as one factor, applied where
// the gradient is used.

#include "dfa/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFADEFERFACTORS
#include "dfa/Transforms/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

namespace {

/// Clipping is a multiplication by a factor that depends on the norm only.
struct ClipToFactor : OpRewritePattern<ClipOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ClipOp op,
                                PatternRewriter &rewriter) const override {
    Value factor = ClipFactorOp::create(rewriter, op.getLoc(), op.getNorm(),
                                        op.getMaxNorm());
    rewriter.replaceOpWithNewOp<UnscaleOp>(op, op.getType(), op.getInput(),
                                           factor);
    return success();
  }
};

/// |s * x| = |s| * |x| for every norm: the factor moves behind the root. Only
/// if all partials that reach the root have the same whole-step factor.
struct NormBeforeFactor : OpRewritePattern<NormFinishOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(NormFinishOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getResult().getType().isF64())
      return failure();
    SmallVector<NormPartialOp> partials;
    if (failed(collect(op.getPartial(), op, partials)))
      return failure();
    Value factor;
    for (NormPartialOp partial : partials) {
      auto unscale = partial.getInput().getDefiningOp<UnscaleOp>();
      if (!unscale || !isa<FloatType>(unscale.getFactor().getType()) ||
          (factor && factor != unscale.getFactor()))
        return failure();
      factor = unscale.getFactor();
    }
    for (NormPartialOp partial : partials) {
      auto unscale = partial.getInput().getDefiningOp<UnscaleOp>();
      rewriter.modifyOpInPlace(partial, [&] {
        partial.getInputMutable().assign(unscale.getInput());
      });
    }
    rewriter.setInsertionPointAfter(op);
    Type f64 = rewriter.getF64Type();
    if (factor.getType() != f64)
      factor = arith::ExtFOp::create(rewriter, op.getLoc(), f64, factor);
    Value magnitude = math::AbsFOp::create(rewriter, op.getLoc(), factor);
    auto scaled =
        arith::MulFOp::create(rewriter, op.getLoc(), op.getResult(), magnitude);
    rewriter.replaceAllUsesExcept(op.getResult(), scaled.getResult(), scaled);
    return success();
  }

private:
  /// All norm_partial ops behind `value`, each used by this root only.
  static LogicalResult collect(Value value, NormFinishOp root,
                               SmallVectorImpl<NormPartialOp> &partials) {
    if (!value.hasOneUse())
      return failure();
    if (auto partial = value.getDefiningOp<NormPartialOp>()) {
      partials.push_back(partial);
      return success();
    }
    auto combine = value.getDefiningOp<CombineOp>();
    if (!combine)
      return failure();
    for (Value operand : combine.getPartials())
      if (failed(collect(operand, root, partials)))
        return failure();
    return success();
  }
};

struct DeferFactors : dfa::impl::DfaDeferFactorsBase<DeferFactors> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ClipToFactor, NormBeforeFactor>(&getContext());
    UnscaleOp::getCanonicalizationPatterns(patterns, &getContext());
    NonFiniteOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([](UnscaleOp op) { explain(op); });
  }

private:
  /// Says where a factor is applied now, and which norms still see it.
  static void explain(UnscaleOp op) {
    remark::passed(op.getLoc(),
                   remark::RemarkOpts::name("deferred").category("dfa"))
        << "one factor, applied where the values are used";
    for (Operation *user : op->getUsers()) {
      if (!isa<NormPartialOp>(user))
        continue;
      bool isWhole = isa<FloatType>(op.getFactor().getType());
      remark::missed(user->getLoc(),
                     remark::RemarkOpts::name("scaled-norm").category("dfa"))
          << (isWhole ? "norm taken of scaled values: its partials are used "
                        "twice, scaled differently, or finished by group or "
                        "parameter"
                      : "norm taken of scaled values: their factors differ by "
                        "group or parameter");
    }
  }
};

} // namespace
