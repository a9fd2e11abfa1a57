// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The front half of the compiler, as a list of passes.

#include "dfa/Pipelines/Frontend.h"
#include "dfa/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::dfa;

void mlir::dfa::buildToKernelsPipeline(OpPassManager &pm) {
  // Phase 1: what the user wrote.
  pm.addPass(createDfaVerifyStep());
  pm.addPass(createDfaAssignLayout());
  // Phase 2: one kind of update, one factor.
  pm.addPass(createDfaGeneralizeRules());
  pm.addPass(createDfaDeferFactors());
  // Phase 3: kernels and the program.
  pm.addPass(createDfaFormKernels());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createDfaVerifyKernels());
}

namespace {

/// None so far; but without such a struct an unknown option is an error without
/// a message.
struct KernelsPipelineOptions : PassPipelineOptions<KernelsPipelineOptions> {};

} // namespace

void mlir::dfa::registerDfaPipelines() {
  PassPipelineRegistration<KernelsPipelineOptions>(
      "dfa-to-kernels", "Levels A and B to fused kernels and the program",
      [](OpPassManager &pm, const KernelsPipelineOptions &) {
        buildToKernelsPipeline(pm);
      });
  PassPipelineRegistration<CpuPipelineOptions>(
      "dfa-to-cpu", "All the way to the LLVM dialect for the host",
      [](OpPassManager &pm, const CpuPipelineOptions &options) {
        buildToKernelsPipeline(pm);
        buildKernelsToCpuPipeline(pm, options);
      });
  PassPipelineRegistration<CudaPipelineOptions>(
      "dfa-to-cuda", "All the way to a GPU binary",
      [](OpPassManager &pm, const CudaPipelineOptions &options) {
        buildToKernelsPipeline(pm);
        buildKernelsToCudaPipeline(pm, options);
      });
}
