// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often the reference passes over the elements, and what it computes in
// each pass: a norm must be complete before anything that depends on it. Values
// are computed again in each pass instead of being kept.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_PLAN_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_PLAN_H

#include "step/StepGraph.h"

#include <vector>

namespace dfa::run {

/// A run of elements of one parameter that one thread handles.
struct Piece {
  int param = 0;
  int64_t begin = 0;
  int64_t count = 0;
};

/// A block of a piece, as a rank sees it.
struct BlockPlace {
  int param = 0;
  int64_t begin = 0;
  int64_t count = 0;
  int64_t rank = 0;
};

struct SweepPlan {
  std::vector<int> scalarNodes; // evaluated before the pass, in order
  std::vector<int> partials;    // norm_partial and non_finite of the pass
  std::vector<std::vector<int>> nodes; // by class: flat nodes, in order
  std::vector<std::vector<int>> partialsOfClass; // positions in `partials`
  std::vector<std::vector<int>> writes; // by class: results; last pass only
};

struct ReferencePlan {
  explicit ReferencePlan(const StepGraph &graph);

  std::vector<SweepPlan> sweeps;
  std::vector<int> finalScalars; // evaluated behind the last pass
  std::vector<Piece> pieces;     // of all parameters
  /// For a Reduce node: the nodes that its input needs.
  std::vector<std::vector<int>> reduced;
  /// Result bindings that are stored: those whose role is an argument too.
  std::vector<int> stored;
  /// By class: the node whose flag decides whether steps are counted, or -1.
  std::vector<int> counting;

private:
  void needs(const StepGraph &graph, int value,
             std::vector<char> &marked) const;
};

/// True for nodes with flat results.
bool isFlat(const Node &node);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_PLAN_H
