// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-c/dfa.h: the text that names compiled code in a cache.

#include "Handles.h"
#include "dfa-rt/abi.h"
#include "dfa/Target/Toolchain.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::capi;

/// Drops what the code does not depend on: which parameters there are, their
/// groups' values, and how large a bucket may be. They are read at run time.
static void eraseLayout(ModuleOp module) {
  module.walk([](Operation *op) {
    if (isa<ParamOp, GroupOp>(op))
      op->erase();
    else if (LayoutOp layout = dyn_cast<LayoutOp>(op))
      layout.removeBucketBytesAttr();
  });
}

static void writeHost(raw_ostream &os, const HostOptions &options) {
  os << "target cpu\ncpu " << llvm::sys::getProcessTriple() << " "
     << llvm::sys::getHostCPUName() << "\nfeatures";
  SmallVector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(features);
  os << " " << llvm::join(features, ",") << "\nvector-width "
     << options.vectorWidth << "\n";
}

static dfa_status_t writeCuda(raw_ostream &os, const CudaOptions &options,
                              dfa_diagnostics_t *diagnostics) {
  StringRef format = options.format == CudaFormat::Ptx     ? "ptx"
                     : options.format == CudaFormat::Cubin ? "cubin"
                                                           : "fatbin";
  os << "target cuda\nchip " << options.chip << "\nformat " << format
     << "\nvector-width " << options.vectorWidth << "\nblock " << options.block
     << "\nunroll " << options.unroll << "\nmax-registers "
     << options.maxRegisters << "\n";
  if (options.format == CudaFormat::Ptx)
    return DFA_OK;
  // By release, not by path: the default may be named explicitly.
  llvm::Expected<std::string> ptxas = findPtxas(options.ptxas);
  if (!ptxas)
    return fail(diagnostics, llvm::toString(ptxas.takeError()));
  os << "ptxas " << getPtxasVersion(*ptxas) << "\n";
  return DFA_OK;
}

dfa_status_t dfa_step_key(dfa_step_t *step,
                          const dfa_compile_options_t *options,
                          dfa_text_t **key, dfa_diagnostics_t *diagnostics) {
  FailureOr<Target> target = readTarget(options, diagnostics);
  if (failed(target))
    return DFA_FAILED;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "dfa " << dfa_version() << "\nllvm " << dfa_llvm_version() << "\nabi "
     << DFA_RT_ABI_VERSION << "\nprogram " << DFA_RT_PROGRAM_VERSION << "\n";
  if (target->cuda) {
    if (writeCuda(os, target->cudaOptions, diagnostics) != DFA_OK)
      return DFA_FAILED;
  } else {
    writeHost(os, target->hostOptions);
  }
  OwningOpRef<ModuleOp> copy = step->module->clone();
  eraseLayout(*copy);
  // The generic form does not depend on how something happens to be printed.
  copy->print(os, OpPrintingFlags().printGenericOpForm().useLocalScope());
  return store(std::move(text), key);
}
