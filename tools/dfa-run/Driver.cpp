// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of a run: parse, import, read data, run, write, print.
#include "Driver.h"
#include "Report.h"
#include "data/Results.h"
#include "data/Source.h"
#include "reference/Reference.h"
#include "step/Import.h"

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace run = ::dfa::run;
using run::Options;

static int fail(run::ExitCode code, const std::string &message) {
  llvm::errs() << "dfa-run: error: " << message << "\n";
  return code;
}

/// Fills in what a run left in the control block.
static run::Status readControl(run::Results &results, run::Report &report) {
  const std::pair<int, int64_t *> counters[] = {
      {run::control_step, &report.controlStep},
      {run::control_skipped, &report.skipped},
      {run::control_found_inf, &report.foundInf},
  };
  double value = 0;
  for (const std::pair<int, int64_t *> &counter : counters) {
    run::Status status = results.readControl(counter.first, value);
    if (!status.ok())
      return status;
    *counter.second = static_cast<int64_t>(value);
  }
  run::Status status = results.readControl(run::control_norm, report.norm);
  if (status.ok())
    status = results.readControl(run::control_scale, report.scale);
  return status;
}

/// Outputs and report, the same for all targets.
static int finish(const Options &options, const run::StepGraph &graph,
                  run::Results &results, run::Report &report) {
  if (!options.outputs.empty()) {
    run::Status status = writeResults(options.outputs, graph, results);
    if (!status.ok())
      return fail(run::exitWrongInput, status.message());
  }
  run::Status status = readControl(results, report);
  if (!status.ok())
    return fail(run::exitDevice, status.message());
  printReport(report, options.json);
  bool differs = report.verified && !report.verified->passed();
  return differs ? run::exitDifference : run::exitFine;
}

static int runReference(const Options &options, const run::StepGraph &graph,
                        const run::Source &source, run::Report &report) {
  run::Reference reference(graph, source, options.threads);
  run::Status status = reference.prepare();
  if (!status.ok())
    return fail(run::exitWrongInput, status.message());
  run::Progress progress("step", options.steps);
  for (int64_t i = 0; i < options.steps; ++i) {
    reference.step();
    progress.advance(i + 1);
  }
  run::ReferenceResults results(graph, reference);
  return finish(options, graph, results, report);
}

int run::drive(const Options &options) {
  DialectRegistry registry;
  registry.insert<mlir::dfa::DfaDialect, arith::ArithDialect, func::FuncDialect,
                  math::MathDialect>();
  MLIRContext context(registry);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file =
      openInputFile(options.input, &message);
  if (!file)
    return fail(exitWrongInput, message);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return exitWrongInput;
  FailureOr<StepGraph> graph = importStep(*module);
  if (failed(graph))
    return exitWrongInput;
  if (options.ranks != 0 && options.ranks != graph->ranks())
    return fail(exitWrongUsage,
                "expects --ranks=" + std::to_string(graph->ranks()) +
                    ", the ranks of the file's mesh, but got " +
                    std::to_string(options.ranks));

  Source source;
  Status status = source.open(
      *graph, {options.inputs, options.seed, options.distinctGradients});
  if (!status.ok())
    return fail(exitWrongInput, status.message());
  Report report;
  report.ranks = graph->ranks();
  report.steps = options.steps;
  report.seed = options.seed;
  report.elements = graph->elements();
  report.parameters = static_cast<int64_t>(graph->params.size());
  report.target = "reference";
  return runReference(options, *graph, source, report);
}
