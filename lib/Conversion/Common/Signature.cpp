// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel arguments and the rows behind them.

#include "Signature.h"
#include "dfa-rt/abi.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

/// One letter an argument: P pointer written, R pointer read only, L i64,
/// I i32.
constexpr StringLiteral elementLetters = "PRRRRLLIPL";
constexpr StringLiteral controlLetters = "PRLLRPLPRLR";
constexpr StringLiteral segmentLetters = "PRRPPLLRLPLR";

} // namespace

static StringRef getLetters(Operation *kernel) {
  if (isa<KernelOp>(kernel))
    return elementLetters;
  if (isa<ControlKernelOp>(kernel))
    return controlLetters;
  return segmentLetters;
}

SmallVector<Type> dfa::getArgumentTypes(Operation *kernel) {
  MLIRContext *context = kernel->getContext();
  SmallVector<Type> types;
  for (char letter : getLetters(kernel)) {
    if (letter == 'L')
      types.push_back(IntegerType::get(context, 64));
    else if (letter == 'I')
      types.push_back(IntegerType::get(context, 32));
    else
      types.push_back(LLVM::LLVMPointerType::get(context));
  }
  return types;
}

bool dfa::isReadOnlyArgument(Operation *kernel, unsigned index) {
  return getLetters(kernel)[index] == 'R';
}

ElementArguments dfa::bindElementArguments(ValueRange a) {
  return {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]};
}

ControlArguments dfa::bindControlArguments(ValueRange a) {
  return {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]};
}

SegmentArguments dfa::bindSegmentArguments(ValueRange a) {
  return {a[0], a[1], a[2], a[3], a[4],  a[5],
          a[6], a[7], a[8], a[9], a[10], a[11]};
}

int64_t dfa::getElementBytes(KernelArrayAttr array) {
  return array.getType().getIntOrFloatBitWidth() / 8;
}

ChunkRow dfa::loadChunk(Emitter &e, KernelOp kernel, const KernelLayout &layout,
                        const ElementArguments &args, Value index) {
  ChunkRow row;
  Value chunk = e.element(args.chunks, index, sizeof(dfa_rt_chunk_t));
  row.offset = e.loadI64(e.at(chunk, offsetof(dfa_rt_chunk_t, offset)));
  row.length = e.loadU32(e.at(chunk, offsetof(dfa_rt_chunk_t, length)));
  Value index64 = e.loadU32(e.at(chunk, offsetof(dfa_rt_chunk_t, segment)));
  Value segment = e.element(args.segments, index64, layout.segmentRowBytes);
  row.flags = e.load(e.getI32Type(),
                     e.at(segment, offsetof(dfa_rt_segment_t, flags)), 4);
  row.rows.control = args.control;
  row.rows.state =
      e.element(args.state, index64, sizeof(dfa_rt_segment_state_t));
  row.rows.derived =
      e.element(args.derived, index64, sizeof(float) * layout.derivedColumns);
  for (auto [i, attr] : llvm::enumerate(kernel.getArrays())) {
    Value base = e.loadI64(e.at(segment, layout.getBaseOffset(i)));
    Value pointer = LLVM::IntToPtrOp::create(e, e.getPointerType(), base);
    row.arrays.push_back(e.element(
        pointer, row.offset, getElementBytes(cast<KernelArrayAttr>(attr))));
  }
  return row;
}

SegmentRow dfa::loadSegment(Emitter &e, const KernelLayout &layout,
                            const SegmentArguments &args, Value index) {
  SegmentRow row;
  Value segment = e.element(args.segments, index, layout.segmentRowBytes);
  row.firstAtom =
      e.loadI64(e.at(segment, offsetof(dfa_rt_segment_t, first_atom)));
  row.atoms = e.loadI64(e.at(segment, offsetof(dfa_rt_segment_t, atoms)));
  Value group = e.loadU32(e.at(segment, offsetof(dfa_rt_segment_t, group)));
  row.rows.control = args.control;
  row.rows.state = e.element(args.state, index, sizeof(dfa_rt_segment_state_t));
  row.rows.derived =
      e.element(args.derived, index, sizeof(float) * layout.derivedColumns);
  row.rows.hyper =
      e.element(args.groups, group, sizeof(double) * layout.hyperColumns);
  row.rows.groupStats =
      e.element(args.groupStats, group, sizeof(double) * layout.groupStats);
  return row;
}

Value dfa::getPartialRow(Emitter &e, Value partials, Value stride,
                         unsigned acc) {
  if (acc == 0)
    return partials;
  return e.element(partials, e.mul(stride, e.constI64(acc)), sizeof(double));
}

SegmentModes dfa::getSegmentModes(Emitter &e, const SegmentArguments &args) {
  return {e.isNull(args.partials), e.isNull(args.derived)};
}

Value dfa::combineSegmentStats(Emitter &e, Combine kind,
                               const SegmentArguments &args, Value index,
                               unsigned acc, unsigned accs) {
  Value column = e.add(e.mul(index, e.constI64(accs)), e.constI64(acc));
  return e
      .loop(e.constI64(0), args.partialStride, e.constI64(1), emitIdentity(e),
            [&](Value rank, ValueRange sum) -> Emitter::Values {
              Value at = e.add(e.mul(rank, args.segmentStatsStride), column);
              Value next =
                  e.loadF64(e.element(args.segmentStats, at, sizeof(double)));
              return {emitCombine(e, kind, sum[0], next)};
            })
      .front();
}

void dfa::emitSegmentStats(Emitter &e, const SegmentArguments &args,
                           Value index, ValueRange sums) {
  if (sums.empty())
    return;
  Value wanted = arith::XOrIOp::create(e, e.isNull(args.segmentStats),
                                       arith::ConstantIntOp::create(e, 1, 1));
  e.ifTrue(wanted, [&] {
    Value row =
        e.element(args.segmentStats, e.mul(index, args.segmentStatsStride),
                  sizeof(double));
    for (auto [i, sum] : llvm::enumerate(sums))
      e.store(sum, e.at(row, sizeof(double) * i), 8);
  });
}
