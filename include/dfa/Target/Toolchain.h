// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding and running the CUDA assembler and its companions.

#ifndef DFA_TARGET_TOOLCHAIN_H
#define DFA_TARGET_TOOLCHAIN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace mlir::dfa {

/// Where a value of the environment comes from; tests give their own.
using EnvironmentLookup =
    llvm::function_ref<std::optional<std::string>(llvm::StringRef)>;

/// The process's environment.
std::optional<std::string> getEnvironment(llvm::StringRef name);

/// Path of ptxas. `override`, then DFA_PTXAS, win always: if one is given and
/// cannot be run, that is an error and nothing else is tried. Else the first
/// of CUDA_HOME, CUDA_PATH, PATH, `defaultRoot` and the Python environment
/// (VIRTUAL_ENV, and one beside this program). The error lists every place
/// that was tried, in order.
llvm::Expected<std::string>
findPtxas(llvm::StringRef override,
          EnvironmentLookup environment = getEnvironment,
          llvm::StringRef defaultRoot = "/usr/local/cuda");

/// The release line of `ptxas --version`; what went wrong if it cannot be run.
std::string getPtxasVersion(llvm::StringRef ptxas);

/// Machine code of PTX text. `log` receives what the assembler printed.
llvm::Expected<std::string> assemblePtx(llvm::StringRef ptxas,
                                        llvm::StringRef ptx,
                                        llvm::StringRef chip,
                                        std::string *log = nullptr);

/// Machine code and its PTX in one image, by the fatbinary tool that lies
/// beside ptxas.
llvm::Expected<std::string> makeFatbin(llvm::StringRef ptxas,
                                       llvm::StringRef ptx,
                                       llvm::StringRef cubin,
                                       llvm::StringRef chip);

} // namespace mlir::dfa

#endif // DFA_TARGET_TOOLCHAIN_H
