// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The back halves of the compiler: from level C kernels to the LLVM dialect for
// the host, and to a GPU binary. The front half puts kernels into the module.

#ifndef DFA_PIPELINES_BACKEND_H
#define DFA_PIPELINES_BACKEND_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::dfa {

/// Options of --dfa-kernels-to-cpu.
struct CpuPipelineOptions : public PassPipelineOptions<CpuPipelineOptions> {
  Option<unsigned> vectorWidth{
      *this, "vector-width",
      llvm::cl::desc("Elements of a vector: a power of two up to 32"),
      llvm::cl::init(16)};
};

/// Options of --dfa-kernels-to-cuda.
struct CudaPipelineOptions : public PassPipelineOptions<CudaPipelineOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("GPU to compile for, such as sm_90"),
                           llvm::cl::init("sm_90")};
  Option<std::string> format{*this, "format",
                             llvm::cl::desc("ptx, cubin or fatbin"),
                             llvm::cl::init("cubin")};
  Option<std::string> ptxas{
      *this, "ptxas",
      llvm::cl::desc("Assembler to use; also DFA_PTXAS in the environment"),
      llvm::cl::init("")};
  Option<unsigned> vectorWidth{
      *this, "vector-width",
      llvm::cl::desc("Elements a thread handles in element kernels"),
      llvm::cl::init(4)};
  Option<unsigned> block{
      *this, "block", llvm::cl::desc("Threads of a block in element kernels"),
      llvm::cl::init(128)};
  Option<unsigned> unroll{
      *this, "unroll",
      llvm::cl::desc("Vector loads in flight in a thread that reduces"),
      llvm::cl::init(4)};
  Option<unsigned> maxRegisters{
      *this, "max-registers",
      llvm::cl::desc("Most registers of a thread; 0 lets the assembler choose"),
      llvm::cl::init(0)};
};

/// Kernels to functions in the LLVM dialect. Other ops stay as they are.
void buildKernelsToCpuPipeline(OpPassManager &pm,
                               const CpuPipelineOptions &options);

/// Kernels to a GPU module in the NVVM dialect: all of the next but assembly.
void buildKernelsToNvvmPipeline(OpPassManager &pm,
                                const CudaPipelineOptions &options);

/// Kernels to one `gpu.binary`.
void buildKernelsToCudaPipeline(OpPassManager &pm,
                                const CudaPipelineOptions &options);

/// Makes --dfa-kernels-to-cpu and --dfa-kernels-to-cuda known to the parser of
/// pipelines.
void registerDfaBackendPipelines();

/// Lets modules be translated to LLVM IR; to be called before a context is
/// made from the registry.
void registerDfaBackendTranslations(DialectRegistry &registry);

} // namespace mlir::dfa

#endif // DFA_PIPELINES_BACKEND_H
