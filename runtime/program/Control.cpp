// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of control fields made from control.def.

#include "program/Control.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace dfa::rt {

namespace {
struct FieldRow {
  std::string_view name;
  ControlField place;
};
} // namespace

static constexpr FieldRow fieldRows[] = {
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc)                     \
  {#name, {offsetof(dfa_rt_control_t, name), sizeof(ctype)}},
#include "dfa-rt/control.def"
};

Result<ControlField> findControlField(std::string_view name) {
  for (const FieldRow &row : fieldRows)
    if (row.name == name)
      return row.place;
  return DFA_RT_ERROR(NotFound, "no control field named '%.*s'",
                      int(name.size()), name.data());
}

double readControlField(const dfa_rt_control_t &control, size_t offset) {
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc)                     \
  if (offset == offsetof(dfa_rt_control_t, name))                              \
    return static_cast<double>(control.name);
#include "dfa-rt/control.def"
  return 0.0;
}

template <typename T> static bool holds(double value) {
  if (std::is_floating_point<T>::value)
    return true;
  // 2^63 is not an int64_t, though the largest one rounds to it as f64.
  double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  return std::trunc(value) == value && value < limit &&
         value >= static_cast<double>(std::numeric_limits<T>::min());
}

Status writeControlField(dfa_rt_control_t &control, size_t offset,
                         double value) {
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc)                     \
  if (offset == offsetof(dfa_rt_control_t, name)) {                            \
    if (!holds<ctype>(value))                                                  \
      return DFA_RT_ERROR(InvalidArgument,                                     \
                          "control field '" #name                              \
                          "' expects a value of type " #ctype                  \
                          ", but got %.17g",                                   \
                          value);                                              \
    control.name = static_cast<ctype>(value);                                  \
  }
#include "dfa-rt/control.def"
  return Status();
}

} // namespace dfa::rt
