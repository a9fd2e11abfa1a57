// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and sizes of element types.

#include "base/DataType.h"

namespace dfa::rt {

namespace {
struct TypeInfo {
  const char *name;
  size_t size;
};
} // namespace

// In the order of the enumeration.
static constexpr TypeInfo typeInfos[] = {
    {"f64", 8}, {"f32", 4},       {"f16", 2},    {"bf16", 2},
    {"i64", 8}, {"i32", 4},       {"i16", 2},    {"i8", 1},
    {"u32", 4}, {"remainder", 2}, {"f8e4m3", 1}, {"f8e5m2", 1},
};

size_t sizeOf(DataType type) { return typeInfos[static_cast<int>(type)].size; }

const char *name(DataType type) {
  return typeInfos[static_cast<int>(type)].name;
}

const char *name(ReduceOp op) {
  switch (op) {
  case ReduceOp::Sum:
    return "sum";
  case ReduceOp::Max:
    return "max";
  case ReduceOp::Or:
    return "or";
  }
  return "?";
}

bool parseDataType(std::string_view word, DataType &type) {
  int index = 0;
  for (const TypeInfo &info : typeInfos) {
    if (word == info.name) {
      type = static_cast<DataType>(index);
      return true;
    }
    ++index;
  }
  return false;
}

} // namespace dfa::rt
