// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of compiled kernels, by name, and the rows that element and
// segment kernels find through them. The order is that of dfa-rt/abi.h.

#ifndef DFA_LIB_CONVERSION_COMMON_SIGNATURE_H
#define DFA_LIB_CONVERSION_COMMON_SIGNATURE_H

#include "BodyEmitter.h"
#include "Emitter.h"
#include "KernelLayout.h"
#include "Reduction.h"

namespace mlir::dfa {

/// void k(...) of an element kernel.
struct ElementArguments {
  Value control, segments, state, derived, chunks, chunkBegin, chunkEnd,
      partsLog2, partials, partialStride;
};

/// void k(...) of a control kernel.
struct ControlArguments {
  Value control, partials, partialStride, atoms, groups, groupStats, groupCount,
      localSums, gathered, ranks, atomGroups;
};

/// void k(...) of a segment kernel.
struct SegmentArguments {
  Value control, groups, segments, state, derived, segmentBegin, segmentEnd,
      partials, partialStride, segmentStats, segmentStatsStride, groupStats;
};

/// Argument types of a kernel op's function; pointers are generic.
SmallVector<Type> getArgumentTypes(Operation *kernel);

/// Names of pointer arguments that the kernel never writes through.
bool isReadOnlyArgument(Operation *kernel, unsigned index);

/// Binds a function's arguments (pointers in any address space).
ElementArguments bindElementArguments(ValueRange arguments);
ControlArguments bindControlArguments(ValueRange arguments);
SegmentArguments bindSegmentArguments(ValueRange arguments);

/// A chunk or atom and what is found through it.
struct ChunkRow {
  Value offset;
  Value length;
  Value flags;
  TableRows rows;
  /// Address of the chunk's first element, for each array of the kernel.
  SmallVector<Value> arrays;
};

/// Loads row `index` of the chunk table and the segment row behind it.
ChunkRow loadChunk(Emitter &emitter, KernelOp kernel,
                   const KernelLayout &layout, const ElementArguments &args,
                   Value index);

/// Rows of segment `index`, and where its atoms are.
struct SegmentRow {
  TableRows rows;
  Value firstAtom;
  Value atoms;
};
SegmentRow loadSegment(Emitter &emitter, const KernelLayout &layout,
                       const SegmentArguments &args, Value index);

/// Whether a segment kernel takes the statistics of all ranks instead of this
/// rank's atoms, and whether it only makes this rank's.
struct SegmentModes {
  Value isGathered, isLocal;
};
SegmentModes getSegmentModes(Emitter &emitter, const SegmentArguments &args);

/// Accumulator `acc` of `accs` of segment `index`, of all ranks in rank order.
Value combineSegmentStats(Emitter &emitter, Combine kind,
                          const SegmentArguments &args, Value index,
                          unsigned acc, unsigned accs);

/// Keeps a segment's combined accumulators, where the caller wants them.
void emitSegmentStats(Emitter &emitter, const SegmentArguments &args,
                      Value index, ValueRange sums);

/// Bytes of one stored element.
int64_t getElementBytes(KernelArrayAttr array);

/// The accumulator row `acc` of a table of partials.
Value getPartialRow(Emitter &emitter, Value partials, Value stride,
                    unsigned acc);

} // namespace mlir::dfa

#endif // DFA_LIB_CONVERSION_COMMON_SIGNATURE_H
