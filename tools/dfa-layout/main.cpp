// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-layout: from a list of parameters to the layout and the optimizer step
// as MLIR. Only files, messages and exit codes live here.
#include "Options.h"
#include "ParamsFile.h"
#include "Step.h"
#include "StepText.h"
#include "dfa/Support/Version.h"
#include "layout/Dump.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace dfa::tools;
using dfa::layout::Expected;

enum ExitCode { Fine = 0, WrongInput = 1, WrongUsage = 2 };

/// The whole of a file ("-": standard input); false if it cannot be read.
static bool readFile(const std::string &path, std::string &text) {
  std::ostringstream content;
  if (path == "-") {
    content << std::cin.rdbuf();
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file || file.peek() == std::ifstream::traits_type::eof())
      return static_cast<bool>(file);
    content << file.rdbuf();
    if (!file)
      return false;
  }
  text = content.str();
  return true;
}

static bool writeFile(const std::string &path, const std::string &text) {
  if (path.empty() || path == "-") {
    std::cout << text << std::flush;
    return static_cast<bool>(std::cout);
  }
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  return static_cast<bool>(file);
}

static int fail(ExitCode code, const std::string &message) {
  std::cerr << message << "\n";
  return code;
}

static int run(const Options &options) {
  std::string file = options.model.empty() ? options.input : options.model;
  std::vector<ParamEntry> entries;
  if (!options.model.empty()) {
    entries = modelParams(options.model);
  } else {
    std::string text;
    if (!readFile(options.input, text))
      return fail(WrongInput,
                  locatedMessage(file, Location(), "cannot read the file"));
    Expected<std::vector<ParamEntry>> parsed = parseParams(file, text);
    if (!parsed)
      return fail(WrongInput, parsed.message());
    entries = std::move(*parsed);
  }
  Expected<Step> step = makeStep(options, file, entries);
  if (!step)
    return fail(WrongInput, step.message());
  std::string text = options.emit == Emit::Mlir
                         ? stepText(*step)
                         : dfa::layout::planText(step->plan);
  if (!writeFile(options.output, text))
    return fail(WrongInput, locatedMessage(options.output, Location(),
                                           "cannot write the file"));
  return Fine;
}

int main(int argc, char **argv) {
  Expected<Options> options =
      parseOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options)
    return fail(WrongUsage, "dfa-layout: error: " + options.message() +
                                "\nSee dfa-layout --help.");
  if (options->help || options->version) {
    std::cout << (options->help ? helpText()
                                : "dfa-layout " DFA_VERSION_STRING "\n");
    return Fine;
  }
  return run(*options);
}
