// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bit-exact conversions between f32 and the 16-bit storage formats, written
// with integers so that neither compiler flags nor the CPU can change them.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_CONVERSIONS_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_CONVERSIONS_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dfa::run {

/// How a value lies in memory.
enum class Storage { F32, F16, BF16 };

/// Bytes of one stored value.
inline size_t storageBytes(Storage storage) {
  return storage == Storage::F32 ? 4 : 2;
}

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Rounds to nearest even. A NaN keeps its sign and gets the payload 0x40.
inline uint16_t bf16FromF32(float value) {
  uint32_t bits = bitsOf(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  uint32_t quiet = (bits >> 16 & 0x8000) | 0x7fc0;
  bool isNan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(isNan ? quiet : rounded);
}

/// Exact.
inline float f32FromBf16(uint16_t bits) {
  return floatOf(static_cast<uint32_t>(bits) << 16);
}

/// Rounds to nearest even, to infinity from 65520 on. A NaN keeps its sign.
uint16_t f16FromF32(float value);

/// Exact.
float f32FromF16(uint16_t bits);

/// An f32 master as the bf16 parameter and the 16 bits that it lacks.
struct RemainderParts {
  uint16_t param;
  uint16_t remainder;
};

/// Splits an f32: `param` is rounded to nearest, ties away from zero, and
/// `remainder` is the low half. A carry out of the exponent makes `param` an
/// infinity, or wraps for some NaNs; `joinRemainder` is exact in all cases.
inline RemainderParts splitRemainder(float master) {
  uint32_t bits = bitsOf(master);
  return {static_cast<uint16_t>((bits >> 16) + (bits >> 15 & 1)),
          static_cast<uint16_t>(bits)};
}

/// The master of which the parts were made: a low half of 0x8000 or more tells
/// that the upper half was rounded up.
inline float joinRemainder(RemainderParts parts) {
  uint32_t high = static_cast<uint16_t>(parts.param - (parts.remainder >> 15));
  return floatOf(high << 16 | parts.remainder);
}

/// Converts `count` values to `storage`.
void encode(Storage storage, const float *source, int64_t count, void *target);

/// Converts `count` stored values to f32.
void decode(Storage storage, const void *source, int64_t count, float *target);

/// `splitRemainder` and `joinRemainder` for arrays.
void splitRemainders(const float *source, int64_t count, uint16_t *params,
                     uint16_t *remainders);
void joinRemainders(const uint16_t *params, const uint16_t *remainders,
                    int64_t count, float *target);

/// Equal bits, or both NaN: payloads are not ours to promise.
bool sameStored(Storage storage, uint32_t left, uint32_t right);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_CONVERSIONS_H
