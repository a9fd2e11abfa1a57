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
#include "launch/Launcher.h"
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

/// Runs the steps on all ranks.
static run::Status runSteps(const Options &options, const run::Source &source,
                            run::Execution &execution, run::Trace &trace,
                            bool speaks) {
  run::Status status;
  {
    run::Trace::Span span(trace, "load");
    status = execution.load(source);
  }
  run::Progress progress("step", options.steps);
  for (int64_t i = 0; i < options.steps && status.ok(); ++i) {
    if (speaks)
      progress.advance(i);
    std::string number = std::to_string(i + 1);
    {
      run::Trace::Span span(trace, "gradients " + number);
      status = execution.setGradients(source, i + 1);
    }
    if (status.ok()) {
      run::Trace::Span span(trace, "step " + number);
      status = execution.step();
    }
  }
  return status;
}

/// Runs the reference and compares, on the first rank.
static run::Status verifySteps(const Options &options,
                               const run::StepGraph &graph,
                               const run::Source &source,
                               run::Execution &execution, run::Report &report,
                               run::Trace &trace) {
  run::Reference reference(graph, source, options.threads);
  run::Status prepared;
  run::Status status = execution.meanwhile([&] {
    {
      run::Trace::Span span(trace, "prepare the reference");
      prepared = reference.prepare();
    }
    run::Progress progress("reference step", options.steps);
    for (int64_t i = 0; i < options.steps && prepared.ok(); ++i) {
      run::Trace::Span span(trace, "reference " + std::to_string(i + 1));
      reference.step();
      progress.advance(i + 1);
    }
  });
  if (status.ok())
    status = prepared;
  if (!status.ok())
    return status;
  run::Trace::Span span(trace, "verify");
  report.verified.emplace();
  return execution.verify(reference, *report.verified);
}

/// Writes the time line of all ranks.
static run::Status writeTrace(const std::string &path,
                              run::Execution &execution, run::Trace &trace) {
  std::vector<std::string> texts;
  run::Status status = execution.gatherTexts("", texts);
  for (size_t i = 1; i < texts.size() && status.ok(); ++i)
    trace.append(static_cast<int64_t>(i), texts[i]);
  if (status.ok() && !trace.write(path))
    return run::Status::failure("cannot write " + path);
  return status;
}

/// Prints what every rank runs on.
static int printCheck(run::Execution &execution) {
  std::vector<std::string> texts;
  run::Status status = execution.gatherTexts(execution.describe(), texts);
  if (!status.ok())
    return fail(run::exitDevice, status.message());
  for (const std::string &text : texts)
    llvm::outs() << text;
  llvm::outs().flush();
  return run::exitFine;
}

/// What has to be the same on all ranks beside the layout.
static std::string agreementOf(const Options &options,
                               const std::string &program) {
  std::string text = "steps " + std::to_string(options.steps) +
                     "\nmicro-batches " + std::to_string(options.microBatches) +
                     "\nseed " + std::to_string(options.seed) + "\n";
  const std::pair<const char *, bool> flags[] = {
      {"cuda", options.target == run::Target::Cuda},
      {"distinct gradients", options.distinctGradients},
      {"inputs", !options.inputs.empty()},
      {"replay", options.replay},
      {"check", options.check},
  };
  for (const std::pair<const char *, bool> &flag : flags)
    text += std::string(flag.first) + (flag.second ? " yes\n" : " no\n");
  return text + program;
}

/// Times steps behind those that count. What they change is not written.
static run::Status timeRun(const run::CompiledStep &compiled,
                           run::Execution &execution, run::Report &report) {
  report.timing.emplace();
  return execution.timeAll(compiled.traffic, *report.timing);
}

static int runCompiled(const Options &options, const run::Place &place,
                       ModuleOp module, const run::StepGraph &graph,
                       const run::Source &source, run::Report &report) {
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
                              {place, cuda, options.threads, options.replay,
                               agreementOf(options, compiled.code.program)});
  }
  trace.mark();
  if (status.ok() && !options.check)
    status = runSteps(options, source, execution, trace, place.first());
  if (status.ok() && !place.first())
    status = execution.serve(
        [&] { return options.check ? execution.describe() : trace.text(); });
  if (!status.ok())
    return fail(run::exitDevice, status.message());
  if (!place.first())
    return run::exitFine;
  execution.lead();
  if (options.check)
    return printCheck(execution);
  if (options.verify)
    status = verifySteps(options, graph, source, execution, report, trace);
  if (!status.ok())
    return fail(run::exitDevice, status.message());
  if (!options.trace.empty())
    status = writeTrace(options.trace, execution, trace);
  if (!status.ok())
    return fail(run::exitWrongInput, status.message());
  return finish(options, graph, execution, report, [&] {
    return options.time ? timeRun(compiled, execution, report) : run::Status();
  });
}

/// Draws the layout and the streams of the step.
static int writePlan(const std::string &path, ModuleOp module, bool cuda) {
  mlir::dfa::LayoutOp op = *module.getOps<mlir::dfa::LayoutOp>().begin();
  FailureOr<::dfa::layout::Plan> plan = mlir::dfa::planLayout(op);
  if (failed(plan))
    return run::exitWrongInput;
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return fail(run::exitWrongInput, path + ": " + error.message());
  OwningOpRef<ModuleOp> lowered(cast<ModuleOp>(module->clone()));
  if (failed(run::lowerToKernels(*lowered)))
    return run::exitWrongInput;
  FailureOr<std::string> text = run::programText(*lowered, cuda);
  if (failed(text))
    return run::exitWrongInput;
  ::dfa::rt::Result<::dfa::rt::Program> program =
      ::dfa::rt::Program::parse(*text, "program");
  if (!program.ok())
    return fail(run::exitWrongInput, program.status().str());
  file << run::drawPlan(*plan, run::schedule(*program, *plan));
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
  context.printOpOnDiagnostic(false);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file =
      openInputFile(options.input, &message);
  if (!file)
    return fail(exitWrongInput, message);
  std::string text; // standard input, which other ranks cannot read again
  if (options.input == "-")
    text = file->getBuffer().str();
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
  Place place;
  Status status = readPlace(place);
  if (!status.ok())
    return fail(exitWrongUsage, status.message());
  // A launcher's single process starts the others itself.
  bool compiled = options.target != Target::Reference;
  bool launches = compiled && place.ranks == 1 && graph->ranks() > 1;
  if (compiled && !launches && place.ranks != graph->ranks())
    return fail(exitWrongUsage, "expects " + std::to_string(graph->ranks()) +
                                    " ranks, as the file's mesh has, but " +
                                    place.source + " say " +
                                    std::to_string(place.ranks));

  graph->microBatches = options.microBatches;
  if (options.microBatches > 1 && !graph->accumulates())
    return fail(exitWrongUsage, "expects a step with 'dfa.accumulate' for "
                                "--micro-batches=" +
                                    std::to_string(options.microBatches) +
                                    ", but found none");

  Source source;
  status = source.open(
      *graph, {options.inputs, options.seed, options.distinctGradients});
  if (!status.ok())
    return fail(exitWrongInput, status.message());
  Report report;
  report.ranks = graph->ranks();
  report.steps = options.steps;
  report.seed = options.seed;
  report.elements = graph->elements();
  report.parameters = static_cast<int64_t>(graph->params.size());
  // Where every rank would do the same, the first does it.
  if (!place.first() && (!compiled || options.emit == Emit::Program))
    return exitFine;
  if (!options.plan.empty() && place.first())
    if (int code =
            writePlan(options.plan, *module, options.target == Target::Cuda))
      return code;
  if (options.emit == Emit::Program)
    return emitProgram(*module, options.target == Target::Cuda);
  if (launches)
    return launchRanks({graph->ranks(), options.words, text});
  if (compiled)
    return runCompiled(options, place, *module, *graph, source, report);
  report.target = "reference";
  return runReference(options, *graph, source, report);
}
