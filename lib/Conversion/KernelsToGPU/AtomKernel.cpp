// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element kernels with accumulators: a warp handles one atom. Each lane holds
// runs of adjacent columns in registers, several loads at a time in flight.

#include "DeviceKernels.h"
#include "dfa-rt/abi.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

class DeviceAtomKernel {
public:
  DeviceAtomKernel(Emitter &e, KernelOp kernel, const KernelLayout &layout,
                   ValueRange arguments, const DeviceShape &shape);

  LogicalResult emit();

private:
  LogicalResult emitAtom(Value index);
  FailureOr<Emitter::Values> emitRows(const ChunkRow &chunk,
                                      ValueRange uniform);
  Value emitAligned(const ChunkRow &chunk);
  Emitter::Values emitVectorRows(const ChunkRow &chunk, ValueRange uniform,
                                 Value row, unsigned rows, ValueRange sums);
  Emitter::Values emitPartialRow(const ChunkRow &chunk, ValueRange uniform,
                                 Value row, Value aligned, ValueRange sums);
  Emitter::Values emitVectorRun(const ChunkRow &chunk, ValueRange uniform,
                                Value index, ValueRange sums);
  Emitter::Values emitScalarRun(const ChunkRow &chunk, ValueRange uniform,
                                Value index, ValueRange sums);
  Emitter::Values emitRun(const ChunkRow &chunk, ValueRange uniform,
                          Value index, unsigned width, ValueRange sums);
  void emitPartials(Value index, ValueRange sums);
  Value getColumn(unsigned run);
  Emitter::Values getIdentities();

  Emitter &e;
  KernelOp kernel;
  const KernelLayout &layout;
  ElementArguments args;
  const DeviceShape &shape;
  SmallVector<Combine> kinds;
  /// Adjacent columns of a run, and runs of a lane. Lanes are a run apart.
  unsigned lanes, runs;
  /// Rows whose loads are in flight together.
  unsigned rowsAtOnce;
  Value lane;
  LogicalResult result = success();
};

} // namespace

DeviceAtomKernel::DeviceAtomKernel(Emitter &e, KernelOp kernel,
                                   const KernelLayout &layout,
                                   ValueRange arguments,
                                   const DeviceShape &shape)
    : e(e), kernel(kernel), layout(layout),
      args(bindElementArguments(arguments)), shape(shape),
      kinds(getCombines(kernel.getAccumulators())) {
  // 16 bytes of the widest array, so that adjacent lanes touch adjacent ones.
  unsigned widest = 2, reads = 0;
  for (auto array : kernel.getArrays().getAsRange<KernelArrayAttr>()) {
    widest = std::max<unsigned>(widest, getElementBytes(array));
    reads += array.isRead();
  }
  lanes = widest == 2 ? 8 : 4;
  runs = DFA_RT_ATOM_COLUMNS / (kWarp * lanes);
  rowsAtOnce = std::max(1u, shape.unroll / (runs * std::max(reads, 1u)));
}

LogicalResult DeviceAtomKernel::emit() {
  Value thread = emitThread(e);
  lane = e.bitAnd(thread, e.constI64(kWarp - 1));
  Value warp = e.add(e.mul(emitBlock(e), e.constI64(shape.block / kWarp)),
                     e.shiftRight(thread, e.constI64(llvm::Log2_32(kWarp))));
  Value index = e.add(args.chunkBegin, warp);
  LogicalResult atom = success();
  // All lanes of a warp agree, so shuffles inside have them all.
  e.ifTrue(e.lessThan(index, args.chunkEnd), [&] { atom = emitAtom(index); });
  return atom;
}

LogicalResult DeviceAtomKernel::emitAtom(Value index) {
  ChunkRow chunk = loadChunk(e, kernel, layout, args, index);
  FailureOr<SmallVector<Value>> uniform =
      emitRegion(e, kernel.getUniform(), {}, chunk.rows);
  if (failed(uniform))
    return failure();
  Emitter::Values identities = getIdentities();
  LogicalResult rows = success();
  Emitter::Values sums = e.ifElse(
      uniform->front(), ValueRange(identities).getTypes(),
      [&]() -> Emitter::Values {
        FailureOr<Emitter::Values> values =
            emitRows(chunk, ArrayRef<Value>(*uniform).drop_front());
        rows = values;
        return succeeded(values) ? *values : identities;
      },
      // An atom that is left alone counts as absent.
      [&]() -> Emitter::Values { return identities; });
  emitPartials(index, sums);
  return rows;
}

/// One vector for each accumulator and run, accumulator-major.
Emitter::Values DeviceAtomKernel::getIdentities() {
  return Emitter::Values(kinds.size() * runs, emitIdentity(e, lanes));
}

/// First column of a lane's run.
Value DeviceAtomKernel::getColumn(unsigned run) {
  return e.add(e.mul(lane, e.constI64(lanes)),
               e.constI64(int64_t(run) * lanes * kWarp));
}

/// Whether vectors may be read at multiples of their length.
Value DeviceAtomKernel::emitAligned(const ChunkRow &chunk) {
  Value flag = e.bitAnd(chunk.flags, e.constI32(DFA_RT_SEGMENT_VECTOR));
  Value aligned = e.compare(arith::CmpIPredicate::ne, flag, e.constI32(0));
  if (lanes < 8)
    return aligned;
  // The flag promises 8 bytes to 16-bit arrays; runs of eight want 16.
  Value bits = e.constI64(0);
  for (Value address : chunk.arrays)
    bits = e.bitOr(bits, LLVM::PtrToIntOp::create(e, e.getI64Type(), address));
  Value low = e.bitAnd(bits, e.constI64(15));
  return e.bitAnd(aligned,
                  e.compare(arith::CmpIPredicate::eq, low, e.constI64(0)));
}

FailureOr<Emitter::Values> DeviceAtomKernel::emitRows(const ChunkRow &chunk,
                                                      ValueRange uniform) {
  SmallVector<Value> wide;
  for (Value value : uniform)
    wide.push_back(widenValue(e, value, lanes));
  Value zero = e.constI64(0), one = e.constI64(1);
  Value aligned = emitAligned(chunk);
  Value log2 = e.constI64(llvm::Log2_32(DFA_RT_ATOM_COLUMNS));
  Value full = e.select(aligned, e.shiftRight(chunk.length, log2), zero);
  Value together =
      e.sub(full, arith::RemUIOp::create(e, full, e.constI64(rowsAtOnce)));
  Value rows = e.shiftRight(
      e.add(chunk.length, e.constI64(DFA_RT_ATOM_COLUMNS - 1)), log2);

  Emitter::Values sums =
      e.loop(zero, together, e.constI64(rowsAtOnce), getIdentities(),
             [&](Value row, ValueRange carried) {
               return emitVectorRows(chunk, wide, row, rowsAtOnce, carried);
             });
  if (rowsAtOnce > 1)
    sums =
        e.loop(together, full, one, sums, [&](Value row, ValueRange carried) {
          return emitVectorRows(chunk, wide, row, 1, carried);
        });
  sums = e.loop(full, rows, one, sums, [&](Value row, ValueRange carried) {
    return emitPartialRow(chunk, uniform, row, aligned, carried);
  });
  if (failed(result))
    return failure();
  return sums;
}

/// All loads of some rows first, then the computation, top to bottom.
Emitter::Values DeviceAtomKernel::emitVectorRows(const ChunkRow &chunk,
                                                 ValueRange uniform, Value row,
                                                 unsigned rows,
                                                 ValueRange carried) {
  SmallVector<Value> indices;
  SmallVector<SmallVector<Value>> elements;
  for (unsigned r = 0; r < rows; ++r)
    for (unsigned run = 0; run < runs; ++run) {
      Value start =
          e.mul(e.add(row, e.constI64(r)), e.constI64(DFA_RT_ATOM_COLUMNS));
      indices.push_back(e.add(start, getColumn(run)));
      elements.push_back(
          loadElements(e, kernel, chunk, indices.back(), lanes, 16));
    }
  Emitter::Values sums(carried);
  for (unsigned piece = 0; piece < rows * runs; ++piece) {
    FailureOr<SmallVector<Value>> values = computeElements(
        e, kernel, chunk, uniform, elements[piece], indices[piece], lanes, 16);
    if (failed(values)) {
      result = failure();
      return sums;
    }
    for (auto [i, kind] : llvm::enumerate(kinds)) {
      Value &sum = sums[i * runs + piece % runs];
      sum = emitCombine(e, kind, sum, (*values)[i]);
    }
  }
  return sums;
}

/// A row that ends early or is not aligned: runs that are whole and aligned as
/// vectors, the others element by element.
Emitter::Values DeviceAtomKernel::emitPartialRow(const ChunkRow &chunk,
                                                 ValueRange uniform, Value row,
                                                 Value aligned,
                                                 ValueRange carried) {
  Emitter::Values sums(carried);
  Value start = e.mul(row, e.constI64(DFA_RT_ATOM_COLUMNS));
  for (unsigned run = 0; run < runs; ++run) {
    Value index = e.add(start, getColumn(run));
    Value end = e.add(index, e.constI64(lanes));
    Value whole = e.compare(arith::CmpIPredicate::sle, end, chunk.length);
    SmallVector<Value> own;
    for (size_t i = 0; i < kinds.size(); ++i)
      own.push_back(sums[i * runs + run]);
    Emitter::Values next = e.ifElse(
        e.bitAnd(whole, aligned), ValueRange(own).getTypes(),
        [&] { return emitVectorRun(chunk, uniform, index, own); },
        [&] { return emitScalarRun(chunk, uniform, index, own); });
    for (size_t i = 0; i < kinds.size(); ++i)
      sums[i * runs + run] = next[i];
  }
  return sums;
}

Emitter::Values DeviceAtomKernel::emitVectorRun(const ChunkRow &chunk,
                                                ValueRange uniform, Value index,
                                                ValueRange sums) {
  SmallVector<Value> wide;
  for (Value value : uniform)
    wide.push_back(widenValue(e, value, lanes));
  return emitRun(chunk, wide, index, lanes, sums);
}

Emitter::Values DeviceAtomKernel::emitScalarRun(const ChunkRow &chunk,
                                                ValueRange uniform, Value index,
                                                ValueRange carried) {
  Emitter::Values sums(carried);
  for (unsigned j = 0; j < lanes; ++j) {
    Value element = e.add(index, e.constI64(j));
    SmallVector<Value> old;
    for (Value sum : sums)
      old.push_back(vector::ExtractOp::create(e, sum, j));
    Emitter::Values next = e.ifElse(
        e.lessThan(element, chunk.length), ValueRange(old).getTypes(),
        [&] { return emitRun(chunk, uniform, element, 1, old); },
        [&]() -> Emitter::Values { return old; });
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] = vector::InsertOp::create(e, next[i], sums[i], j);
  }
  return sums;
}

/// Loads, computes and adds `width` adjacent elements.
Emitter::Values DeviceAtomKernel::emitRun(const ChunkRow &chunk,
                                          ValueRange uniform, Value index,
                                          unsigned width, ValueRange sums) {
  SmallVector<Value> elements =
      loadElements(e, kernel, chunk, index, width, 16);
  FailureOr<SmallVector<Value>> values =
      computeElements(e, kernel, chunk, uniform, elements, index, width, 16);
  if (failed(values)) {
    result = failure();
    return Emitter::Values(sums);
  }
  for (auto [i, kind] : llvm::enumerate(kinds))
    (*values)[i] = emitCombine(e, kind, sums[i], (*values)[i]);
  return *values;
}

void DeviceAtomKernel::emitPartials(Value index, ValueRange sums) {
  SmallVector<Value> totals;
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    // A lane's run, then the lanes, then the runs: adjacent pairs throughout.
    SmallVector<Value> parts;
    for (unsigned run = 0; run < runs; ++run)
      parts.push_back(
          emitWarpTree(e, kind, emitLaneTree(e, kind, sums[i * runs + run])));
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t j = 0; j < parts.size() / 2; ++j)
        parts[j] = emitCombine(e, kind, parts[2 * j], parts[2 * j + 1]);
    totals.push_back(parts.front());
  }
  Value first = e.compare(arith::CmpIPredicate::eq, lane, e.constI64(0));
  e.ifTrue(first, [&] {
    for (auto [i, total] : llvm::enumerate(totals)) {
      Value row = getPartialRow(e, args.partials, args.partialStride, i);
      e.store(total, e.element(row, index, sizeof(double)), 8);
    }
  });
}

LogicalResult dfa::emitDeviceAtomKernel(Emitter &emitter, KernelOp kernel,
                                        const KernelLayout &layout,
                                        ValueRange arguments,
                                        const DeviceShape &shape) {
  return DeviceAtomKernel(emitter, kernel, layout, arguments, shape).emit();
}
