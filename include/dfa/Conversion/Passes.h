// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes from level C to what LLVM knows: host loops and GPU kernels.

#ifndef DFA_CONVERSION_PASSES_H
#define DFA_CONVERSION_PASSES_H

#include "dfa/IR/Dfa.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::dfa {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dfa/Conversion/Passes.h.inc"

} // namespace mlir::dfa

#endif // DFA_CONVERSION_PASSES_H
