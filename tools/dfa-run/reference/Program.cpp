// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function for each family of opcodes; each knows value and bound.
#include "reference/Program.h"
#include "support/Conversions.h"

#include <algorithm>
#include <cmath>

using namespace dfa::run;

/// A storage format's nearest value. Double rounding through f32 is what the
/// compiled step does, too.
static double nearest(Format format, double value) {
  float single = static_cast<float>(value);
  if (format == Format::BF16)
    return f32FromBf16(bf16FromF32(single));
  if (format == Format::F16)
    return f32FromF16(f16FromF32(single));
  return single;
}

Bounded dfa::run::roundToFormat(Format format, Bounded x) {
  if (format != Format::BF16 && format != Format::F16)
    return x;
  double middle = nearest(format, x.value);
  double error = errorOf(x) + std::fabs(x.value) * 0x1p-24;
  double low = nearest(format, x.value - error);
  double high = nearest(format, x.value + error);
  // Rounding is monotone: what f32 stored lies between the two.
  double gap = low == high ? 0 : std::max(high - middle, middle - low);
  return {middle, gap * (1 / verifyBound)};
}

/// f(x) with the derivative's absolute value there. Library functions may be
/// a few units off.
static Bounded function(double value, double derivative, Bounded x) {
  Bounded result = rounded(value, std::fabs(derivative) * x.terms);
  result.terms += std::fabs(value);
  return result;
}

static Bounded power(Bounded base, Bounded exponent) {
  double value = std::pow(base.value, exponent.value);
  double terms =
      std::fabs(exponent.value * std::pow(base.value, exponent.value - 1)) *
      base.terms;
  if (exponent.terms > 0)
    terms +=
        std::fabs(value * std::log(std::fabs(base.value))) * exponent.terms;
  return function(value, 1, {value, terms});
}

static Bounded elementary(Opcode opcode, Bounded x) {
  double v = x.value;
  switch (opcode) {
  case Opcode::Cbrt: {
    double root = std::cbrt(v);
    return function(root, 1 / (3 * root * root), x);
  }
  case Opcode::Exp:
    return function(std::exp(v), std::exp(v), x);
  case Opcode::Exp2:
    return function(std::exp2(v), std::exp2(v) * std::log(2.0), x);
  case Opcode::Expm1:
    return function(std::expm1(v), std::exp(v), x);
  case Opcode::Log:
    return function(std::log(v), 1 / v, x);
  case Opcode::Log2:
    return function(std::log2(v), 1 / (v * std::log(2.0)), x);
  case Opcode::Log10:
    return function(std::log10(v), 1 / (v * std::log(10.0)), x);
  case Opcode::Log1p:
    return function(std::log1p(v), 1 / (1 + v), x);
  case Opcode::Sin:
    return function(std::sin(v), 1, x);
  case Opcode::Cos:
    return function(std::cos(v), 1, x);
  case Opcode::Tanh:
    return function(std::tanh(v), 1, x);
  case Opcode::Atan:
    return function(std::atan(v), 1, x);
  case Opcode::Erf:
    return function(std::erf(v), 2 / std::sqrt(M_PI), x);
  default: { // the roundings to integers
    double value = opcode == Opcode::Floor      ? std::floor(v)
                   : opcode == Opcode::Ceil     ? std::ceil(v)
                   : opcode == Opcode::Truncate ? std::trunc(v)
                                                : std::nearbyint(v);
    bool sure = std::fabs(v - std::round(v)) > errorOf(x) || x.terms == 0;
    return {value, sure ? 0 : 1 / verifyBound};
  }
  }
}

/// True, false or unsure (infinite terms).
static Bounded compare(const Instruction &instruction, Bounded a, Bounded b) {
  bool ordered = !std::isnan(a.value) && !std::isnan(b.value);
  bool holds = false;
  switch (instruction.opcode) {
  case Opcode::Less:
    holds = a.value < b.value;
    break;
  case Opcode::LessEqual:
    holds = a.value <= b.value;
    break;
  case Opcode::Equal:
    holds = a.value == b.value;
    break;
  case Opcode::NotEqual:
    holds = a.value != b.value;
    break;
  case Opcode::Ordered:
    return {static_cast<double>(ordered != instruction.invert), 0};
  default:
    return {static_cast<double>(ordered == instruction.invert), 0};
  }
  double error = errorOf(a) + errorOf(b);
  bool sure = error == 0 || std::fabs(a.value - b.value) > error || !ordered;
  return {static_cast<double>(holds != instruction.invert),
          sure ? 0 : infiniteTerms};
}

static Bounded extreme(Opcode opcode, Bounded a, Bounded b) {
  double terms = std::max(a.terms, b.terms);
  bool nanWins = opcode == Opcode::Max || opcode == Opcode::Min;
  if (std::isnan(a.value))
    return {nanWins ? a.value : b.value, terms};
  if (std::isnan(b.value))
    return {nanWins ? b.value : a.value, terms};
  bool larger = opcode == Opcode::Max || opcode == Opcode::MaxNum;
  return {larger ? std::max(a.value, b.value) : std::min(a.value, b.value),
          terms};
}

static Bounded logic(Opcode opcode, Bounded a, Bounded b) {
  int64_t x = static_cast<int64_t>(a.value), y = static_cast<int64_t>(b.value);
  int64_t value = opcode == Opcode::And  ? (x & y)
                  : opcode == Opcode::Or ? (x | y)
                                         : (x ^ y);
  return {static_cast<double>(value), a.terms + b.terms};
}

static Bounded arithmetic(Opcode opcode, Bounded a, Bounded b, Bounded c) {
  switch (opcode) {
  case Opcode::Add:
    return a + b;
  case Opcode::Sub:
    return a - b;
  case Opcode::Mul:
    return a * b;
  case Opcode::Div:
    return a / b;
  case Opcode::Fma:
    return a * b + c;
  case Opcode::Sqrt:
    return squareRoot(a);
  case Opcode::Rsqrt:
    return exactly(1) / squareRoot(a);
  case Opcode::Pow:
    return power(a, b);
  default: // Powi: a negative exponent gives 1
    return b.value < 0 ? exactly(1) : power(a, b);
  }
}

/// The exact value of an operation on integers or on f64 (whose rounding is
/// far below the bounds).
static Bounded exactArithmetic(const Instruction &instruction, Bounded a,
                               Bounded b, Bounded c) {
  Bounded result = arithmetic(instruction.opcode, a, b, c);
  if (a.terms == 0 && b.terms == 0 && c.terms == 0)
    result.terms = 0;
  if (instruction.integer && instruction.opcode == Opcode::Div)
    result.value = std::trunc(result.value);
  return result;
}

static DFA_RUN_INLINE Bounded evaluate(const Instruction &instruction,
                                       Bounded a, Bounded b, Bounded c) {
  switch (instruction.opcode) {
  case Opcode::Constant:
    return exactly(instruction.constant);
  case Opcode::Copy:
    return a;
  case Opcode::RoundToF32:
    return asF32(a);
  case Opcode::RoundToF16:
    return roundToFormat(Format::F16, a);
  case Opcode::RoundToBF16:
    return roundToFormat(Format::BF16, a);
  case Opcode::Neg:
    return -a;
  case Opcode::Abs:
    return absolute(a);
  case Opcode::CopySign:
    return {std::copysign(a.value, b.value),
            std::fabs(b.value) > errorOf(b) || b.terms == 0
                ? a.terms
                : a.terms + 2 * std::fabs(a.value) / verifyBound};
  case Opcode::Select:
    return choose(a.value != 0, a.terms == 0, b, c);
  case Opcode::And:
  case Opcode::Or:
  case Opcode::Xor:
    return logic(instruction.opcode, a, b);
  case Opcode::Max:
  case Opcode::Min:
  case Opcode::MaxNum:
  case Opcode::MinNum:
    return extreme(instruction.opcode, a, b);
  case Opcode::Less:
  case Opcode::LessEqual:
  case Opcode::Equal:
  case Opcode::NotEqual:
  case Opcode::Ordered:
  case Opcode::Unordered:
    return compare(instruction, a, b);
  case Opcode::Add:
  case Opcode::Sub:
  case Opcode::Mul:
  case Opcode::Div:
  case Opcode::Fma:
  case Opcode::Sqrt:
  case Opcode::Rsqrt:
  case Opcode::Pow:
  case Opcode::Powi:
    return instruction.wide || instruction.integer
               ? exactArithmetic(instruction, a, b, c)
               : arithmetic(instruction.opcode, a, b, c);
  default:
    return elementary(instruction.opcode, a);
  }
}

Bounded dfa::run::runInstruction(const Instruction &instruction,
                                 const Bounded *operands) {
  return evaluate(instruction, operands[0], operands[1], operands[2]);
}

/// The operations that rules consist of, with their loops in vector code.
DFA_RUN_VECTOR_CLONES
static bool runCommon(const Instruction instruction, const Block *a,
                      const Block *b, const Block *c, Block *result,
                      int64_t count) {
  switch (instruction.opcode) {
  case Opcode::Add:
    for (int64_t i = 0; i < count; ++i)
      result->set(i, a->get(i) + b->get(i));
    return true;
  case Opcode::Sub:
    for (int64_t i = 0; i < count; ++i)
      result->set(i, a->get(i) - b->get(i));
    return true;
  case Opcode::Mul:
    for (int64_t i = 0; i < count; ++i)
      result->set(i, a->get(i) * b->get(i));
    return true;
  case Opcode::Div:
    for (int64_t i = 0; i < count; ++i)
      result->set(i, a->get(i) / b->get(i));
    return true;
  case Opcode::Fma:
    for (int64_t i = 0; i < count; ++i)
      result->set(i, a->get(i) * b->get(i) + c->get(i));
    return true;
  case Opcode::Sqrt:
    for (int64_t i = 0; i < count; ++i)
      result->set(i, squareRoot(a->get(i)));
    return true;
  default:
    return false;
  }
}

void dfa::run::runProgram(const ScalarProgram &program, Block *registers,
                          int64_t count) {
  for (const Instruction &instruction : program.instructions) {
    const Block *operands[3];
    for (int i = 0; i < 3; ++i) {
      int number = instruction.operands[i];
      // An absent operand is read like any other and not used.
      operands[i] = registers + (number < 0 ? instruction.result : number);
    }
    Block *result = registers + instruction.result;
    if (!instruction.wide && !instruction.integer &&
        runCommon(instruction, operands[0], operands[1], operands[2], result,
                  count))
      continue;
    for (int64_t i = 0; i < count; ++i)
      result->set(i, evaluate(instruction, operands[0]->get(i),
                              operands[1]->get(i), operands[2]->get(i)));
  }
}
