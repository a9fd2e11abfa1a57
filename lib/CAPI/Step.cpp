// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-c/dfa.h: parsing and verifying steps; what they cost.

#include "Handles.h"
#include "dfa/Analysis/StepCost.h"
#include "dfa/Pipelines/Frontend.h"
#include "dfa/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::capi;

/// Finds function and layout; complains where one is missing.
static LogicalResult findParts(dfa_step &step) {
  step.function = step.module->lookupSymbol<func::FuncOp>(kStepName);
  if (!step.function)
    return step.module->emitError("expects a function @")
           << kStepName << ", but found none";
  for (Type type : step.function.getArgumentTypes())
    if (FlatType flat = dyn_cast<FlatType>(type))
      if (!step.layout)
        step.layout = step.module->lookupSymbol<LayoutOp>(flat.getLayout());
  if (!step.layout)
    return step.function.emitError("expects arguments of type '!dfa.flat' over "
                                   "a 'dfa.layout' of this module");
  return success();
}

dfa_status_t dfa_step_parse(const char *text, size_t length, const char *source,
                            dfa_step_t **step, dfa_diagnostics_t *diagnostics) {
  auto made = std::make_unique<dfa_step>();
  made->context = createContext();
  DiagnosticCollector collector(made->context.get(), diagnostics);
  made->module = parseModule(made->context.get(), StringRef(text, length),
                             source, diagnostics);
  if (!made->module || failed(findParts(*made)))
    return DFA_FAILED;
  // On a copy: offsets of this layout are no part of what was written.
  OwningOpRef<ModuleOp> copy = made->module->clone();
  PassManager pm(made->context.get());
  pm.addPass(createDfaVerifyStep());
  pm.addPass(createDfaAssignLayout());
  if (failed(pm.run(*copy)))
    return DFA_FAILED;
  *step = made.release();
  return DFA_OK;
}

void dfa_step_release(dfa_step_t *step) { delete step; }

dfa_status_t dfa_step_report(dfa_step_t *step,
                             const dfa_report_options_t *options,
                             dfa_text_t **json,
                             dfa_diagnostics_t *diagnostics) {
  DiagnosticCollector collector(step->context.get(), diagnostics);
  CostOptions costs;
  if (options) {
    if (options->struct_size < sizeof(*options))
      return fail(diagnostics, "expects options of " + Twine(sizeof(*options)) +
                                   " bytes, but got " +
                                   Twine(options->struct_size));
    if (options->bandwidth < 0 || options->link < 0 || options->replicate < 0 ||
        options->shard < 0)
      return fail(diagnostics, "expects positive sizes for a report");
    if (options->bandwidth != 0)
      costs.bandwidth = options->bandwidth;
    if (options->link != 0)
      costs.link = options->link;
    costs.replicate = options->replicate;
    costs.shard = options->shard;
  }
  OwningOpRef<ModuleOp> copy = step->module->clone();
  PassManager pm(step->context.get());
  buildToKernelsPipeline(pm);
  if (failed(pm.run(*copy)))
    return DFA_FAILED;
  FailureOr<StepCost> cost = computeStepCost(*copy, costs);
  if (failed(cost))
    return DFA_FAILED;
  std::string text;
  llvm::raw_string_ostream stream(text);
  printCostAsJson(*cost, stream);
  return store(std::move(text), json);
}
