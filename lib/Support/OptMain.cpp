// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main function of tools in the manner of mlir-opt. It is upstream's, with
// a look at the input before the parser sees it.

#include "dfa/Support/OptMain.h"
#include "dfa/Support/Nesting.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

int dfa::runOptMain(int argc, char **argv, StringRef description,
                    DialectRegistry &registry) {
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, description, registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(
        MlirOptMain(argc, argv, input, output, registry));

  llvm::InitLLVM init(argc, argv);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> text = openInputFile(input, &message);
  if (!text) {
    llvm::errs() << message << "\n";
    return EXIT_FAILURE;
  }
  if (failed(checkNesting(text->getMemBufferRef(), llvm::errs())))
    return EXIT_FAILURE;
  std::unique_ptr<llvm::ToolOutputFile> file =
      openOutputFile(output, &message);
  if (!file) {
    llvm::errs() << message << "\n";
    return EXIT_FAILURE;
  }
  if (failed(MlirOptMain(file->os(), std::move(text), registry, config)))
    return EXIT_FAILURE;
  file->keep();
  return EXIT_SUCCESS;
}
