// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A region of scalar ops as a list of instructions on numbered registers. How
// it is evaluated is the reference's business.
#ifndef DFA_TOOLS_DFA_RUN_STEP_SCALARPROGRAM_H
#define DFA_TOOLS_DFA_RUN_STEP_SCALARPROGRAM_H

#include <cstdint>
#include <vector>

namespace dfa::run {

/// What an instruction computes. Integers and booleans are held as f64 too:
/// step counts are far below 2^53.
enum class Opcode {
  Constant,
  Copy,       // widening conversions
  RoundToF32, // f64 to f32
  RoundToF16,
  RoundToBF16,
  Truncate, // float to integer, towards zero
  Add,
  Sub,
  Mul,
  Div,
  Neg,
  Fma,
  Sqrt,
  Rsqrt,
  Cbrt,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tanh,
  Atan,
  Erf,
  Pow,
  Powi,
  Abs,
  CopySign,
  Floor,
  Ceil,
  RoundEven,
  Max,    // nan if one is
  Min,    // nan if one is
  MaxNum, // the other if one is nan
  MinNum,
  Select,
  And,
  Or,
  Xor,
  // Comparisons: false if one is nan, except for NotEqual and the U forms.
  Less,
  LessEqual,
  Equal,
  NotEqual, // true if one is nan
  Ordered,
  Unordered,
};

struct Instruction {
  Opcode opcode = Opcode::Constant;
  /// Registers, or for a scalar node of the step positions of its operands.
  int operands[3] = {-1, -1, -1};
  int result = -1;
  double constant = 0;
  bool integer = false; // exact arithmetic
  bool invert = false;  // of a comparison: the negated result
  bool wide = false;    // f64: no rounding worth counting
};

struct ScalarProgram {
  int arguments = 0; // registers 0, 1, ...
  int registers = 0;
  std::vector<Instruction> instructions;
  std::vector<int> results;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_STEP_SCALARPROGRAM_H
