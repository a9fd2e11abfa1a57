// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of rules. Defaults are those of torch.optim, and of apex for LAMB,
// except that sgd has momentum: without, it would be the only rule that has no
// state, which is rarely what a user of this tool is after.
#include "Rules.h"

#include <algorithm>

namespace dfa {
namespace tools {

static const std::vector<Rule> &allRules() {
  static const std::vector<Rule> rules = {
      {"adamw",
       "dfa.adam adamw",
       "",
       {"exp_avg", "exp_avg_sq"},
       {{"lr", 1e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-8},
        {"weight_decay", 1e-2}}},
      {"adam",
       "dfa.adam adam",
       "",
       {"exp_avg", "exp_avg_sq"},
       {{"lr", 1e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-8},
        {"weight_decay", 0}}},
      {"sgd",
       "dfa.sgd",
       "",
       {"momentum_buffer"},
       {{"lr", 1e-3},
        {"weight_decay", 0},
        {"momentum", 0.9},
        {"dampening", 0}}},
      {"lion",
       "dfa.lion",
       "",
       {"exp_avg"},
       {{"lr", 1e-4}, {"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0}}},
      {"adagrad",
       "dfa.adagrad",
       "",
       {"sum"},
       {{"lr", 1e-2}, {"lr_decay", 0}, {"eps", 1e-10}, {"weight_decay", 0}}},
      {"rmsprop",
       "dfa.rmsprop",
       "",
       {"square_avg"},
       {{"lr", 1e-2},
        {"alpha", 0.99},
        {"eps", 1e-8},
        {"weight_decay", 0},
        {"momentum", 0}}},
      {"lamb",
       "dfa.lamb",
       "",
       {"exp_avg", "exp_avg_sq"},
       {{"lr", 1e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-6},
        {"weight_decay", 1e-2}}},
  };
  return rules;
}

std::string ruleNames() {
  std::string names;
  for (const Rule &rule : allRules())
    names += names.empty() ? rule.name : "|" + rule.name;
  return names;
}

/// The value of a hyper-parameter, or null.
static double *findHyper(HyperValues &values, const std::string &name) {
  for (std::pair<std::string, double> &value : values)
    if (value.first == name)
      return &value.second;
  return nullptr;
}

layout::Expected<Rule> makeRule(const std::string &name,
                                const HyperValues &overrides) {
  const std::vector<Rule> &rules = allRules();
  auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule &rule) {
    return rule.name == name;
  });
  if (found == rules.end())
    return layout::Status::error("expected a rule out of " + ruleNames() +
                                 ", but got '" + name + "'");
  Rule rule = *found;
  for (const std::pair<std::string, double> &value : overrides) {
    double *place = findHyper(rule.hyper, value.first);
    if (place == nullptr) {
      std::string known;
      for (const std::pair<std::string, double> &hyper : rule.hyper)
        known += known.empty() ? hyper.first : ", " + hyper.first;
      return layout::Status::error("expected a hyper-parameter of " + name +
                                   " (" + known + "), but got '" + value.first +
                                   "'");
    }
    *place = value.second;
  }
  // Momentum decides whether there is a buffer, as it does in torch.
  double *momentum = findHyper(rule.hyper, "momentum");
  if (momentum != nullptr && name == "sgd" && *momentum == 0)
    rule.states.clear();
  if (momentum != nullptr && name == "rmsprop" && *momentum != 0) {
    rule.states.push_back("momentum_buffer");
    rule.attributes = " {with_momentum}";
  }
  return rule;
}

} // namespace tools
} // namespace dfa
