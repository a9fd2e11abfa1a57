// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The named update rules on blocks, in f64 and as the papers and torch.optim
// write them: on purpose not the expression trees that the compiler uses.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_RULES_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_RULES_H

#include "reference/Block.h"
#include "step/StepGraph.h"

namespace dfa::run {

/// What is the same for all elements of a parameter in one step.
struct RuleScalars {
  double step = 1; // number of this update, from 1
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weightDecay = 0;
  double momentum = 0, dampening = 0, alpha = 0, lrDecay = 0;
  Bounded trust; // LAMB's trust ratio
};

/// The scalars of a group's hyper-parameters; absent ones are 0.
RuleScalars makeRuleScalars(const std::map<std::string, double> &hyper,
                            int64_t step);

/// Blocks of one application of a rule. `outs` and `results` are in the order
/// of the op; `gradient` is null for a part of LAMB that has none.
struct RuleBlocks {
  const Block *gradient = nullptr;
  const Block *outs[4] = {};
  Block *results[4] = {};
};

/// Applies a rule to the first `count` elements.
void applyRule(const RuleModes &modes, const RuleScalars &scalars,
               const RuleBlocks &blocks, int64_t count);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_RULES_H
