// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emission of the bodies of host kernels, one function a kind of kernel.

#ifndef DFA_LIB_CONVERSION_KERNELSTOLOOPS_HOSTKERNELS_H
#define DFA_LIB_CONVERSION_KERNELSTOLOOPS_HOSTKERNELS_H

#include "../Common/Reduction.h"
#include "../Common/Signature.h"

namespace mlir::dfa {

/// Each writes the whole body of a function with the given arguments, apart
/// from the return. `width`: lanes of a vector, 1 for scalar loops.
LogicalResult emitHostElementKernel(Emitter &emitter, KernelOp kernel,
                                    const KernelLayout &layout,
                                    ValueRange arguments, unsigned width);
LogicalResult emitHostControlKernel(Emitter &emitter, ControlKernelOp kernel,
                                    ValueRange arguments, unsigned width);
LogicalResult emitHostSegmentKernel(Emitter &emitter, SegmentKernelOp kernel,
                                    const KernelLayout &layout,
                                    ValueRange arguments, unsigned width);

/// Sets `columns` accumulators in memory to the identity.
void emitClearColumns(Emitter &emitter, Value buffer, int64_t columns,
                      unsigned width);

/// The tree of adjacent pairs over `columns` accumulators in memory, which it
/// overwrites. `columns` is a power of two.
Value emitColumnTree(Emitter &emitter, Combine kind, Value buffer,
                     int64_t columns, unsigned width);

/// Combines `count` consecutive f64 as a matrix of `columns` columns. `buffer`
/// is scratch for one f64 a column.
Value emitMatrix(Emitter &emitter, Combine kind, Value source, Value count,
                 Value buffer, int64_t columns, unsigned width);

} // namespace mlir::dfa

#endif // DFA_LIB_CONVERSION_KERNELSTOLOOPS_HOSTKERNELS_H
