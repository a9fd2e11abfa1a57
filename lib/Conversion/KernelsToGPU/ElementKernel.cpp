// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element kernels without accumulators: a warp handles one part of a chunk, one
// vector a lane, and ends.

#include "DeviceKernels.h"
#include "dfa-rt/abi.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

class DeviceElementKernel {
public:
  DeviceElementKernel(Emitter &e, KernelOp kernel, const KernelLayout &layout,
                      ValueRange arguments, const DeviceShape &shape)
      : e(e), kernel(kernel), layout(layout),
        args(bindElementArguments(arguments)), shape(shape),
        partElements(int64_t(kWarp) * shape.vectorWidth) {}

  LogicalResult emit();

private:
  LogicalResult emitPart(const ChunkRow &chunk, Value start);
  LogicalResult emitVectors(const ChunkRow &chunk, ValueRange uniform,
                            Value start);
  LogicalResult emitScalars(const ChunkRow &chunk, ValueRange uniform,
                            Value start);
  unsigned getMaxAlignment();

  Emitter &e;
  KernelOp kernel;
  const KernelLayout &layout;
  ElementArguments args;
  const DeviceShape &shape;
  /// Elements of a part.
  int64_t partElements;
  Value lane;
};

} // namespace

LogicalResult DeviceElementKernel::emit() {
  Value thread = emitThread(e);
  lane = e.bitAnd(thread, e.constI64(kWarp - 1));
  Value warp = e.add(e.mul(emitBlock(e), e.constI64(shape.block / kWarp)),
                     e.shiftRight(thread, e.constI64(llvm::Log2_32(kWarp))));
  Value log2 = e.widen(args.partsLog2);
  Value one = e.constI64(1);
  Value index = e.add(args.chunkBegin, e.shiftRight(warp, log2));
  Value part = e.bitAnd(warp, e.sub(e.shiftLeft(one, log2), one));
  LogicalResult result = success();
  // The last block may have warps too many.
  e.ifTrue(e.lessThan(index, args.chunkEnd), [&] {
    ChunkRow chunk = loadChunk(e, kernel, layout, args, index);
    Value start = e.mul(part, e.constI64(partElements));
    e.ifTrue(e.lessThan(start, chunk.length),
             [&] { result = emitPart(chunk, start); });
  });
  return result;
}

LogicalResult DeviceElementKernel::emitPart(const ChunkRow &chunk,
                                            Value start) {
  FailureOr<SmallVector<Value>> uniform =
      emitRegion(e, kernel.getUniform(), {}, chunk.rows);
  if (failed(uniform))
    return failure();
  ArrayRef<Value> scalars = ArrayRef<Value>(*uniform).drop_front();
  LogicalResult result = success();
  e.ifTrue(uniform->front(), [&] {
    Value end = e.add(start, e.constI64(partElements));
    Value whole = e.compare(arith::CmpIPredicate::sle, end, chunk.length);
    Value flag = e.bitAnd(chunk.flags, e.constI32(DFA_RT_SEGMENT_VECTOR));
    Value aligned = e.compare(arith::CmpIPredicate::ne, flag, e.constI32(0));
    LogicalResult vectors = success(), rest = success();
    e.ifTrue(
        e.bitAnd(whole, aligned),
        [&] { vectors = emitVectors(chunk, scalars, start); },
        [&] { rest = emitScalars(chunk, scalars, start); });
    result = success(succeeded(vectors) && succeeded(rest));
  });
  return result;
}

/// 16 bytes, or 8 if an array of 16-bit elements may lie at a multiple of 8
/// only. The access itself may be narrower.
static unsigned getPromisedAlignment(KernelOp kernel) {
  for (auto array : kernel.getArrays().getAsRange<KernelArrayAttr>())
    if (getElementBytes(array) == 2)
      return 8;
  return 16;
}

unsigned DeviceElementKernel::getMaxAlignment() {
  // With four lanes a 16-bit array needs 8 bytes anyway.
  return shape.vectorWidth > 4 ? getPromisedAlignment(kernel) : 16;
}

LogicalResult DeviceElementKernel::emitVectors(const ChunkRow &chunk,
                                               ValueRange uniform,
                                               Value start) {
  unsigned lanes = shape.vectorWidth;
  SmallVector<Value> wide;
  for (Value value : uniform)
    wide.push_back(widenValue(e, value, lanes));
  Value index = e.add(start, e.mul(lane, e.constI64(lanes)));
  SmallVector<Value> elements =
      loadElements(e, kernel, chunk, index, lanes, getMaxAlignment());
  return computeElements(e, kernel, chunk, wide, elements, index, lanes,
                         getMaxAlignment());
}

/// Lanes stay adjacent, so that accesses coalesce.
LogicalResult DeviceElementKernel::emitScalars(const ChunkRow &chunk,
                                               ValueRange uniform,
                                               Value start) {
  Value first = e.add(start, lane);
  Value partEnd = e.add(start, e.constI64(partElements));
  Value end = arith::MinSIOp::create(e, partEnd, chunk.length);
  LogicalResult result = success();
  e.loop(first, end, e.constI64(kWarp), [&](Value index) {
    SmallVector<Value> elements = loadElements(e, kernel, chunk, index, 1, 1);
    result = computeElements(e, kernel, chunk, uniform, elements, index, 1, 1);
  });
  return result;
}

LogicalResult dfa::emitDeviceElementKernel(Emitter &emitter, KernelOp kernel,
                                           const KernelLayout &layout,
                                           ValueRange arguments,
                                           const DeviceShape &shape) {
  return DeviceElementKernel(emitter, kernel, layout, arguments, shape).emit();
}
