// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segment kernels on the host: a loop over segments.

#include "HostKernels.h"
#include "dfa-rt/abi.h"

using namespace mlir;
using namespace mlir::dfa;

LogicalResult dfa::emitHostSegmentKernel(Emitter &e, SegmentKernelOp kernel,
                                         const KernelLayout &layout,
                                         ValueRange arguments, unsigned width) {
  SegmentArguments args = bindSegmentArguments(arguments);
  SmallVector<Combine> kinds = getCombines(kernel.getAccumulators());
  constexpr int64_t columns = DFA_RT_SEGMENT_COMBINE_COLUMNS;
  unsigned lanes = std::min<unsigned>(width, columns);
  Value buffer;
  if (!kinds.empty())
    buffer = e.allocate(columns);
  SegmentModes modes = getSegmentModes(e, args);
  LogicalResult result = success();
  e.loop(args.segmentBegin, args.segmentEnd, e.constI64(1), [&](Value index) {
    SegmentRow row = loadSegment(e, layout, args, index);
    SmallVector<Value> sums;
    auto combineAtoms = [&] {
      Emitter::Values own;
      for (auto [i, kind] : llvm::enumerate(kinds)) {
        Value partials = getPartialRow(e, args.partials, args.partialStride, i);
        Value first = e.element(partials, row.firstAtom, sizeof(double));
        own.push_back(
            emitMatrix(e, kind, first, row.atoms, buffer, columns, lanes));
      }
      emitSegmentStats(e, args, index, own);
      return own;
    };
    auto combineRanks = [&] {
      Emitter::Values all;
      for (auto [i, kind] : llvm::enumerate(kinds))
        all.push_back(
            combineSegmentStats(e, kind, args, index, i, kinds.size()));
      return all;
    };
    if (kinds.empty()) {
      result = emitRegion(e, kernel.getBody(), sums, row.rows);
      return;
    }
    SmallVector<Type> types(kinds.size(), e.getF64Type());
    sums = e.ifElse(modes.isGathered, types, combineRanks, combineAtoms);
    e.ifTrue(
        modes.isLocal, [] {},
        [&] { result = emitRegion(e, kernel.getBody(), sums, row.rows); });
  });
  return result;
}
