// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What device kernels share: thread indices, shuffles, and the accesses and
// computation of some adjacent elements.

#include "DeviceKernels.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::dfa;

static Value toI64(Emitter &e, Value index) {
  return arith::IndexCastUIOp::create(e, e.getI64Type(), index);
}

Value dfa::emitThread(Emitter &e) {
  return toI64(e, gpu::ThreadIdOp::create(e, gpu::Dimension::x));
}

Value dfa::emitBlock(Emitter &e) {
  return toI64(e, gpu::BlockIdOp::create(e, gpu::Dimension::x));
}

/// The f64 of lane + `distance`, as two words: shuffles move 32 bits.
static Value shuffleDown(Emitter &e, Value value, int32_t distance) {
  Value bits = arith::BitcastOp::create(e, e.getI64Type(), value);
  Value low = arith::TruncIOp::create(e, e.getI32Type(), bits);
  Value high = arith::TruncIOp::create(e, e.getI32Type(),
                                       e.shiftRight(bits, e.constI64(32)));
  auto move = [&](Value word) -> Value {
    return e.widen(
        gpu::ShuffleOp::create(e, word, distance, kWarp, gpu::ShuffleMode::DOWN)
            .getShuffleResult());
  };
  Value moved = e.bitOr(move(low), e.shiftLeft(move(high), e.constI64(32)));
  return arith::BitcastOp::create(e, e.getF64Type(), moved);
}

Value dfa::emitWarpTree(Emitter &e, Combine kind, Value value) {
  // Downwards, so that the left operand is always the lower lane's.
  for (unsigned distance = 1; distance < kWarp; distance *= 2)
    value = emitCombine(e, kind, value, shuffleDown(e, value, distance));
  return value;
}

ArrayPlace dfa::getPlace(Emitter &e, KernelArrayAttr array, Value base,
                         Value index, unsigned lanes, unsigned alignment) {
  int64_t bytes = getElementBytes(array);
  ArrayPlace place;
  place.address = e.element(base, index, bytes);
  place.type = getWideType(array.getType(), lanes);
  place.alignment = std::min<int64_t>(alignment, lanes * bytes);
  return place;
}

/// What the segment's flag promises for an array, at most `maxAlignment`.
static unsigned getAlignment(KernelArrayAttr array, unsigned lanes,
                             unsigned maxAlignment) {
  if (lanes == 1)
    return getElementBytes(array);
  return maxAlignment;
}

SmallVector<Value> dfa::loadElements(Emitter &e, KernelOp kernel,
                                     const ChunkRow &chunk, Value index,
                                     unsigned lanes, unsigned maxAlignment) {
  SmallVector<Value> values;
  for (auto [i, attr] : llvm::enumerate(kernel.getArrays())) {
    KernelArrayAttr array = cast<KernelArrayAttr>(attr);
    if (!array.isRead())
      continue;
    ArrayPlace place = getPlace(e, array, chunk.arrays[i], index, lanes,
                                getAlignment(array, lanes, maxAlignment));
    values.push_back(e.load(place.type, place.address, place.alignment));
  }
  return values;
}

FailureOr<SmallVector<Value>>
dfa::computeElements(Emitter &e, KernelOp kernel, const ChunkRow &chunk,
                     ValueRange uniform, ValueRange elements, Value index,
                     unsigned lanes, unsigned maxAlignment) {
  SmallVector<Value> arguments(uniform);
  llvm::append_range(arguments, elements);
  FailureOr<SmallVector<Value>> results =
      emitRegion(e, kernel.getBody(), arguments, chunk.rows, lanes);
  if (failed(results))
    return failure();
  unsigned next = 0;
  for (auto [i, attr] : llvm::enumerate(kernel.getArrays())) {
    KernelArrayAttr array = cast<KernelArrayAttr>(attr);
    if (!array.isWritten())
      continue;
    ArrayPlace place = getPlace(e, array, chunk.arrays[i], index, lanes,
                                getAlignment(array, lanes, maxAlignment));
    e.store((*results)[next++], place.address, place.alignment);
  }
  return SmallVector<Value>(ArrayRef<Value>(*results).drop_front(next));
}
