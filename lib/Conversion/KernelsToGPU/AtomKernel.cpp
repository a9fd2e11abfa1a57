// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element kernels with accumulators: a warp handles one atom. Each lane holds
// a run of adjacent columns in registers, with several loads in flight.

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
  using Values = Emitter::Values;

  LogicalResult emitAtom(Value index);
  Values emitRuns();
  Values emitRun(Value run);
  Values emitRows(Value column, Value aligned);
  Values emitVectorRows(Value start, unsigned rows, ValueRange sums);
  Values emitPartialRow(Value start, Value aligned, ValueRange sums);
  Values emitScalars(Value start, ValueRange sums);
  Values compute(ValueRange elements, Value index, unsigned width,
                 ValueRange sums);
  void store(Value index, ArrayRef<SmallVector<Value>> outputs);
  Value emitAligned();
  void emitPartials(Value index, ValueRange totals);
  Values getIdentities(unsigned count) {
    return Values(count, emitIdentity(e));
  }

  Emitter &e;
  KernelOp kernel;
  const KernelLayout &layout;
  ElementArguments args;
  const DeviceShape &shape;
  SmallVector<Combine> kinds;
  /// Adjacent columns of a run, and runs of a lane. Adjacent lanes have
  /// adjacent runs, so a warp reads one piece of memory.
  unsigned lanes, runs;
  /// Rows whose loads are in flight together.
  unsigned rowsAtOnce;
  Value lane;
  ChunkRow chunk;
  SmallVector<Value> uniform;
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
  // 16 bytes of an array, so that adjacent lanes touch adjacent ones. An
  // accumulator takes two registers a column, so several get fewer columns
  // and fewer loads in flight: two to four vectors are enough for memory.
  unsigned widest = 2, rowBytes = 0;
  for (auto array : kernel.getArrays().getAsRange<KernelArrayAttr>()) {
    widest = std::max<unsigned>(widest, getElementBytes(array));
    rowBytes += array.isRead() ? getElementBytes(array) : 0;
  }
  bool single = kinds.size() == 1;
  lanes = widest == 2 && single ? 8 : 4;
  runs = DFA_RT_ATOM_COLUMNS / (kWarp * lanes);
  unsigned bytesInFlight = 16 * shape.unroll / (single ? 1 : 2);
  rowsAtOnce = std::max(1u, bytesInFlight / (lanes * std::max(rowBytes, 1u)));
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
  chunk = loadChunk(e, kernel, layout, args, index);
  FailureOr<SmallVector<Value>> values =
      emitRegion(e, kernel.getUniform(), {}, chunk.rows);
  if (failed(values))
    return failure();
  uniform.assign(values->begin() + 1, values->end());
  Values absent = getIdentities(kinds.size());
  Values totals = e.ifElse(
      values->front(), ValueRange(absent).getTypes(),
      [&] { return emitRuns(); },
      // An atom that is left alone counts as absent.
      [&] { return absent; });
  emitPartials(index, totals);
  return result;
}

/// Run after run, so that only one run's columns are in registers. The runs'
/// totals are the last adjacent pair of the tree.
DeviceAtomKernel::Values DeviceAtomKernel::emitRuns() {
  if (runs == 1)
    return emitRun(e.constI64(0));
  assert(runs == 2 && "more runs need a tree");
  // A short atom has nothing in the second run, which adds the identity then.
  Value isShort = e.compare(arith::CmpIPredicate::sle, chunk.length,
                            e.constI64(int64_t(lanes) * kWarp));
  Value end = e.select(isShort, e.constI64(1), e.constI64(runs));
  return e.loop(e.constI64(0), end, e.constI64(1), getIdentities(kinds.size()),
                [&](Value run, ValueRange before) {
                  Values totals = emitRun(run);
                  Value first =
                      e.compare(arith::CmpIPredicate::eq, run, e.constI64(0));
                  for (auto [i, kind] : llvm::enumerate(kinds))
                    totals[i] =
                        e.select(first, totals[i],
                                 emitCombine(e, kind, before[i], totals[i]));
                  return totals;
                });
}

/// The totals of one run of all lanes; only lane 0 has them.
DeviceAtomKernel::Values DeviceAtomKernel::emitRun(Value run) {
  Value column = e.add(e.mul(run, e.constI64(int64_t(lanes) * kWarp)),
                       e.mul(lane, e.constI64(lanes)));
  Values sums = emitRows(column, emitAligned());
  Values totals;
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    SmallVector<Value> tree(sums.begin() + i * lanes,
                            sums.begin() + (i + 1) * lanes);
    for (; tree.size() > 1; tree.resize(tree.size() / 2))
      for (size_t j = 0; j < tree.size() / 2; ++j)
        tree[j] = emitCombine(e, kind, tree[2 * j], tree[2 * j + 1]);
    totals.push_back(emitWarpTree(e, kind, tree.front()));
  }
  return totals;
}

/// Whether vectors may be read at multiples of their length.
Value DeviceAtomKernel::emitAligned() {
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

/// The columns of a lane's run from top to bottom; one f64 for each
/// accumulator and column, accumulator-major.
DeviceAtomKernel::Values DeviceAtomKernel::emitRows(Value column,
                                                    Value aligned) {
  Value zero = e.constI64(0), one = e.constI64(1);
  Value log2 = e.constI64(llvm::Log2_32(DFA_RT_ATOM_COLUMNS));
  Value full = e.select(aligned, e.shiftRight(chunk.length, log2), zero);
  Value together =
      e.sub(full, arith::RemUIOp::create(e, full, e.constI64(rowsAtOnce)));
  Value rows = e.shiftRight(
      e.add(chunk.length, e.constI64(DFA_RT_ATOM_COLUMNS - 1)), log2);
  auto getStart = [&](Value row) {
    return e.add(e.mul(row, e.constI64(DFA_RT_ATOM_COLUMNS)), column);
  };
  Values sums = e.loop(
      zero, together, e.constI64(rowsAtOnce),
      getIdentities(kinds.size() * lanes), [&](Value row, ValueRange carried) {
        return emitVectorRows(getStart(row), rowsAtOnce, carried);
      });
  if (rowsAtOnce > 1)
    sums =
        e.loop(together, full, one, sums, [&](Value row, ValueRange carried) {
          return emitVectorRows(getStart(row), 1, carried);
        });
  return e.loop(full, rows, one, sums, [&](Value row, ValueRange carried) {
    return emitPartialRow(getStart(row), aligned, carried);
  });
}

/// All loads of some rows first, then the computation, top to bottom.
DeviceAtomKernel::Values DeviceAtomKernel::emitVectorRows(Value start,
                                                          unsigned rows,
                                                          ValueRange carried) {
  SmallVector<Value> indices;
  SmallVector<SmallVector<Value>> elements;
  for (unsigned r = 0; r < rows; ++r) {
    indices.push_back(
        e.add(start, e.constI64(int64_t(r) * DFA_RT_ATOM_COLUMNS)));
    elements.push_back(
        loadElements(e, kernel, chunk, indices.back(), lanes, 16));
  }
  Values sums(carried);
  for (unsigned r = 0; r < rows; ++r)
    sums = compute(elements[r], indices[r], lanes, sums);
  return sums;
}

/// A row that ends early or is not aligned: a run that is whole and aligned as
/// a vector, the others element by element.
DeviceAtomKernel::Values
DeviceAtomKernel::emitPartialRow(Value start, Value aligned, ValueRange sums) {
  Value end = e.add(start, e.constI64(lanes));
  Value whole = e.compare(arith::CmpIPredicate::sle, end, chunk.length);
  return e.ifElse(
      e.bitAnd(whole, aligned), sums.getTypes(),
      [&] { return emitVectorRows(start, 1, sums); },
      [&] { return emitScalars(start, sums); });
}

DeviceAtomKernel::Values DeviceAtomKernel::emitScalars(Value start,
                                                       ValueRange carried) {
  Values sums(carried);
  for (unsigned j = 0; j < lanes; ++j) {
    Value index = e.add(start, e.constI64(j));
    SmallVector<Value> old;
    for (size_t i = 0; i < kinds.size(); ++i)
      old.push_back(sums[i * lanes + j]);
    Values next = e.ifElse(
        e.lessThan(index, chunk.length), ValueRange(old).getTypes(),
        [&] {
          return compute(loadElements(e, kernel, chunk, index, 1, 1), index, 1,
                         old);
        },
        [&]() -> Values { return old; });
    for (size_t i = 0; i < kinds.size(); ++i)
      sums[i * lanes + j] = next[i];
  }
  return sums;
}

/// Runs the body on each of `width` loaded elements, stores what it writes and
/// adds what it yields. One element after the other: values live shortly, and
/// registers are for accumulators and loads.
DeviceAtomKernel::Values DeviceAtomKernel::compute(ValueRange elements,
                                                   Value index, unsigned width,
                                                   ValueRange carried) {
  Values sums(carried);
  SmallVector<SmallVector<Value>> outputs;
  for (unsigned j = 0; j < width; ++j) {
    SmallVector<Value> arguments(uniform);
    for (Value element : elements)
      arguments.push_back(
          width == 1 ? element : vector::ExtractOp::create(e, element, j));
    FailureOr<SmallVector<Value>> values =
        emitRegion(e, kernel.getBody(), arguments, chunk.rows);
    if (failed(values)) {
      result = failure();
      return sums;
    }
    size_t written = values->size() - kinds.size();
    outputs.resize(written);
    for (size_t i = 0; i < written; ++i)
      outputs[i].push_back((*values)[i]);
    for (auto [i, kind] : llvm::enumerate(kinds)) {
      Value &sum = sums[i * width + j];
      sum = emitCombine(e, kind, sum, (*values)[written + i]);
    }
  }
  store(index, outputs);
  return sums;
}

void DeviceAtomKernel::store(Value index,
                             ArrayRef<SmallVector<Value>> outputs) {
  for (auto [i, attr] : llvm::enumerate(kernel.getArrays())) {
    KernelArrayAttr array = cast<KernelArrayAttr>(attr);
    if (!array.isWritten())
      continue;
    ArrayRef<Value> values = outputs.front();
    outputs = outputs.drop_front();
    unsigned width = values.size();
    ArrayPlace place = getPlace(e, array, chunk.arrays[i], index, width,
                                width == 1 ? getElementBytes(array) : 16);
    Value value = values.front();
    if (width > 1)
      value = vector::FromElementsOp::create(e, cast<VectorType>(place.type),
                                             values);
    e.store(value, place.address, place.alignment);
  }
}

void DeviceAtomKernel::emitPartials(Value index, ValueRange totals) {
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
