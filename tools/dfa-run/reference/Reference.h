// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step in f64, from its graph: what --verify compares with and what
// --target=reference runs. Works on whole parameters in logical order; ranks
// appear only as contributions to reduced gradients.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_REFERENCE_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_REFERENCE_H

#include "data/Source.h"
#include "reference/ControlState.h"
#include "reference/Plan.h"
#include "reference/ScalarValues.h"

#include <cstdlib>
#include <memory>
#include <vector>

namespace dfa::run {

/// The elements of all parameters of a class, for one role: values, and the
/// terms that bound their error.
struct ReferenceArray {
  struct Free {
    void operator()(void *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<double, Free> values;
  std::unique_ptr<float, Free> terms;
};

struct Block;

class Reference {
public:
  Reference(const StepGraph &graph, const Source &source, unsigned threads)
      : graph(graph), source(source), threads(threads), plan(graph) {}

  /// Allocates arrays and takes initial values from the source.
  Status prepare();

  /// Runs the next step.
  void step();

  /// The array of an argument that is no gradient and no control block. The
  /// elements of a parameter start at `offsetOf`.
  const ReferenceArray &array(int argument) const { return arrays[argument]; }
  int64_t offsetOf(int param) const { return offsets[param]; }

  const ControlState &control() const { return controlNow; }
  int64_t stepsOf(int param) const { return steps[param]; }
  int64_t stepsDone() const { return done; }

private:
  struct Scratch;
  void sweep(int depth);
  void runPiece(const SweepPlan &sweepPlan, const Piece &piece,
                Scratch &scratch, std::vector<Bounded> &sums) const;
  void preparePiece(const std::vector<int> &nodes, const Piece &piece,
                    Scratch &scratch) const;
  void evaluate(const std::vector<int> &nodes, const BlockPlace &place,
                int level, Scratch &scratch) const;
  void evaluateNode(int index, const BlockPlace &place, int level,
                    Scratch &scratch) const;
  void loadArgument(const Node &node, const BlockPlace &place,
                    Block &target) const;
  void accumulate(const Node &node, const BlockPlace &place, int level,
                  Scratch &scratch) const;
  void loadGradient(const BlockPlace &place, int64_t number,
                    Block &target) const;
  void reduce(int index, const BlockPlace &place, int level,
              Scratch &scratch) const;
  void applyRuleNode(int index, const BlockPlace &place, int level,
                     Scratch &scratch) const;
  void writeBack(const std::vector<int> &results, const BlockPlace &place,
                 Scratch &scratch) const;
  Bounded factorFor(int value, int param) const;

  const StepGraph &graph;
  const Source &source;
  unsigned threads;
  ReferencePlan plan;

  std::vector<ReferenceArray> arrays; // by argument
  std::vector<int64_t> offsets;       // by parameter
  std::vector<int64_t> steps;         // by parameter
  std::vector<char> active;           // by parameter, in this step
  std::vector<char> holds; // by parameter: has a gradient since zero_grad
  ControlState controlNow;
  ScalarValues scalars; // of this step
  int64_t done = 0;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_REFERENCE_H
