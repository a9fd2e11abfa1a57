// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates scalar programs (the regions of dfa.update) on blocks, in f64 and
// with bounds.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_PROGRAM_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_PROGRAM_H

#include "reference/Block.h"
#include "step/StepGraph.h"

namespace dfa::run {

/// Runs `program` on the first `count` elements of its registers. The first
/// registers hold the arguments; results are in `program.results`. Of a
/// boolean, `terms` is 0 if f32 must agree and infinite otherwise.
void runProgram(const ScalarProgram &program, Block *registers, int64_t count);

/// Runs one instruction on single values.
Bounded runInstruction(const Instruction &instruction, const Bounded *operands);

/// Rounds a value of a narrow format as its storage does. Where f32 may fall
/// on the other side of a tie, `terms` cover both neighbours; elsewhere the
/// result is exact.
Bounded roundToFormat(Format format, Bounded x);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_PROGRAM_H
