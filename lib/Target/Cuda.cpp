// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module of kernels to one image.

#include "dfa/Target/Cuda.h"
#include "Extract.h"
#include "Serialize.h"
#include "dfa/Pipelines/Backend.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::dfa;

FailureOr<CudaImage> dfa::compileToCuda(ModuleOp module,
                                        const CudaOptions &options) {
  if (failed(checkChip(module, options)))
    return failure();
  DialectRegistry registry;
  registerDfaBackendTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);

  SmallVector<std::string> names;
  OwningOpRef<ModuleOp> kernels = extractKernels(module, names);
  if (names.empty())
    return module.emitError("expects a kernel, but the module has none");
  CudaPipelineOptions pipeline;
  pipeline.vectorWidth = options.vectorWidth;
  pipeline.block = options.block;
  pipeline.unroll = options.unroll;
  pipeline.maxRegisters = options.maxRegisters;
  PassManager pm(module.getContext());
  buildKernelsToNvvmPipeline(pm, pipeline);
  if (failed(pm.run(*kernels)))
    return failure();
  for (gpu::GPUModuleOp target : kernels->getOps<gpu::GPUModuleOp>())
    return serializeGpuModule(target, options);
  return module.emitError("expects a GPU module after lowering");
}
