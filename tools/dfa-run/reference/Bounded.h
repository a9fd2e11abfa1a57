// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f64 numbers that carry how far an f32 computation of the same value may be
// off: a running error analysis, operation by operation. Rules are written on
// them once and give values and bounds together.
//
// `terms` times verifyBound (2^-20) is the allowed error. A rounded operation
// adds a quarter of its result, that is 2^-22 of it, four times what rounding
// to f32 can cost; errors of operands are carried through to first order (and
// exactly where that would be too small). For a sum the terms so become the
// sum of the absolute terms that were added up, over the whole run.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_BOUNDED_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_BOUNDED_H

#include "support/Comparison.h"

#include <cmath>
#include <limits>

namespace dfa::run {

struct Bounded {
  double value = 0;
  double terms = 0;
};

/// Marks inlined arithmetic: it must end up inside the loops that are compiled
/// for several instruction sets.
#define DFA_RUN_INLINE inline __attribute__((always_inline))

/// From here on a value rounds to an infinity in f32.
constexpr double f32Overflow = 0x1.ffffffp127;
/// Below the smallest normal f32 rounding errors stop shrinking.
constexpr double f32Tiny = 0x1p-126;
constexpr double infiniteTerms = std::numeric_limits<double>::infinity();

DFA_RUN_INLINE Bounded exactly(double value) { return {value, 0}; }

/// The error that `x` may have.
DFA_RUN_INLINE double errorOf(Bounded x) { return verifyBound * x.terms; }

/// The result of an f32 operation whose operands' errors make `terms`. Where
/// f32 overflows nothing is promised.
DFA_RUN_INLINE Bounded rounded(double value, double terms) {
  double size = std::fabs(value);
  terms += 0.25 * (size + f32Tiny);
  return {value, size >= f32Overflow ? infiniteTerms : terms};
}

/// An f64 value as the nearest f32.
DFA_RUN_INLINE Bounded asF32(double value) { return rounded(value, 0); }
DFA_RUN_INLINE Bounded asF32(Bounded x) { return rounded(x.value, x.terms); }

DFA_RUN_INLINE Bounded operator-(Bounded a) { return {-a.value, a.terms}; }

DFA_RUN_INLINE Bounded operator+(Bounded a, Bounded b) {
  return rounded(a.value + b.value, a.terms + b.terms);
}

DFA_RUN_INLINE Bounded operator-(Bounded a, Bounded b) {
  return rounded(a.value - b.value, a.terms + b.terms);
}

DFA_RUN_INLINE Bounded operator*(Bounded a, Bounded b) {
  return rounded(a.value * b.value, std::fabs(a.value) * b.terms +
                                        std::fabs(b.value) * a.terms +
                                        errorOf(a) * b.terms);
}

DFA_RUN_INLINE Bounded operator/(Bounded a, Bounded b) {
  double quotient = a.value / b.value;
  // The smallest divisor that f32 may have seen.
  double least = std::fabs(b.value) - errorOf(b);
  double terms = (a.terms + std::fabs(quotient) * b.terms) / least;
  return rounded(quotient, least > 0 ? terms : infiniteTerms);
}

DFA_RUN_INLINE Bounded squareRoot(Bounded a) {
  double root = std::sqrt(a.value);
  double error = errorOf(a);
  // Near zero the derivative says nothing: |sqrt(a + e) - sqrt(a)| <= sqrt(e).
  double near = std::sqrt(error) * (1 / verifyBound);
  double far = 0.6 * a.terms / root;
  return rounded(root, 2 * error <= a.value && root > 0 ? far : near);
}

DFA_RUN_INLINE Bounded largest(Bounded a, Bounded b) {
  // A nan in `b` must survive, as in torch's maximum.
  double value = a.value > b.value ? a.value : b.value;
  return {value, a.terms > b.terms ? a.terms : b.terms};
}

DFA_RUN_INLINE Bounded absolute(Bounded a) {
  return {std::fabs(a.value), a.terms};
}

/// -1, 0 or 1. Where f32 may see another sign the result may be 2 off.
DFA_RUN_INLINE Bounded signOf(Bounded a) {
  double sign = a.value > 0 ? 1.0 : a.value < 0 ? -1.0 : a.value;
  bool sure = std::fabs(a.value) > errorOf(a) || a.terms == 0;
  return {sign, sure ? 0 : 2 / verifyBound};
}

/// `yes` or `no`; where the choice is unsure, either.
DFA_RUN_INLINE Bounded choose(bool condition, bool sure, Bounded yes,
                              Bounded no) {
  Bounded chosen = condition ? yes : no;
  double other = condition ? no.terms : yes.terms;
  double gap = std::fabs(yes.value - no.value) * (1 / verifyBound);
  double widest = (other > chosen.terms ? other : chosen.terms) + gap;
  return {chosen.value, sure ? chosen.terms : widest};
}

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_BOUNDED_H
