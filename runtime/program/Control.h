// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fields of the control block by name.

#ifndef DFA_PROGRAM_CONTROL_H
#define DFA_PROGRAM_CONTROL_H

#include "base/Status.h"
#include "dfa-rt/abi.h"

#include <string_view>

namespace dfa::rt {

/// Where a field lies in the control block.
struct ControlField {
  size_t offset = 0;
  size_t bytes = 0;
};

/// Finds a field of control.def.
Result<ControlField> findControlField(std::string_view name);
/// Reads a field as f64.
double readControlField(const dfa_rt_control_t &control, size_t offset);
/// Writes a field; a value that its type cannot hold is an error.
Status writeControlField(dfa_rt_control_t &control, size_t offset,
                         double value);

} // namespace dfa::rt

#endif // DFA_PROGRAM_CONTROL_H
