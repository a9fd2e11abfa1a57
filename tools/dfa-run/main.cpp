// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-run: an optimizer step from an MLIR file, run and checked. The work is in
// Driver.cpp.
#include "Driver.h"

int main(int argc, char **argv) {
  int exitCode = dfa::run::exitFine;
  std::optional<dfa::run::Options> options =
      dfa::run::parseOptions(argc, argv, exitCode);
  return options ? dfa::run::drive(*options) : exitCode;
}
