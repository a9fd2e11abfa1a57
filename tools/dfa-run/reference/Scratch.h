// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread's memory while it evaluates pieces, and what is the same for all
// blocks of a piece.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_SCRATCH_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_SCRATCH_H

#include "reference/Reference.h"
#include "reference/Rules.h"

namespace dfa::run {

struct Reference::Scratch {
  /// What a rule or update node needs besides elements.
  struct Prepared {
    bool applies = true;
    RuleScalars rule;
    std::vector<Bounded> derived;
  };

  /// The block of a flat value. Ranks behind a Reduce have blocks of their
  /// own, one set a nesting level.
  Block &block(int level, int slot) {
    std::vector<std::unique_ptr<Block>> &set = sets[level];
    if (!set[slot])
      set[slot] = std::make_unique<Block>();
    return *set[slot];
  }

  /// Registers of a scalar program.
  Block *registersFor(const ScalarProgram &program) {
    if (registers.size() < static_cast<size_t>(program.registers))
      registers.resize(static_cast<size_t>(program.registers));
    return registers.data();
  }

  Scratch(const StepGraph &graph, int levels)
      : sets(levels), prepared(graph.nodes.size()) {
    for (std::vector<std::unique_ptr<Block>> &set : sets)
      set.resize(graph.flatValues);
  }

  std::vector<std::vector<std::unique_ptr<Block>>> sets;
  std::vector<Block> registers;
  std::vector<Prepared> prepared; // by node
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_SCRATCH_H
