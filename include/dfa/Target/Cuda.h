// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as an image for a GPU: PTX text, machine code, or both.

#ifndef DFA_TARGET_CUDA_H
#define DFA_TARGET_CUDA_H

#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::dfa {

enum class CudaFormat { Ptx, Cubin, Fatbin };

/// "ptx", "cubin" or "fatbin"; nothing for other words.
std::optional<CudaFormat> parseCudaFormat(StringRef text);

struct CudaOptions {
  std::string chip = "sm_90";
  CudaFormat format = CudaFormat::Cubin;
  /// Assembler to use; empty: see findPtxas().
  std::string ptxas;
  /// Shape of the kernels: see dfa-convert-kernels-to-gpu.
  unsigned vectorWidth = 4;
  unsigned block = 128;
  unsigned unroll = 4;
  unsigned maxRegisters = 0;
};

/// What a kernel takes of a processor, as the assembler reports it.
struct KernelResources {
  std::string name;
  unsigned registers = 0;
  /// Bytes of a thread's stack, spilled registers among them.
  unsigned stackBytes = 0;
  unsigned spillBytes = 0;
};

/// A loadable image. Kernels have the names of their ops.
struct CudaImage {
  std::string bytes;
  /// The text that was assembled.
  std::string ptx;
  /// One entry a kernel; empty for PTX.
  std::vector<KernelResources> resources;
};

/// Reads what `ptxas -v` printed.
std::vector<KernelResources> parseResources(StringRef log);

/// Compiles every kernel of a module (level C), which it leaves unchanged.
/// Emits a diagnostic on failure.
FailureOr<CudaImage> compileToCuda(ModuleOp module,
                                   const CudaOptions &options = {});

} // namespace mlir::dfa

#endif // DFA_TARGET_CUDA_H
