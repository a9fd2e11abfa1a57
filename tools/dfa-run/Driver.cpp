// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of a run: parse, import, read data, run, write, print.
#include "Driver.h"
#include "Report.h"
#include "Trace.h"
#include "data/Results.h"
#include "data/Source.h"
#include "execution/Compile.h"
#include "execution/Execution.h"
#include "execution/PlanDrawing.h"
#include "reference/Reference.h"
#include "step/Import.h"

#include "dfa/Analysis/LayoutPlan.h"
#include "dfa/IR/Dfa.h"
#include "dfa/Pipelines/Backend.h"
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
                  run::Results &results, run::Report &report,
                  llvm::function_ref<run::Status()> afterwards) {
  if (!options.outputs.empty()) {
    run::Status status = writeResults(options.outputs, graph, results);
    if (!status.ok())
      return fail(run::exitWrongInput, status.message());
  }
  run::Status status = readControl(results, report);
  if (status.ok())
    status = afterwards();
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
  return finish(options, graph, results, report, [] { return run::Status(); });
}

/// Compiles the module: machine code, or an exit code.
static int compile(const Options &options, ModuleOp module,
                   run::CompiledStep &compiled) {
  std::string chip;
  if (options.target == run::Target::Cuda) {
    run::Status status = run::findChip(chip);
    if (!status.ok())
      return fail(run::exitDevice, status.message());
  }
  if (failed(run::lowerToKernels(module)))
    return run::exitWrongInput;
  FailureOr<run::CompiledStep> made = run::compileKernels(module, chip);
  if (failed(made))
    return run::exitWrongInput;
  compiled = std::move(*made);
  return run::exitFine;
}

/// Runs the steps, and the reference beside them if it is wanted.
static run::Status runSteps(const Options &options, const run::StepGraph &graph,
                            const run::Source &source,
                            run::Execution &execution, run::Report &report,
                            run::Trace &trace) {
  std::optional<run::Reference> reference;
  if (options.verify) {
    run::Trace::Span span(trace, "prepare the reference");
    reference.emplace(graph, source, options.threads);
    run::Status status = reference->prepare();
    if (!status.ok())
      return status;
  }
  run::Status status;
  {
    run::Trace::Span span(trace, "load");
    status = execution.load(source);
  }
  run::Progress progress("step", options.steps);
  for (int64_t i = 0; i < options.steps && status.ok(); ++i) {
    std::string number = std::to_string(i + 1);
    {
      run::Trace::Span span(trace, "gradients " + number);
      status = execution.setGradients(source, i + 1);
    }
    if (status.ok()) {
      run::Trace::Span span(trace, "step " + number);
      status = execution.step();
    }
    if (reference) {
      run::Trace::Span span(trace, "reference " + number);
      reference->step();
    }
    progress.advance(i + 1);
  }
  if (!status.ok() || !reference)
    return status;
  run::Trace::Span span(trace, "verify");
  report.verified.emplace();
  return execution.verify(*reference, *report.verified);
}

/// Times steps behind those that count. What they change is not written.
static run::Status timeRun(const run::CompiledStep &compiled,
                           run::Execution &execution, run::Report &report) {
  report.timing.emplace();
  return execution.timeAll(compiled.traffic, *report.timing);
}

static int runCompiled(const Options &options, ModuleOp module,
                       const run::StepGraph &graph, const run::Source &source,
                       run::Report &report) {
  run::CompiledStep compiled;
  run::Trace trace;
  {
    run::Trace::Span span(trace, "compile");
    if (int code = compile(options, module, compiled))
      return code;
  }
  bool cuda = options.target == run::Target::Cuda;
  report.target = cuda ? "cuda" : "cpu";
  run::Execution execution;
  run::Status status;
  {
    run::Trace::Span span(trace, "create");
    status = execution.create(graph, compiled.code,
                              {cuda, options.threads, options.replay});
  }
  if (status.ok() && options.check) {
    llvm::outs() << execution.describe();
    return run::exitFine;
  }
  if (status.ok())
    status = runSteps(options, graph, source, execution, report, trace);
  if (!status.ok())
    return fail(run::exitDevice, status.message());
  if (!options.trace.empty() && !trace.write(options.trace))
    return fail(run::exitWrongInput, "cannot write " + options.trace);
  return finish(options, graph, execution, report, [&] {
    return options.time ? timeRun(compiled, execution, report) : run::Status();
  });
}

/// Draws the layout of the step.
static int writePlan(const std::string &path, ModuleOp module) {
  mlir::dfa::LayoutOp op = *module.getOps<mlir::dfa::LayoutOp>().begin();
  FailureOr<::dfa::layout::Plan> plan = mlir::dfa::planLayout(op);
  if (failed(plan))
    return run::exitWrongInput;
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return fail(run::exitWrongInput, path + ": " + error.message());
  file << run::drawPlan(*plan);
  return run::exitFine;
}

static int emitProgram(ModuleOp module, bool cuda) {
  if (failed(run::lowerToKernels(module)))
    return run::exitWrongInput;
  FailureOr<std::string> text = run::programText(module, cuda);
  if (failed(text))
    return run::exitWrongInput;
  llvm::outs() << *text;
  return run::exitFine;
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
  if (!options.plan.empty())
    if (int code = writePlan(options.plan, *module))
      return code;
  if (options.emit == Emit::Program)
    return emitProgram(*module, options.target == Target::Cuda);
  if (options.target != Target::Reference)
    return runCompiled(options, *module, *graph, source, report);
  report.target = "reference";
  return runReference(options, *graph, source, report);
}
