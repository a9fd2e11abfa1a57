// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main function of tools in the manner of mlir-opt. It is upstream's, with
// a look at the input before the parser sees it.

#include "dfa/Support/OptMain.h"
#include "dfa/Support/Nesting.h"
#include "dfa/Support/Version.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// Options that LLVM's code generators registered before ours: their place is
/// --help-hidden.
static void hideCodegenOptions() {
  for (auto &entry : llvm::cl::getRegisteredOptions())
    entry.second->setHiddenFlag(llvm::cl::Hidden);
}

/// A diagnostic is one located line; the op behind it is for those who ask.
static void printOpsOnRequestOnly() {
  registerMLIRContextCLOptions();
  llvm::cl::Option *option =
      llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  if (option)
    static_cast<llvm::cl::opt<bool> *>(option)->setInitialValue(false);
}

static bool hasArgument(int argc, char **argv, StringRef name) {
  for (int index = 1; index < argc; ++index)
    if (StringRef(argv[index]).ltrim('-').split('=').first == name)
      return true;
  return false;
}

int dfa::runOptMain(int argc, char **argv, StringRef description,
                    DialectRegistry &registry, StringRef ourOptions) {
  hideCodegenOptions();
  printOpsOnRequestOnly();
  llvm::cl::SetVersionPrinter([](raw_ostream &os) {
    os << "dfa " << DFA_VERSION_STRING << " (LLVM " << LLVM_VERSION_STRING
       << ")\n";
  });
  std::string text = description.str();
  if (hasArgument(argc, argv, "help"))
    text += ourOptions.str();
  auto [input, output] = registerAndParseCLIOptions(argc, argv, text, registry);
  // A report goes to stdout; the module then only where -o says.
  if (hasArgument(argc, argv, "dfa-report") && !hasArgument(argc, argv, "o"))
    output = "/dev/null";
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));

  llvm::InitLLVM init(argc, argv);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &message);
  if (!buffer) {
    llvm::errs() << message << "\n";
    return EXIT_FAILURE;
  }
  if (failed(checkNesting(buffer->getMemBufferRef(), llvm::errs())))
    return EXIT_FAILURE;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &message);
  if (!file) {
    llvm::errs() << message << "\n";
    return EXIT_FAILURE;
  }
  if (failed(MlirOptMain(file->os(), std::move(buffer), registry, config)))
    return EXIT_FAILURE;
  file->keep();
  return EXIT_SUCCESS;
}
