// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies the scalar regions of kernels into loops: as they are, or with one
// vector in place of each scalar; loads and stores of tables become memory
// accesses.

#ifndef DFA_LIB_CONVERSION_COMMON_BODYEMITTER_H
#define DFA_LIB_CONVERSION_COMMON_BODYEMITTER_H

#include "Emitter.h"
#include "KernelLayout.h"

namespace mlir::dfa {

/// Addresses of the table rows of the current segment. A null value means
/// that the kind of kernel has no such table.
struct TableRows {
  Value control;
  Value state;
  Value derived;
  Value hyper;
  Value groupStats;
};

/// Copies the region's block before the emitter's insertion point. With
/// `width` > 1 every value is a vector of that width; arguments must be too.
/// Returns the yielded values. Fails, with a diagnostic at the op, where an op
/// has no lowering with the same bits on every target.
FailureOr<SmallVector<Value>> emitRegion(Emitter &emitter, Region &region,
                                         ValueRange arguments,
                                         const TableRows &rows,
                                         unsigned width = 1);

/// `type`, or a vector of it.
Type getWideType(Type type, unsigned width);

/// A vector with `value` in each lane, or the value.
Value widenValue(Emitter &emitter, Value value, unsigned width);

} // namespace mlir::dfa

#endif // DFA_LIB_CONVERSION_COMMON_BODYEMITTER_H
