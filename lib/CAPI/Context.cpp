// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every function of the C interface needs: contexts, registration,
// parsing, and options in the compiler's own terms.

#include "Handles.h"
#include "dfa-rt/abi.h"
#include "dfa/Conversion/Passes.h"
#include "dfa/Pipelines/Frontend.h"
#include "dfa/Support/Nesting.h"
#include "dfa/Support/Version.h"
#include "dfa/Target/Chips.h"
#include "dfa/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Config/llvm-config.h"
#include <mutex>

using namespace mlir;
using namespace mlir::dfa;

const char *dfa_version(void) { return DFA_VERSION_STRING; }
const char *dfa_llvm_version(void) { return LLVM_VERSION_STRING; }

std::unique_ptr<MLIRContext> capi::createContext() {
  DialectRegistry registry;
  registry.insert<DfaDialect, arith::ArithDialect, func::FuncDialect,
                  math::MathDialect>();
  registerDfaBackendTranslations(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
  return context;
}

void capi::registerPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerDfaPipelines();
    registerDfaReportPass();
    registerDfaTransformsPasses();
    registerDfaConversionPasses();
    registerDfaBackendPipelines();
    registerCanonicalizerPass();
    registerCSEPass();
  });
}

OwningOpRef<ModuleOp> capi::parseModule(MLIRContext *context, StringRef text,
                                        StringRef source,
                                        dfa_diagnostics_t *diagnostics) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (failed(checkNesting(llvm::MemoryBufferRef(text, source), stream))) {
    failFromText(diagnostics, message);
    return {};
  }
  return parseSourceString<ModuleOp>(text, ParserConfig(context), source);
}

static std::string text(const char *given, StringRef otherwise) {
  return given && *given ? given : otherwise.str();
}

FailureOr<capi::Target> capi::readTarget(const dfa_compile_options_t *options,
                                         dfa_diagnostics_t *diagnostics) {
  Target target;
  if (!options)
    return target;
  if (options->struct_size < sizeof(*options)) {
    fail(diagnostics, "expects options of " + Twine(sizeof(*options)) +
                          " bytes, but got " + Twine(options->struct_size));
    return failure();
  }
  std::string word = text(options->target, "cpu");
  if (word != "cpu" && word != "cuda") {
    fail(diagnostics,
         "expects target 'cpu' or 'cuda', but got '" + Twine(word) + "'");
    return failure();
  }
  target.cuda = word == "cuda";
  if (!target.cuda) {
    if (options->vector_width)
      target.hostOptions.vectorWidth = options->vector_width;
    return target;
  }
  CudaOptions &cuda = target.cudaOptions;
  cuda.chip = text(options->chip, cuda.chip);
  if (!findChip(cuda.chip)) {
    fail(diagnostics, "expects a chip that this compiler knows (" +
                          listChips() + "), but got '" + cuda.chip + "'");
    return failure();
  }
  std::string formatWord = text(options->format, "cubin");
  std::optional<CudaFormat> format = parseCudaFormat(formatWord);
  if (!format) {
    fail(diagnostics, "expects format 'ptx', 'cubin' or 'fatbin', but got '" +
                          Twine(formatWord) + "'");
    return failure();
  }
  cuda.format = *format;
  cuda.ptxas = text(options->ptxas, "");
  if (options->vector_width)
    cuda.vectorWidth = options->vector_width;
  if (options->block)
    cuda.block = options->block;
  if (options->unroll)
    cuda.unroll = options->unroll;
  cuda.maxRegisters = options->max_registers;
  return target;
}
