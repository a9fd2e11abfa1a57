// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What must hold between the records of a program so that the executor needs
// no further check.

#ifndef DFA_PROGRAM_VERIFY_H
#define DFA_PROGRAM_VERIFY_H

#include "program/Program.h"

namespace dfa::rt {

/// Checks a program whose names are resolved; an error names the line.
Status verify(const Program &program, std::string_view source);

} // namespace dfa::rt

#endif // DFA_PROGRAM_VERIFY_H
