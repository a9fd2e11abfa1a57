// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arithmetic of a reduction whose bits do not depend on the transport:
// contributions are joined in rank order. No communication here.

#ifndef DFA_COMM_LOCALREDUCE_H
#define DFA_COMM_LOCALREDUCE_H

#include "base/DataType.h"
#include "base/Status.h"

#include <vector>

namespace dfa::rt {

/// Says whether elements of `type` can be joined by `op`; `or` needs integers.
Status checkReducible(DataType type, ReduceOp op);

/// Joins inputs[0], inputs[1], ... element by element in this order. f16 and
/// bf16 are summed in f32 and rounded once, f32 and f64 in their own type;
/// integers wrap around; a maximum with a NaN is that NaN. `output` may be one
/// of the inputs.
void reduceInOrder(const std::vector<const void *> &inputs, void *output,
                   int64_t count, DataType type, ReduceOp op);

/// Conversions, round to nearest even, subnormals kept.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(float value);

} // namespace dfa::rt

#endif // DFA_COMM_LOCALREDUCE_H
