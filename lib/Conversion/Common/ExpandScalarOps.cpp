// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass dfa-expand-scalar-ops: what has no exact instruction becomes a fixed
// sequence of exact ones, the same for every target.

#include "dfa/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAEXPANDSCALAROPS
#include "dfa/Conversion/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

/// The LLVM intrinsic that every back end lowers exactly without a library;
/// empty if there is none.
static StringRef getExactIntrinsic(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("math.sqrt", "llvm.sqrt")
      .Case("math.fma", "llvm.fma")
      .Case("math.absf", "llvm.fabs")
      .Case("math.copysign", "llvm.copysign")
      .Case("math.floor", "llvm.floor")
      .Case("math.ceil", "llvm.ceil")
      .Case("math.trunc", "llvm.trunc")
      .Case("math.round", "llvm.round")
      .Case("math.roundeven", "llvm.roundeven")
      .Default("");
}

namespace {

class ExpandScalarOps
    : public dfa::impl::DfaExpandScalarOpsBase<ExpandScalarOps> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(expand()) || failed(lowerExact()))
      signalPassFailure();
  }

private:
  LogicalResult expand();
  LogicalResult lowerExact();
};

} // namespace

LogicalResult ExpandScalarOps::expand() {
  RewritePatternSet patterns(&getContext());
  // Minima and maxima of floats: compares and selects, since targets differ
  // in nan and in the sign of zero.
  arith::populateArithExpandOpsPatterns(patterns);
  if (expandBF16)
    arith::populateExpandBFloat16Patterns(patterns);
  math::populateExpansionPatterns(patterns,
                                  {"rsqrt", "exp2", "powf", "fpowi", "sinh",
                                   "cosh", "tan", "asinh", "acosh", "atanh"});
  mlir::populateMathPolynomialApproximationPatterns(patterns);
  // Regions are not simplified: blocks keep the shape that was emitted.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(getOperation(), std::move(patterns), config);
}

LogicalResult ExpandScalarOps::lowerExact() {
  LogicalResult result = success();
  getOperation()->walk([&](Operation *op) {
    if (!isa_and_nonnull<math::MathDialect>(op->getDialect()))
      return;
    StringRef intrinsic = getExactIntrinsic(op);
    if (intrinsic.empty()) {
      op->emitOpError("has no lowering of type ")
          << op->getResult(0).getType()
          << " without a mathematics library, whose results differ between "
             "targets";
      result = failure();
      return;
    }
    OpBuilder builder(op);
    LLVM::CallIntrinsicOp call = LLVM::CallIntrinsicOp::create(
        builder, op->getLoc(), op->getResult(0).getType(),
        builder.getStringAttr(intrinsic), op->getOperands());
    op->replaceAllUsesWith(call->getResults());
    op->erase();
  });
  return result;
}
