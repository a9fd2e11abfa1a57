// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main function of tools in the manner of mlir-opt.

#ifndef DFA_SUPPORT_OPTMAIN_H
#define DFA_SUPPORT_OPTMAIN_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::dfa {

/// mlir-opt with the dialects of `registry` and all registered passes; refuses
/// input that nests too deeply for the parser. `ourOptions` comes first in
/// --help. Returns the exit status.
int runOptMain(int argc, char **argv, llvm::StringRef description,
               DialectRegistry &registry, llvm::StringRef ourOptions = "");

} // namespace mlir::dfa

#endif // DFA_SUPPORT_OPTMAIN_H
