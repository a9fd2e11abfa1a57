// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-generalize-rules: named rules as dfa.update.

#include "dfa/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAGENERALIZERULES
#include "dfa/Transforms/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

namespace {

struct GeneralizeRules : dfa::impl::DfaGeneralizeRulesBase<GeneralizeRules> {
  void runOnOperation() override {
    SmallVector<RuleOpInterface> rules;
    getOperation().walk([&](RuleOpInterface rule) { rules.push_back(rule); });
    for (RuleOpInterface rule : rules) {
      OpBuilder builder(rule);
      FailureOr<SmallVector<Value>> results = rule.decompose(builder);
      if (failed(results))
        return signalPassFailure();
      rule->replaceAllUsesWith(*results);
      rule->erase();
    }
  }
};

} // namespace
