// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel must know of its program: where an array's base address is in
// a segment row, and the strides of the tables.

#ifndef DFA_LIB_CONVERSION_COMMON_KERNELLAYOUT_H
#define DFA_LIB_CONVERSION_COMMON_KERNELLAYOUT_H

#include "dfa/IR/Dfa.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::dfa {

/// Rows of the tables that a kernel reads. In elements of the table, except
/// for segment rows.
struct KernelLayout {
  /// Position of each array of the kernel in the class's list.
  SmallVector<int64_t> arrayIndices;
  int64_t segmentRowBytes = 0;
  int64_t hyperColumns = 0;
  int64_t derivedColumns = 0;
  int64_t groupStats = 0;

  /// Offset of the base address of array `i` of the kernel in a segment row.
  int64_t getBaseOffset(unsigned i) const;
};

/// Takes the numbers from the module's `dfa.program`. Without a program they
/// are the kernel's own: its arrays in order, and as many columns as it uses.
FailureOr<KernelLayout> getKernelLayout(Operation *kernel);

} // namespace mlir::dfa

#endif // DFA_LIB_CONVERSION_COMMON_KERNELLAYOUT_H
