// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-c/dfa.h: pass pipelines on text, and the assembler.

#include "Handles.h"
#include "dfa/Target/Toolchain.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::capi;

/// What the caller wrote between the brackets of an anchor, if there is one.
static StringRef stripAnchor(StringRef pipeline) {
  pipeline = pipeline.trim();
  StringRef inner = pipeline;
  if (!inner.consume_front("builtin.module") || !inner.consume_front("(") ||
      !inner.consume_back(")"))
    return pipeline;
  return inner;
}

dfa_status_t dfa_run_passes(const char *text, size_t length, const char *source,
                            const char *pipeline, dfa_text_t **result,
                            dfa_diagnostics_t *diagnostics) {
  registerPasses();
  std::unique_ptr<MLIRContext> context = createContext();
  DiagnosticCollector collector(context.get(), diagnostics);
  OwningOpRef<ModuleOp> module =
      parseModule(context.get(), StringRef(text, length), source, diagnostics);
  if (!module)
    return DFA_FAILED;
  PassManager pm(context.get());
  std::string message;
  llvm::raw_string_ostream stream(message);
  StringRef passes = stripAnchor(pipeline);
  if (!passes.empty() && failed(parsePassPipeline(passes, pm, stream))) {
    StringRef first = StringRef(message).split("error: ").second;
    if (first.empty())
      first = message;
    return fail(diagnostics, "pipeline '" + Twine(pipeline) +
                                 "': " + first.split('\n').first);
  }
  if (failed(pm.run(*module)))
    return dfa_diagnostics_count(diagnostics)
               ? DFA_FAILED
               : fail(diagnostics, "a pass failed without saying why");
  std::string printed;
  llvm::raw_string_ostream out(printed);
  module->print(out);
  out << "\n";
  return store(std::move(printed), result);
}

dfa_status_t dfa_find_ptxas(const char *override_path, dfa_text_t **path,
                            dfa_text_t **release,
                            dfa_diagnostics_t *diagnostics) {
  llvm::Expected<std::string> found =
      findPtxas(override_path ? override_path : "");
  if (!found)
    return fail(diagnostics, llvm::toString(found.takeError()));
  store(getPtxasVersion(*found), release);
  return store(std::move(*found), path);
}
