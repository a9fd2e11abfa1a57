// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the opaque handles of dfa-c/dfa.h hold, and how diagnostics get into a
// caller's list.

#ifndef DFA_LIB_CAPI_HANDLES_H
#define DFA_LIB_CAPI_HANDLES_H

#include "dfa-c/dfa.h"
#include "dfa/IR/Dfa.h"
#include "dfa/Target/Cuda.h"
#include "dfa/Target/Host.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <memory>
#include <string>
#include <vector>

struct dfa_diagnostics {
  struct Entry {
    dfa_severity_t severity;
    std::string message;
    std::string file;
    int32_t line;
    int32_t column;
  };
  std::vector<Entry> entries;
};

struct dfa_text {
  std::string bytes;
};

struct dfa_step {
  std::unique_ptr<mlir::MLIRContext> context; // goes after the module
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::dfa::LayoutOp layout;
};

struct dfa_artifact {
  bool cuda = false;
  std::string program;
  std::string code; // of CUDA; the host's is in `host`
  std::unique_ptr<mlir::dfa::HostKernels> host;
  std::vector<std::string> names; // of the host's kernels
};

namespace mlir::dfa::capi {

/// Function that a step file must have.
inline constexpr StringLiteral kStepName = "step";

/// Appends an error without a place; returns DFA_FAILED. The list may be null.
dfa_status_t fail(dfa_diagnostics_t *diagnostics, const Twine &message);

/// Appends an error from text such as "FILE:1:2: error: ..."; what follows its
/// first line is dropped.
dfa_status_t failFromText(dfa_diagnostics_t *diagnostics, StringRef text);

/// While it lives, diagnostics of a context go into a caller's list.
class DiagnosticCollector {
public:
  DiagnosticCollector(MLIRContext *context, dfa_diagnostics_t *diagnostics);

private:
  ScopedDiagnosticHandler handler;
};

/// Stores a text in a result parameter.
dfa_status_t store(std::string bytes, dfa_text_t **result);

/// A context with our dialects, on one thread: what comes in is small, and
/// threads would cost more to start than they save.
std::unique_ptr<MLIRContext> createContext();

/// Makes all our passes and pipelines known, once in a process.
void registerPasses();

/// Parses a module; refuses what nests too deeply for the parser.
OwningOpRef<ModuleOp> parseModule(MLIRContext *context, StringRef text,
                                  StringRef source,
                                  dfa_diagnostics_t *diagnostics);

/// Options with defaults filled in and words checked.
struct Target {
  bool cuda = false;
  CudaOptions cudaOptions;
  HostOptions hostOptions;
};
FailureOr<Target> readTarget(const dfa_compile_options_t *options,
                             dfa_diagnostics_t *diagnostics);

} // namespace mlir::dfa::capi

#endif // DFA_LIB_CAPI_HANDLES_H
