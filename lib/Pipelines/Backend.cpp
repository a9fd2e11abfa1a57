// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The back halves of the compiler, as lists of passes.

#include "dfa/Pipelines/Backend.h"
#include "dfa/Conversion/Passes.h"
#include "dfa/Target/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::dfa;

static void cleanUp(OpPassManager &pm) {
  // Blocks keep their arguments: merging them costs time and wins nothing,
  // since LLVM does the same again.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  pm.addPass(createCanonicalizerPass(config));
  pm.addPass(createCSEPass());
}

/// Ends a phase below level C.
static void verifyPhase(OpPassManager &pm, StringRef phase) {
  DfaVerifyLoweredOptions options;
  options.phase = phase.str();
  pm.addPass(createDfaVerifyLowered(options));
}

void dfa::buildKernelsToCpuPipeline(OpPassManager &pm,
                                    const CpuPipelineOptions &options) {
  DfaConvertKernelsToLoopsOptions loops;
  loops.vectorWidth = options.vectorWidth;
  pm.addPass(createDfaConvertKernelsToLoops(loops));
  DfaExpandScalarOpsOptions expand;
  expand.expandBF16 = true;
  pm.addPass(createDfaExpandScalarOps(expand));
  cleanUp(pm);
  verifyPhase(pm, "loops");
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  verifyPhase(pm, "llvm");
}

void dfa::buildKernelsToNvvmPipeline(OpPassManager &pm,
                                     const CudaPipelineOptions &options) {
  DfaConvertKernelsToGPUOptions gpu;
  gpu.vectorWidth = options.vectorWidth;
  gpu.block = options.block;
  gpu.unroll = options.unroll;
  gpu.maxRegisters = options.maxRegisters;
  pm.addPass(createDfaConvertKernelsToGPU(gpu));
  pm.addPass(createDfaExpandScalarOps());
  cleanUp(pm);
  verifyPhase(pm, "loops");
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  ConvertGpuOpsToNVVMOpsOptions nvvm;
  nvvm.indexBitwidth = 64;
  pm.nest<gpu::GPUModuleOp>().addPass(createConvertGpuOpsToNVVMOps(nvvm));
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  verifyPhase(pm, "llvm");
}

void dfa::buildKernelsToCudaPipeline(OpPassManager &pm,
                                     const CudaPipelineOptions &options) {
  buildKernelsToNvvmPipeline(pm, options);
  DfaSerializeKernelsOptions serialize;
  serialize.chip = options.chip;
  serialize.format = options.format;
  serialize.ptxas = options.ptxas;
  pm.addPass(createDfaSerializeKernels(serialize));
}

void dfa::registerDfaBackendPipelines() {
  PassPipelineRegistration<CpuPipelineOptions>(
      "dfa-kernels-to-cpu", "Level C kernels to the LLVM dialect of the host",
      buildKernelsToCpuPipeline);
  PassPipelineRegistration<CudaPipelineOptions>(
      "dfa-kernels-to-cuda", "Level C kernels to a GPU binary",
      buildKernelsToCudaPipeline);
}

void dfa::registerDfaBackendTranslations(DialectRegistry &registry) {
  registry.insert<gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}
