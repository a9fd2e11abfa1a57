// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module of kernels only, so that what else is in a step's module needs no
// lowering.

#ifndef DFA_LIB_TARGET_EXTRACT_H
#define DFA_LIB_TARGET_EXTRACT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::dfa {

/// A copy of `module` without functions; the program stays, since it says
/// where arrays are. `names` receives the names of the kernels.
OwningOpRef<ModuleOp> extractKernels(ModuleOp module,
                                     SmallVectorImpl<std::string> &names);

/// Erases the ops of our dialect that are left after lowering.
void eraseProgram(ModuleOp module);

} // namespace mlir::dfa

#endif // DFA_LIB_TARGET_EXTRACT_H
