// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fields of the control block, read from the runtime's own list so that the
// two cannot disagree.

#include "dfa-rt/abi.h"
#include "dfa/IR/Dfa.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

enum class FieldType { f64, f32, i64, i32 };

struct Field {
  StringLiteral name;
  FieldType type;
  int64_t offset;
};

} // namespace

static constexpr Field fields[] = {
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc)                     \
  {#name, FieldType::mlir, offsetof(dfa_rt_control_t, name)},
#include "dfa-rt/control.def"
};

/// Reserved words are in the list for the struct's size only.
static bool isReserved(const Field &field) {
  return field.name.starts_with("reserved");
}

static const Field *findField(StringRef name) {
  for (const Field &field : fields)
    if (field.name == name && !isReserved(field))
      return &field;
  return nullptr;
}

Type dfa::getControlFieldType(StringRef name, MLIRContext *context) {
  const Field *field = findField(name);
  if (!field)
    return {};
  switch (field->type) {
  case FieldType::f64:
    return Float64Type::get(context);
  case FieldType::f32:
    return Float32Type::get(context);
  case FieldType::i64:
    return IntegerType::get(context, 64);
  case FieldType::i32:
    return IntegerType::get(context, 32);
  }
  return {};
}

int64_t dfa::getControlFieldOffset(StringRef name) {
  return findField(name)->offset;
}

std::string dfa::listControlFields() {
  std::string list;
  for (const Field &field : fields) {
    if (isReserved(field))
      continue;
    if (!list.empty())
      list += ", ";
    list += field.name;
  }
  return list;
}
