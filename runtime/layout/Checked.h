// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 64-bit arithmetic that says when it overflows, and rounding. Sizes come from
// users, so an overflow is a mistake to report and not undefined behaviour.
#ifndef DFA_LAYOUT_CHECKED_H
#define DFA_LAYOUT_CHECKED_H

#include <cstdint>

namespace dfa {
namespace layout {

/// Stores a + b; false if it does not fit.
inline bool checkedAdd(int64_t a, int64_t b, int64_t &result) {
  return !__builtin_add_overflow(a, b, &result);
}

/// Stores a * b; false if it does not fit.
inline bool checkedMul(int64_t a, int64_t b, int64_t &result) {
  return !__builtin_mul_overflow(a, b, &result);
}

/// a / b rounded up, for a >= 0 and b > 0; cannot overflow.
inline int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Stores the lowest multiple of b that is not below a; false if it does not
/// fit. For a >= 0 and b > 0.
inline bool checkedAlignUp(int64_t a, int64_t b, int64_t &result) {
  return checkedMul(ceilDiv(a, b), b, result);
}

/// True for 1, 2, 4, ...
inline bool isPowerOfTwo(int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

/// The exponent of a power of two.
inline uint32_t log2OfPower(int64_t value) {
  uint32_t result = 0;
  for (; value > 1; value >>= 1)
    ++result;
  return result;
}

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_CHECKED_H
