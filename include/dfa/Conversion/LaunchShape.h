// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a device kernel must be launched: what the program's record of a kernel
// says besides its name.

#ifndef DFA_CONVERSION_LAUNCHSHAPE_H
#define DFA_CONVERSION_LAUNCHSHAPE_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::dfa {

struct LaunchShape {
  /// Threads of a block.
  unsigned block;
  /// Elements a thread handles: a part of a chunk is block x vector elements.
  unsigned vector;
};

/// The shape of a kernel op (level C), given the options of
/// dfa-convert-kernels-to-gpu.
LaunchShape getLaunchShape(Operation *kernel, unsigned vectorWidth = 4,
                           unsigned block = 128);

} // namespace mlir::dfa

#endif // DFA_CONVERSION_LAUNCHSHAPE_H
