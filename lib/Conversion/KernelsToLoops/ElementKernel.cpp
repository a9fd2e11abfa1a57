// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element kernels on the host: a loop over chunks, in it vectors and a tail.

#include "HostKernels.h"
#include "dfa-rt/abi.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

class HostElementKernel {
public:
  HostElementKernel(Emitter &e, KernelOp kernel, const KernelLayout &layout,
                    ValueRange arguments, unsigned width)
      : e(e), kernel(kernel), layout(layout),
        args(bindElementArguments(arguments)), width(width),
        kinds(getCombines(kernel.getAccumulators())) {}

  LogicalResult emit();

private:
  LogicalResult emitChunk(Value index);
  LogicalResult emitElements(const ChunkRow &chunk, ValueRange uniform);
  LogicalResult emitPiece(const ChunkRow &chunk, ValueRange uniform,
                          Value index, unsigned lanes);
  void emitPartials(Value index);

  Emitter &e;
  KernelOp kernel;
  const KernelLayout &layout;
  ElementArguments args;
  unsigned width;
  SmallVector<Combine> kinds;
  /// Column accumulators of one atom, a buffer for each accumulator.
  SmallVector<Value> columns;
};

} // namespace

LogicalResult HostElementKernel::emit() {
  for (size_t i = 0; i < kinds.size(); ++i)
    columns.push_back(e.allocate(DFA_RT_ATOM_COLUMNS));
  LogicalResult result = success();
  e.loop(args.chunkBegin, args.chunkEnd, e.constI64(1),
         [&](Value index) { result = emitChunk(index); });
  return result;
}

LogicalResult HostElementKernel::emitChunk(Value index) {
  ChunkRow chunk = loadChunk(e, kernel, layout, args, index);
  for (Value buffer : columns)
    emitClearColumns(e, buffer, DFA_RT_ATOM_COLUMNS, width);
  FailureOr<SmallVector<Value>> uniform =
      emitRegion(e, kernel.getUniform(), {}, chunk.rows);
  if (failed(uniform))
    return failure();
  LogicalResult result = success();
  e.ifTrue(uniform->front(), [&] {
    result = emitElements(chunk, ArrayRef<Value>(*uniform).drop_front());
  });
  // An atom that is left alone counts as absent.
  emitPartials(index);
  return result;
}

LogicalResult HostElementKernel::emitElements(const ChunkRow &chunk,
                                              ValueRange uniform) {
  LogicalResult result = success();
  Value main = e.constI64(0);
  if (width > 1) {
    SmallVector<Value> wide;
    for (Value value : uniform)
      wide.push_back(widenValue(e, value, width));
    main = e.bitAnd(chunk.length, e.constI64(-static_cast<int64_t>(width)));
    e.loop(e.constI64(0), main, e.constI64(width),
           [&](Value i) { result = emitPiece(chunk, wide, i, width); });
  }
  if (failed(result))
    return failure();
  e.loop(main, chunk.length, e.constI64(1),
         [&](Value i) { result = emitPiece(chunk, uniform, i, 1); });
  return result;
}

/// `lanes` elements from `index` on. Addresses are element-aligned only: the
/// host has unaligned vector accesses at no cost.
LogicalResult HostElementKernel::emitPiece(const ChunkRow &chunk,
                                           ValueRange uniform, Value index,
                                           unsigned lanes) {
  SmallVector<Value> values(uniform);
  SmallVector<std::pair<Value, unsigned>> outputs;
  for (auto [i, attr] : llvm::enumerate(kernel.getArrays())) {
    KernelArrayAttr array = cast<KernelArrayAttr>(attr);
    unsigned bytes = getElementBytes(array);
    Value address = e.element(chunk.arrays[i], index, bytes);
    if (array.isRead())
      values.push_back(
          e.load(getWideType(array.getType(), lanes), address, bytes));
    if (array.isWritten())
      outputs.push_back({address, bytes});
  }
  FailureOr<SmallVector<Value>> results =
      emitRegion(e, kernel.getBody(), values, chunk.rows, lanes);
  if (failed(results))
    return failure();
  for (auto [i, output] : llvm::enumerate(outputs))
    e.store((*results)[i], output.first, output.second);
  if (kinds.empty())
    return success();
  Value column = e.bitAnd(index, e.constI64(DFA_RT_ATOM_COLUMNS - 1));
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    Value address = e.element(columns[i], column, sizeof(double));
    Value old = e.load(getWideType(e.getF64Type(), lanes), address, 8);
    Value next = (*results)[outputs.size() + i];
    e.store(emitCombine(e, kind, old, next), address, 8);
  }
  return success();
}

void HostElementKernel::emitPartials(Value index) {
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    Value total =
        emitColumnTree(e, kind, columns[i], DFA_RT_ATOM_COLUMNS, width);
    Value row = getPartialRow(e, args.partials, args.partialStride, i);
    e.store(total, e.element(row, index, sizeof(double)), 8);
  }
}

LogicalResult dfa::emitHostElementKernel(Emitter &emitter, KernelOp kernel,
                                         const KernelLayout &layout,
                                         ValueRange arguments, unsigned width) {
  return HostElementKernel(emitter, kernel, layout, arguments, width).emit();
}
