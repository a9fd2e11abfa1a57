// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that produce machine code.

#ifndef DFA_TARGET_PASSES_H
#define DFA_TARGET_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::dfa {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dfa/Target/Passes.h.inc"

} // namespace mlir::dfa

#endif // DFA_TARGET_PASSES_H
