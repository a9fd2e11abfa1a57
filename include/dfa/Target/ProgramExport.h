// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A level C program as the text that the runtime reads
// (dfa-rt/program.def). Kernels travel separately, as code.

#ifndef DFA_TARGET_PROGRAMEXPORT_H
#define DFA_TARGET_PROGRAMEXPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace mlir::dfa {

/// What the text says of a target besides the module. The defaults are the
/// host's.
struct ProgramExportOptions {
  /// Transport of mesh axes whose collectives the library carries.
  std::string library = "gloo";
  /// Threads of a block, and elements of a thread's vector, in element kernels
  /// without accumulators. With accumulators a vector is one element.
  unsigned block = 128;
  unsigned vectorWidth = 4;
};

/// Writes the module's one `dfa.program`. Fails with a diagnostic if there is
/// none or more than one, if a command names something that the module lacks,
/// or if a command has no counterpart in the format.
LogicalResult exportProgram(ModuleOp module, raw_ostream &stream,
                            const ProgramExportOptions &options = {});

} // namespace mlir::dfa

#endif // DFA_TARGET_PROGRAMEXPORT_H
