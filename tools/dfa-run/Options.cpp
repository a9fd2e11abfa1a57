// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options by LLVM's command line library, ours alone in --help.
#include "Options.h"
#include "dfa/Support/Version.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace dfa::run;
namespace cl = llvm::cl;

static const char overview[] =
    "dfa-run: runs the optimizer step of an MLIR file\n"
    "\n"
    "Parameters and gradients come from a seed or from a .npz file, with keys\n"
    "param/NAME, master/NAME, STATE/NAME, step/NAME, grad/NAME (or "
    "grad.STEP/NAME,\n"
    "grad@RANK/NAME, grad.STEP@RANK/NAME) and control/FIELD, all in logical\n"
    "shape; bf16 arrays as uint16 bits under NAME:bf16.\n"
    "\n"
    "Exit codes: 0 fine, 1 wrong input, 2 wrong usage, 3 --verify found a\n"
    "difference, 4 device or peer failure.\n";

std::optional<Options> dfa::run::parseOptions(int argc, char **argv,
                                              int &exitCode) {
  // libLLVM brings hundreds of options of its own, some with our names.
  cl::ResetCommandLineParser();
  static cl::OptionCategory category("dfa-run options");
  static cl::opt<std::string> input(cl::Positional, cl::desc("STEP.mlir"),
                                    cl::init(""), cl::cat(category));
  static cl::opt<Target> target(
      "target", cl::desc("Where the step runs"), cl::init(Target::Cpu),
      cl::values(clEnumValN(Target::Cpu, "cpu", "compiled for the host"),
                 clEnumValN(Target::Cuda, "cuda", "compiled for a GPU"),
                 clEnumValN(Target::Reference, "reference",
                            "interpreted in float64, as --verify does")),
      cl::cat(category));
  static cl::opt<int64_t> steps("steps", cl::desc("Steps to run"), cl::init(3),
                                cl::value_desc("N"), cl::cat(category));
  static cl::opt<int64_t> microBatches(
      "micro-batches",
      cl::desc("Contributions of gradients to each step, for steps with "
               "'dfa.accumulate'; contribution K of step S is gradient "
               "(S - 1) * N + K"),
      cl::init(1), cl::value_desc("N"), cl::cat(category));
  static cl::opt<uint64_t> seed("seed",
                                cl::desc("Seed of the data; seeded gradients "
                                         "are multiplied by the loss scale"),
                                cl::init(0), cl::value_desc("N"),
                                cl::cat(category));
  static cl::opt<std::string> inputs("inputs", cl::desc("Read data from here"),
                                     cl::value_desc("IN.npz"),
                                     cl::cat(category));
  static cl::opt<std::string> outputs(
      "outputs", cl::desc("Write parameters, states and control here"),
      cl::value_desc("OUT.npz"), cl::cat(category));
  static cl::opt<bool> verify(
      "verify",
      cl::desc("Compare with the float64 reference: every element within "
               "2^-20 of the absolute terms that the run accumulated into it, "
               "every low-precision value exactly the encoding of our own "
               "master"),
      cl::cat(category));
  static cl::opt<bool> time(
      "time",
      cl::desc(
          "Print times, behind the steps that count, on their last gradients:\n"
          "copy: best of 5 device-to-device copies of seeded data, read plus\n"
          "  write, of 1 GiB or what fits (CPU: 256 MiB, one thread)\n"
          "step: ms of one step, the median of 5 batches of at least 20 steps\n"
          "  (fewer above 50 ms) that are queued back to back; MB that its\n"
          "  kernels read and write on one rank; GB/s; share of the floor's\n"
          "  time (ms * copy rate / bytes); host us: to queue one step\n"
          "kernels: ms of all kernels of a step, each timed on its own,\n"
          "  without --replay; below a step's ms by the gaps between them,\n"
          "  above it by what the timers cost\n"
          "a line for each kernel, collective and other command of the first\n"
          "  rank: launches a step; B/elem (read plus written an element); MB\n"
          "  (10^6 bytes a step); ms (a step, median of 5 runs); GB/s; ratio\n"
          "  (GB/s over copy GB/s)"),
      cl::cat(category));
  static cl::opt<bool> json("json", cl::desc("Print results as JSON"),
                            cl::cat(category));
  static cl::opt<int64_t> ranks(
      "ranks",
      cl::desc("Ranks to run, as processes of this machine (default: the "
               "mesh's); where a launcher (torchrun, srun) started one process "
               "a rank, each of them is one"),
      cl::init(0), cl::value_desc("N"), cl::cat(category));
  static cl::opt<bool> distinct(
      "distinct-gradients",
      cl::desc("Give each rank its own gradients; the reference averages"),
      cl::cat(category));
  static cl::opt<bool> replay(
      "replay", cl::desc("Record the step once and replay the recording"),
      cl::cat(category));
  static cl::opt<bool> check(
      "check", cl::desc("Print for each rank what it runs on, and run no step"),
      cl::cat(category));
  static cl::opt<std::string> trace(
      "trace", cl::desc("Write a time line of the run, for trace viewers"),
      cl::value_desc("T.json"), cl::cat(category));
  static cl::opt<std::string> plan(
      "plan",
      cl::desc("Draw buckets, parameters, shards, and what\n"
               "  runs on which stream"),
      cl::value_desc("P.svg"), cl::cat(category));
  static cl::opt<Emit> emit(
      "emit", cl::desc("Print instead of running"), cl::init(Emit::Nothing),
      cl::values(clEnumValN(Emit::Program, "program",
                            "the program that the runtime executes")),
      cl::cat(category));
  static cl::opt<unsigned> threads(
      "threads", cl::desc("Threads on the host (default: all cores)"),
      cl::init(0), cl::value_desc("N"), cl::cat(category));

  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter([](llvm::raw_ostream &stream) {
    stream << "dfa-run " << DFA_VERSION_STRING << "\n";
  });
  exitCode = exitWrongUsage;
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return std::nullopt;

  Options options;
  options.input = input;
  options.target = target;
  options.emit = emit;
  options.steps = steps;
  options.microBatches = microBatches;
  options.seed = seed;
  options.inputs = inputs;
  options.outputs = outputs;
  options.trace = trace;
  options.plan = plan;
  options.verify = verify;
  options.time = time;
  options.json = json;
  options.check = check;
  options.distinctGradients = distinct;
  options.replay = replay;
  options.ranks = ranks;
  options.words.assign(argv, argv + argc);
  options.threads = threads;
  std::string complaint;
  if (options.input.empty())
    complaint = "expects a file STEP.mlir, but got none";
  else if (options.steps < 0)
    complaint = "expects --steps of at least 0, but got " +
                std::to_string(options.steps);
  else if (options.microBatches < 1)
    complaint = "expects --micro-batches of at least 1, but got " +
                std::to_string(options.microBatches);
  else if (options.ranks < 0)
    complaint = "expects --ranks of at least 1, but got " +
                std::to_string(options.ranks);
  else if (options.target == Target::Reference &&
           (options.verify || options.time))
    complaint = "expects --verify and --time with a compiled target, but got "
                "--target=reference";
  if (complaint.empty())
    return options;
  llvm::errs() << "dfa-run: error: " << complaint << "\nSee dfa-run --help.\n";
  return std::nullopt;
}
