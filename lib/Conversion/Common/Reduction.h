// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How two accumulators become one, on scalars and on vectors, and the fixed
// tree over the lanes of a vector. The order is promised by dfa-rt/abi.h.

#ifndef DFA_LIB_CONVERSION_COMMON_REDUCTION_H
#define DFA_LIB_CONVERSION_COMMON_REDUCTION_H

#include "Emitter.h"
#include "dfa/IR/Dfa.h"

namespace mlir::dfa {

/// Kinds of all accumulators in a kernel's list.
SmallVector<Combine> getCombines(ArrayAttr list);

/// What an absent element counts as: +0. Accumulators of kind `max` are
/// magnitudes or flags, never negative.
Value emitIdentity(Emitter &emitter, unsigned width = 1);

/// a (+) b, elementwise. The maximum is nan if either is.
Value emitCombine(Emitter &emitter, Combine kind, Value a, Value b);

/// Adjacent pairs of the lanes of `low`, then of `high`: as many lanes as each
/// has. Scalars are a pair of their own.
Value emitPairs(Emitter &emitter, Combine kind, Value low, Value high);

/// The tree of adjacent pairs over the lanes of `vector` (or the scalar).
Value emitLaneTree(Emitter &emitter, Combine kind, Value vector);

} // namespace mlir::dfa

#endif // DFA_LIB_CONVERSION_COMMON_REDUCTION_H
