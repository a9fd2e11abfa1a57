// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-run: an optimizer step from an MLIR file, run and checked. The work is in
// Driver.cpp.
#include "Driver.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  int exitCode = dfa::run::exitFine;
  std::optional<dfa::run::Options> options =
      dfa::run::parseOptions(argc, argv, exitCode);
  if (!options)
    return exitCode;
  exitCode = dfa::run::drive(*options);
  if (exitCode != dfa::run::exitDevice)
    return exitCode;
  // A collective that failed can leave threads inside the driver or NCCL that
  // nobody can end; destructors of globals must not run under them.
  llvm::outs().flush();
  std::fflush(nullptr);
  std::_Exit(exitCode);
}
