// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types of arrays and of collectives. Their spelling is the one of the
// program text. No arithmetic on them is done here.

#ifndef DFA_BASE_DATATYPE_H
#define DFA_BASE_DATATYPE_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dfa::rt {

enum class DataType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U32,
  Remainder, // low 16 bits of an f32 whose high half is the bf16 parameter
  F8E4M3,
  F8E5M2,
};

/// How a reducing collective joins two elements.
enum class ReduceOp : uint8_t { Sum, Max, Or };

/// Bytes of one element.
size_t sizeOf(DataType type);
/// The spelling in a program, such as "bf16".
const char *name(DataType type);
/// The spelling in a program: "sum", "max" or "or".
const char *name(ReduceOp op);
/// Finds the type spelt `word`; returns false if there is none.
bool parseDataType(std::string_view word, DataType &type);

} // namespace dfa::rt

#endif // DFA_BASE_DATATYPE_H
