// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's scalar optimizations, without those that choose vectors or unroll:
// kernels have the shape that they should have.

#ifndef DFA_LIB_TARGET_OPTIMIZE_H
#define DFA_LIB_TARGET_OPTIMIZE_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::dfa {

void optimizeLlvmModule(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace mlir::dfa

#endif // DFA_LIB_TARGET_OPTIMIZE_H
