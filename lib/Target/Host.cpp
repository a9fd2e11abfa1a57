// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as functions of this process, through LLVM's JIT.

#include "dfa/Target/Host.h"
#include "Extract.h"
#include "Optimize.h"
#include "dfa/Pipelines/Backend.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;
using namespace mlir::dfa;

struct HostKernels::Engine {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::string object;
};

HostKernels::HostKernels() : engine(std::make_unique<Engine>()) {}
HostKernels::~HostKernels() = default;

StringRef HostKernels::getObject() const { return engine->object; }

static LogicalResult report(ModuleOp module, llvm::Error error,
                            StringRef what) {
  return module.emitError("could not ")
         << what << ": " << llvm::toString(std::move(error));
}

/// The CPU that runs this, with IEEE arithmetic: nothing contracted.
static llvm::Expected<llvm::orc::JITTargetMachineBuilder> detectHost() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  builder->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  // As the JIT's linker wants them: objects may be loaded later on.
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->setCodeModel(llvm::CodeModel::Small);
  return builder;
}

/// Only what code generation itself asks for (fma without the instruction,
/// memcpy) may come from the process.
static llvm::Error addRuntimeLibrary(llvm::orc::LLJIT &jit) {
  auto generator =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          jit.getDataLayout().getGlobalPrefix());
  if (!generator)
    return generator.takeError();
  jit.getMainJITDylib().addGenerator(std::move(*generator));
  return llvm::Error::success();
}

static OwningOpRef<ModuleOp> lower(ModuleOp module, const HostOptions &options,
                                   SmallVectorImpl<std::string> &names) {
  OwningOpRef<ModuleOp> kernels = extractKernels(module, names);
  PassManager pm(module.getContext());
  CpuPipelineOptions pipeline;
  pipeline.vectorWidth = options.vectorWidth;
  buildKernelsToCpuPipeline(pm, pipeline);
  if (failed(pm.run(*kernels)))
    return {};
  eraseProgram(*kernels);
  return kernels;
}

static void allowTranslation(MLIRContext *context) {
  DialectRegistry registry;
  registerDfaBackendTranslations(registry);
  context->appendDialectRegistry(registry);
}

/// The module as an object file for this CPU.
static llvm::Expected<std::string>
compileObject(llvm::orc::JITTargetMachineBuilder &host, llvm::Module &code) {
  auto machine = host.createTargetMachine();
  if (!machine)
    return machine.takeError();
  code.setDataLayout((*machine)->createDataLayout());
  code.setTargetTriple((*machine)->getTargetTriple());
  optimizeLlvmModule(code, **machine);
  auto buffer = llvm::orc::SimpleCompiler(**machine)(code);
  if (!buffer)
    return buffer.takeError();
  return (*buffer)->getBuffer().str();
}

static llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
link(llvm::orc::JITTargetMachineBuilder host, StringRef object) {
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(host))
                 .create();
  if (!jit)
    return jit.takeError();
  if (llvm::Error error = addRuntimeLibrary(**jit))
    return error;
  if (llvm::Error error = (*jit)->addObjectFile(
          llvm::MemoryBuffer::getMemBufferCopy(object, "dfa_kernels")))
    return error;
  return jit;
}

llvm::Expected<std::unique_ptr<HostKernels>>
dfa::loadHostKernels(StringRef object, ArrayRef<std::string> names) {
  auto host = detectHost();
  if (!host)
    return host.takeError();
  auto jit = link(std::move(*host), object);
  if (!jit)
    return jit.takeError();
  std::unique_ptr<HostKernels> kernels(new HostKernels());
  for (const std::string &name : names) {
    auto address = (*jit)->lookup(name);
    if (!address)
      return address.takeError();
    kernels->functions[name] = address->toPtr<void *>();
  }
  kernels->engine->jit = std::move(*jit);
  kernels->engine->object = object.str();
  return kernels;
}

FailureOr<std::unique_ptr<HostKernels>>
dfa::compileForHost(ModuleOp module, const HostOptions &options) {
  allowTranslation(module.getContext());
  SmallVector<std::string> names;
  OwningOpRef<ModuleOp> lowered = lower(module, options, names);
  if (!lowered)
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(*lowered, context, "dfa_kernels");
  if (!code)
    return module.emitError("could not translate kernels to LLVM IR");
  auto host = detectHost();
  if (!host)
    return report(module, host.takeError(), "find out about this CPU");
  llvm::Expected<std::string> object = compileObject(*host, *code);
  if (!object)
    return report(module, object.takeError(), "generate code for this CPU");
  auto kernels = loadHostKernels(
      *object, std::vector<std::string>(names.begin(), names.end()));
  if (!kernels)
    return report(module, kernels.takeError(), "link kernels");
  return std::move(*kernels);
}
