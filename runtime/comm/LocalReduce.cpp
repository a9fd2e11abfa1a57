// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reduces in blocks that stay in the first-level cache, so each input is read
// once however many ranks there are.

#include "comm/LocalReduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dfa::rt {

namespace {

constexpr int64_t kBlock = 1024;

template <typename To, typename From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// How elements are stored and in what they are joined.
template <typename T> struct Plain {
  using Stored = T;
  using Joined = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

struct Half {
  using Stored = uint16_t;
  using Joined = float;
  static float load(uint16_t bits) { return halfToFloat(bits); }
  static uint16_t store(float value) { return floatToHalf(value); }
};

struct Bfloat {
  using Stored = uint16_t;
  using Joined = float;
  static float load(uint16_t bits) { return bfloatToFloat(bits); }
  static uint16_t store(float value) { return floatToBfloat(value); }
};

/// Signed sums wrap around too, without undefined behaviour.
template <typename T> T sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
}

template <typename T> T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(a) || a > b ? a : b;
  else
    return std::max(a, b);
}

template <typename T> T join(T a, T b, ReduceOp op) {
  if (op == ReduceOp::Max)
    return larger(a, b);
  if constexpr (std::is_integral_v<T>)
    if (op == ReduceOp::Or)
      return T(a | b);
  return sum(a, b);
}

template <typename Format, ReduceOp Op>
void reduceAs(const std::vector<const void *> &inputs, void *output,
              int64_t count) {
  using Stored = typename Format::Stored;
  using Joined = typename Format::Joined;
  Joined joined[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t length = std::min(kBlock, count - begin);
    // The first contribution is taken as it is: 0 + -0.0 would lose a sign.
    const Stored *first = static_cast<const Stored *>(inputs[0]) + begin;
    for (int64_t i = 0; i < length; ++i)
      joined[i] = Format::load(first[i]);
    for (size_t r = 1; r < inputs.size(); ++r) {
      const Stored *next = static_cast<const Stored *>(inputs[r]) + begin;
      for (int64_t i = 0; i < length; ++i)
        joined[i] = join(joined[i], Joined(Format::load(next[i])), Op);
    }
    Stored *target = static_cast<Stored *>(output) + begin;
    for (int64_t i = 0; i < length; ++i)
      target[i] = Format::store(joined[i]);
  }
}

template <typename Format>
void reduceBy(const std::vector<const void *> &inputs, void *output,
              int64_t count, ReduceOp op) {
  switch (op) {
  case ReduceOp::Sum:
    return reduceAs<Format, ReduceOp::Sum>(inputs, output, count);
  case ReduceOp::Max:
    return reduceAs<Format, ReduceOp::Max>(inputs, output, count);
  case ReduceOp::Or:
    return reduceAs<Format, ReduceOp::Or>(inputs, output, count);
  }
}

bool isFloat(DataType type) {
  return type == DataType::F64 || type == DataType::F32 ||
         type == DataType::F16 || type == DataType::BF16;
}

} // namespace

float halfToFloat(uint16_t bits) {
  // With the exponent field moved in place the value is 2^112 too small, which
  // one exact multiplication corrects, subnormals included.
  float magnitude = bitCast<float>(uint32_t(bits & 0x7fffu) << 13) * 0x1p112f;
  uint32_t word = bitCast<uint32_t>(magnitude);
  if ((bits & 0x7c00u) == 0x7c00u) // inf and nan
    word |= 0x7f800000u;
  return bitCast<float>(word | uint32_t(bits & 0x8000u) << 16);
}

uint16_t floatToHalf(float value) {
  uint32_t word = bitCast<uint32_t>(value);
  uint32_t sign = word >> 16 & 0x8000u;
  word &= 0x7fffffffu;
  if (word > 0x7f800000u) // nan: keep the top of the payload, make it quiet
    return uint16_t(sign | 0x7e00u | (word >> 13 & 0x3ffu));
  if (word >= 0x477ff000u) // 65520 and above round to infinity
    return uint16_t(sign | 0x7c00u);
  if (word < 0x38800000u) { // subnormal: the adder rounds at bit 2^-24
    float shifted = bitCast<float>(word) + 0.5f;
    return uint16_t(sign | (bitCast<uint32_t>(shifted) - 0x3f000000u));
  }
  word += 0xc8000fffu + (word >> 13 & 1u); // rebias, then ties to even
  return uint16_t(sign | word >> 13);
}

float bfloatToFloat(uint16_t bits) {
  return bitCast<float>(uint32_t(bits) << 16);
}

uint16_t floatToBfloat(float value) {
  uint32_t word = bitCast<uint32_t>(value);
  if ((word & 0x7fffffffu) > 0x7f800000u)
    return uint16_t(word >> 16 | 0x40u);
  return uint16_t((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

Status checkReducible(DataType type, ReduceOp op) {
  if (op == ReduceOp::Or && isFloat(type))
    return DFA_RT_ERROR(InvalidArgument,
                        "reduction 'or' expects an integer type, found %s",
                        name(type));
  // Storage formats whose elements mean nothing by themselves are only moved.
  if (type == DataType::Remainder || type == DataType::F8E4M3 ||
      type == DataType::F8E5M2)
    return DFA_RT_ERROR(InvalidArgument,
                        "reduction '%s' expects a number type, found %s",
                        name(op), name(type));
  return Status();
}

void reduceInOrder(const std::vector<const void *> &inputs, void *output,
                   int64_t count, DataType type, ReduceOp op) {
  switch (type) {
  case DataType::F64:
    return reduceBy<Plain<double>>(inputs, output, count, op);
  case DataType::F32:
    return reduceBy<Plain<float>>(inputs, output, count, op);
  case DataType::F16:
    return reduceBy<Half>(inputs, output, count, op);
  case DataType::BF16:
    return reduceBy<Bfloat>(inputs, output, count, op);
  case DataType::I64:
    return reduceBy<Plain<int64_t>>(inputs, output, count, op);
  case DataType::I32:
    return reduceBy<Plain<int32_t>>(inputs, output, count, op);
  case DataType::I16:
    return reduceBy<Plain<int16_t>>(inputs, output, count, op);
  case DataType::I8:
    return reduceBy<Plain<int8_t>>(inputs, output, count, op);
  case DataType::U32:
    return reduceBy<Plain<uint32_t>>(inputs, output, count, op);
  case DataType::Remainder:
  case DataType::F8E4M3:
  case DataType::F8E5M2:
    return; // refused by checkReducible
  }
}

} // namespace dfa::rt
