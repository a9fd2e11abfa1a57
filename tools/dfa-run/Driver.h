// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From options to an exit code.
#ifndef DFA_TOOLS_DFA_RUN_DRIVER_H
#define DFA_TOOLS_DFA_RUN_DRIVER_H

#include "Options.h"

namespace dfa::run {

/// Reads the step, runs it as asked, prints results and complaints.
int drive(const Options &options);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_DRIVER_H
