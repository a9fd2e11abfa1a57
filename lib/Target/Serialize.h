// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a GPU module in the NVVM dialect to PTX and machine code.

#ifndef DFA_LIB_TARGET_SERIALIZE_H
#define DFA_LIB_TARGET_SERIALIZE_H

#include "dfa/Target/Cuda.h"

namespace mlir::dfa {

/// Emits a diagnostic at `op` if the chip is not one we know; names the
/// assembler that would be used.
LogicalResult checkChip(Operation *op, const CudaOptions &options);

/// PTX text of a `gpu.module` that holds LLVM and NVVM ops only. The chip must
/// have been checked.
FailureOr<std::string> emitPtx(Operation *gpuModule, StringRef chip);

/// PTX, and what the options ask to be made of it.
FailureOr<CudaImage> serializeGpuModule(Operation *gpuModule,
                                        const CudaOptions &options);

} // namespace mlir::dfa

#endif // DFA_LIB_TARGET_SERIALIZE_H
