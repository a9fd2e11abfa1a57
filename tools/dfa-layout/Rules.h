// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The update rules as the tool knows them: how their op is spelled, which
// states they keep, and the defaults of their hyper-parameters. What they
// compute is the compiler's business.
#ifndef DFA_TOOLS_LAYOUT_RULES_H
#define DFA_TOOLS_LAYOUT_RULES_H

#include "layout/Status.h"

#include <string>
#include <utility>
#include <vector>

namespace dfa {
namespace tools {

/// Names and values of hyper-parameters, in the order in which they print.
using HyperValues = std::vector<std::pair<std::string, double>>;

/// A rule with its hyper-parameters chosen.
struct Rule {
  std::string name;                // as --rule and dfa.class spell it
  std::string op;                  // "dfa.adam adamw"
  std::string attributes;          // " {with_momentum}", or nothing
  std::vector<std::string> states; // in the order of the op's outs
  HyperValues hyper;
};

/// The rule of a name with `overrides` in place of defaults; an error lists
/// the names that exist.
layout::Expected<Rule> makeRule(const std::string &name,
                                const HyperValues &overrides);

/// "adamw|adam|...", for help and messages.
std::string ruleNames();

} // namespace tools
} // namespace dfa

#endif // DFA_TOOLS_LAYOUT_RULES_H
