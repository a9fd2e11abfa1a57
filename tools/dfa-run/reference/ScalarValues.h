// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of a step that are no arrays: scalars, one a group or parameter,
// partials, and the states of the control block.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_SCALARVALUES_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_SCALARVALUES_H

#include "reference/ControlState.h"
#include "step/StepGraph.h"

#include <map>
#include <vector>

namespace dfa::run {

class ScalarValues {
public:
  /// Forgets everything; `control` is the control block at the start.
  void reset(const StepGraph &graph, const ControlState &control);

  /// Evaluates a node with scalar operands.
  void evaluate(const StepGraph &graph, const Node &node);

  /// The value of a scalar, or of a `per` value for one parameter.
  Bounded get(const StepGraph &graph, int value, int param) const;
  bool flag(int value) const { return numbers[value][0].value != 0; }

  /// Adds to the accumulator of a partial what a part of a parameter gives.
  void accumulate(const StepGraph &graph, int value, int param, Bounded part);

  const ControlState &control(int value) const { return controls.at(value); }

private:
  void combine(const StepGraph &graph, const Node &node);
  void finishNorm(const StepGraph &graph, const Node &node);
  void evaluateControl(const Node &node);

  std::vector<std::vector<Bounded>> numbers; // by value
  std::map<int, ControlState> controls;      // by value
};

/// What one element adds to a partial, and how two accumulators become one.
Bounded partialOf(const ValueInfo &info, Bounded element);
Bounded joinPartials(const ValueInfo &info, Bounded a, Bounded b);

/// min(1, max / (norm + 1e-6)), and 1 for a norm that is no number.
Bounded clipFactor(Bounded norm, Bounded limit);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_SCALARVALUES_H
