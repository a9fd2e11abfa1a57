// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emission of the bodies of GPU kernels, one function a kind of kernel.

#ifndef DFA_LIB_CONVERSION_KERNELSTOGPU_DEVICEKERNELS_H
#define DFA_LIB_CONVERSION_KERNELSTOGPU_DEVICEKERNELS_H

#include "../Common/Reduction.h"
#include "../Common/Signature.h"

namespace mlir::dfa {

/// Threads that run in step and can exchange registers.
inline constexpr unsigned kWarp = 32;

/// Shape of the generated kernels.
struct DeviceShape {
  /// Elements a thread handles at once in element kernels.
  unsigned vectorWidth;
  /// Threads of a block.
  unsigned block;
  /// Vector loads in flight in a thread that reduces.
  unsigned unroll;
};

/// Each writes the whole body of a kernel with the given arguments (pointers
/// into global memory), apart from the return.
LogicalResult emitDeviceElementKernel(Emitter &emitter, KernelOp kernel,
                                      const KernelLayout &layout,
                                      ValueRange arguments,
                                      const DeviceShape &shape);
LogicalResult emitDeviceAtomKernel(Emitter &emitter, KernelOp kernel,
                                   const KernelLayout &layout,
                                   ValueRange arguments,
                                   const DeviceShape &shape);
LogicalResult emitDeviceControlKernel(Emitter &emitter, ControlKernelOp kernel,
                                      ValueRange arguments, Value shared);
LogicalResult emitDeviceSegmentKernel(Emitter &emitter, SegmentKernelOp kernel,
                                      const KernelLayout &layout,
                                      ValueRange arguments);

/// Index of the thread in its block, and of the block, as i64.
Value emitThread(Emitter &emitter);
Value emitBlock(Emitter &emitter);

/// The tree of adjacent pairs over the lanes of a warp; only lane 0 has the
/// result. All lanes must call it.
Value emitWarpTree(Emitter &emitter, Combine kind, Value value);

/// Where `lanes` elements of one array at `index` are, and how to touch them.
struct ArrayPlace {
  Value address;
  Type type;
  unsigned alignment;
};
ArrayPlace getPlace(Emitter &emitter, KernelArrayAttr array, Value base,
                    Value index, unsigned lanes, unsigned alignment);

/// Elements of all arrays that are read, at one place.
SmallVector<Value> loadElements(Emitter &emitter, KernelOp kernel,
                                const ChunkRow &chunk, Value index,
                                unsigned lanes, unsigned maxAlignment);

/// Runs the body on loaded elements, stores what is written, and returns the
/// accumulators' contributions.
FailureOr<SmallVector<Value>>
computeElements(Emitter &emitter, KernelOp kernel, const ChunkRow &chunk,
                ValueRange uniform, ValueRange elements, Value index,
                unsigned lanes, unsigned maxAlignment);

} // namespace mlir::dfa

#endif // DFA_LIB_CONVERSION_KERNELSTOGPU_DEVICEKERNELS_H
