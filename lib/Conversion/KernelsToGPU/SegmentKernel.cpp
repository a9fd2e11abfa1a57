// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segment kernels on the device: a thread a segment, or a warp a segment where
// the segment's atoms are combined.

#include "DeviceKernels.h"
#include "dfa-rt/abi.h"

using namespace mlir;
using namespace mlir::dfa;

/// One thread a segment.
static LogicalResult emitThreads(Emitter &e, SegmentKernelOp kernel,
                                 const KernelLayout &layout,
                                 const SegmentArguments &args) {
  Value index =
      e.add(args.segmentBegin,
            e.add(e.mul(emitBlock(e), e.constI64(DFA_RT_SEGMENT_BLOCK)),
                  emitThread(e)));
  LogicalResult result = success();
  e.ifTrue(e.lessThan(index, args.segmentEnd), [&] {
    SegmentRow row = loadSegment(e, layout, args, index);
    result = emitRegion(e, kernel.getBody(), {}, row.rows);
  });
  return result;
}

/// One accumulator over a segment's atoms; a lane is a column.
static Value combineAtoms(Emitter &e, Combine kind, Value source, Value count,
                          Value lane) {
  static_assert(DFA_RT_SEGMENT_COMBINE_COLUMNS == kWarp, "a lane a column");
  Value column = e.loop(lane, count, e.constI64(kWarp), emitIdentity(e),
                        [&](Value i, ValueRange sum) -> Emitter::Values {
                          Value next =
                              e.loadF64(e.element(source, i, sizeof(double)));
                          return {emitCombine(e, kind, sum[0], next)};
                        })
                     .front();
  return emitWarpTree(e, kind, column);
}

/// One warp a segment.
static LogicalResult emitWarps(Emitter &e, SegmentKernelOp kernel,
                               const KernelLayout &layout,
                               const SegmentArguments &args) {
  SmallVector<Combine> kinds = getCombines(kernel.getAccumulators());
  Value thread = emitThread(e);
  Value lane = e.bitAnd(thread, e.constI64(kWarp - 1));
  Value warp =
      e.add(e.mul(emitBlock(e), e.constI64(DFA_RT_SEGMENT_BLOCK / kWarp)),
            e.shiftRight(thread, e.constI64(llvm::Log2_32(kWarp))));
  Value index = e.add(args.segmentBegin, warp);
  LogicalResult result = success();
  e.ifTrue(e.lessThan(index, args.segmentEnd), [&] {
    SegmentRow row = loadSegment(e, layout, args, index);
    SegmentModes modes = getSegmentModes(e, args);
    Value leads = e.compare(arith::CmpIPredicate::eq, lane, e.constI64(0));
    // The mode depends on arguments only, so shuffles inside have all lanes.
    SmallVector<Type> types(kinds.size(), e.getF64Type());
    Emitter::Values sums = e.ifElse(
        modes.isGathered, types,
        [&] {
          Emitter::Values all;
          for (auto [i, kind] : llvm::enumerate(kinds))
            all.push_back(
                combineSegmentStats(e, kind, args, index, i, kinds.size()));
          return all;
        },
        [&] {
          Emitter::Values own;
          for (auto [i, kind] : llvm::enumerate(kinds)) {
            Value partials =
                getPartialRow(e, args.partials, args.partialStride, i);
            Value first = e.element(partials, row.firstAtom, sizeof(double));
            own.push_back(combineAtoms(e, kind, first, row.atoms, lane));
          }
          e.ifTrue(leads, [&] { emitSegmentStats(e, args, index, own); });
          return own;
        });
    e.ifTrue(leads, [&] {
      e.ifTrue(
          modes.isLocal, [] {},
          [&] { result = emitRegion(e, kernel.getBody(), sums, row.rows); });
    });
  });
  return result;
}

LogicalResult dfa::emitDeviceSegmentKernel(Emitter &emitter,
                                           SegmentKernelOp kernel,
                                           const KernelLayout &layout,
                                           ValueRange arguments) {
  SegmentArguments args = bindSegmentArguments(arguments);
  if (kernel.getAccumulators().empty())
    return emitThreads(emitter, kernel, layout, args);
  return emitWarps(emitter, kernel, layout, args);
}
