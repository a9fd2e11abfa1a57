// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of dfa-run, and the exit codes.
#ifndef DFA_TOOLS_DFA_RUN_OPTIONS_H
#define DFA_TOOLS_DFA_RUN_OPTIONS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dfa::run {

/// What dfa-run exits with.
enum ExitCode {
  exitFine = 0,
  exitWrongInput = 1,
  exitWrongUsage = 2,
  exitDifference = 3,
  exitDevice = 4,
};

enum class Target { Cpu, Cuda, Reference };
enum class Emit { Nothing, Program };

struct Options {
  std::string input;
  Target target = Target::Cpu;
  Emit emit = Emit::Nothing;
  int64_t steps = 3;
  int64_t microBatches = 1;
  uint64_t seed = 0;
  std::string inputs, outputs, trace, plan;
  bool verify = false;
  bool time = false;
  bool json = false;
  bool check = false;
  bool distinctGradients = false;
  bool replay = false;
  int64_t ranks = 0;              // 0: as many as the mesh has
  std::vector<std::string> words; // the command line, for other ranks
  unsigned threads = 0;
};

/// Parses the command line. Without a value the program is to exit with
/// `exitCode`: wrong usage, --help or --version.
std::optional<Options> parseOptions(int argc, char **argv, int &exitCode);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_OPTIONS_H
