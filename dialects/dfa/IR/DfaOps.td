// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All ops of the dialect, in the order of the documentation.

#ifndef DFA_IR_DFAOPS_TD
#define DFA_IR_DFAOPS_TD

include "dfa/IR/DfaLayoutOps.td"
include "dfa/IR/DfaStepOps.td"
include "dfa/IR/DfaControlOps.td"
include "dfa/IR/DfaCollectiveOps.td"
include "dfa/IR/DfaRuleOps.td"
include "dfa/IR/DfaKernelOps.td"
include "dfa/IR/DfaProgramOps.td"

#endif // DFA_IR_DFAOPS_TD
