// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a module to what ranks execute: the program's text and machine code.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_COMPILE_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_COMPILE_H

#include "dfa/Target/Host.h"
#include "execution/Rank.h"

namespace dfa::run {

struct CompiledStep {
  StepCode code;
  /// Owns the functions of the host.
  std::unique_ptr<mlir::dfa::HostKernels> host;
  /// What the element kernels of a step move on one rank.
  std::vector<KernelTraffic> traffic;
};

/// Lowers levels A and B to kernels and the program, in place.
mlir::LogicalResult lowerToKernels(mlir::ModuleOp module);

/// The program as text, from a module that was lowered to kernels.
mlir::FailureOr<std::string> programText(mlir::ModuleOp module, bool cuda);

/// Machine code for a module that was lowered to kernels. `chip` names a GPU,
/// such as sm_90; empty: the host.
mlir::FailureOr<CompiledStep> compileKernels(mlir::ModuleOp module,
                                             llvm::StringRef chip);

/// The name of the first GPU's architecture, or why there is none.
Status findChip(std::string &chip);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_COMPILE_H
