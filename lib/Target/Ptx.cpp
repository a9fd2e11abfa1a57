// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX text, by LLVM's NVPTX back end. No library of device functions is
// linked: kernels call none.

#include "Optimize.h"
#include "Serialize.h"
#include "dfa/Target/Chips.h"
#include "dfa/Target/Toolchain.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;
using namespace mlir::dfa;

LogicalResult dfa::checkChip(Operation *op, const CudaOptions &options) {
  if (findChip(options.chip))
    return success();
  llvm::Expected<std::string> ptxas = findPtxas(options.ptxas);
  std::string assembler;
  if (ptxas) {
    assembler = getPtxasVersion(*ptxas);
  } else {
    llvm::consumeError(ptxas.takeError());
    assembler = "not found";
  }
  return op->emitError("expects a chip of ")
         << listChips() << ", but got '" << options.chip
         << "' (assembler: " << assembler << ")";
}

static std::unique_ptr<llvm::TargetMachine> createMachine(Operation *op,
                                                          StringRef chip) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    op->emitError("expects an LLVM with NVPTX: ") << error;
    return nullptr;
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // No features: LLVM takes the oldest PTX version that has the chip.
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip, /*Features=*/"", options, std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

FailureOr<std::string> dfa::emitPtx(Operation *gpuModule, StringRef chip) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(gpuModule, chip);
  if (!machine)
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(gpuModule, context, "dfa_kernels");
  if (!code)
    return gpuModule->emitError("could not be translated to LLVM IR");
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(machine->getTargetTriple());
  optimizeLlvmModule(*code, *machine);

  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return gpuModule->emitError("could not be written as PTX");
  passes.run(*code);
  return text.str().str();
}
