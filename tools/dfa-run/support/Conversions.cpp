// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The f16 conversions and the loops over arrays.
#include "support/Conversions.h"

using namespace dfa::run;

uint16_t dfa::run::f16FromF32(float value) {
  constexpr uint32_t infinity = 0x7f800000;
  constexpr uint32_t overflow = 0x477ff000;       // 65520, half way to 2^16
  constexpr uint32_t smallestNormal = 0x38800000; // 2^-14
  uint32_t bits = bitsOf(value);
  uint32_t magnitude = bits & 0x7fffffff;
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude > infinity)
    return sign | 0x7e00;
  if (magnitude >= overflow)
    return sign | 0x7c00;
  if (magnitude >= smallestNormal) {
    // The difference of the exponent biases is 112.
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | (rounded - (112u << 23)) >> 13);
  }
  // A subnormal counts units of 2^-24: the significand, with its hidden bit,
  // shifted right until its last bit is such a unit.
  uint32_t exponent = magnitude >> 23;
  constexpr uint32_t half = 102; // exponent of 2^-25, half a unit
  if (exponent < half)
    return sign;
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  uint32_t shift = 126 - exponent;
  uint32_t units = significand >> shift;
  uint32_t lost = significand & ((1u << shift) - 1);
  uint32_t tie = 1u << (shift - 1);
  if (lost > tie || (lost == tie && (units & 1) != 0))
    ++units;
  return static_cast<uint16_t>(sign | units);
}

float dfa::run::f32FromF16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 31;
  uint32_t significand = bits & 0x3ff;
  if (exponent == 31)
    return floatOf(sign | 0x7f800000 | significand << 13);
  if (exponent > 0)
    return floatOf(sign | (exponent + 112) << 23 | significand << 13);
  if (significand == 0)
    return floatOf(sign);
  // Normalise: f32 has the exponents that f16 subnormals need.
  uint32_t shift = static_cast<uint32_t>(__builtin_clz(significand)) - 21;
  significand = significand << shift & 0x3ff;
  return floatOf(sign | (113 - shift) << 23 | significand << 13);
}

void dfa::run::encode(Storage storage, const float *source, int64_t count,
                      void *target) {
  uint16_t *narrow = static_cast<uint16_t *>(target);
  switch (storage) {
  case Storage::F32:
    if (count > 0)
      std::memcpy(target, source, static_cast<size_t>(count) * sizeof(float));
    return;
  case Storage::F16:
    for (int64_t i = 0; i < count; ++i)
      narrow[i] = f16FromF32(source[i]);
    return;
  case Storage::BF16:
    for (int64_t i = 0; i < count; ++i)
      narrow[i] = bf16FromF32(source[i]);
    return;
  }
}

void dfa::run::decode(Storage storage, const void *source, int64_t count,
                      float *target) {
  const uint16_t *narrow = static_cast<const uint16_t *>(source);
  switch (storage) {
  case Storage::F32:
    if (count > 0)
      std::memcpy(target, source, static_cast<size_t>(count) * sizeof(float));
    return;
  case Storage::F16:
    for (int64_t i = 0; i < count; ++i)
      target[i] = f32FromF16(narrow[i]);
    return;
  case Storage::BF16:
    for (int64_t i = 0; i < count; ++i)
      target[i] = f32FromBf16(narrow[i]);
    return;
  }
}

void dfa::run::splitRemainders(const float *source, int64_t count,
                               uint16_t *params, uint16_t *remainders) {
  for (int64_t i = 0; i < count; ++i) {
    RemainderParts parts = splitRemainder(source[i]);
    params[i] = parts.param;
    remainders[i] = parts.remainder;
  }
}

void dfa::run::joinRemainders(const uint16_t *params,
                              const uint16_t *remainders, int64_t count,
                              float *target) {
  for (int64_t i = 0; i < count; ++i)
    target[i] = joinRemainder({params[i], remainders[i]});
}

bool dfa::run::sameStored(Storage storage, uint32_t left, uint32_t right) {
  uint32_t magnitude = storage == Storage::F32 ? 0x7fffffff : 0x7fff;
  uint32_t infinity = storage == Storage::F32   ? 0x7f800000
                      : storage == Storage::F16 ? 0x7c00
                                                : 0x7f80;
  return left == right ||
         ((left & magnitude) > infinity && (right & magnitude) > infinity);
}
