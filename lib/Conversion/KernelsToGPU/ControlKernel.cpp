// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Control kernels on the device: one block, a thread a column of the matrix
// of partials; thread 0 runs the scalar code.

#include "DeviceKernels.h"
#include "dfa-rt/abi.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

class DeviceControlKernel {
public:
  DeviceControlKernel(Emitter &e, ControlKernelOp kernel, ValueRange arguments,
                      Value shared)
      : e(e), kernel(kernel), args(bindControlArguments(arguments)),
        shared(shared), kinds(getCombines(kernel.getAccumulators())),
        groupKinds(getCombines(kernel.getGroupAccumulators())) {}

  LogicalResult emit();

private:
  Emitter::Values combineAtoms();
  Emitter::Values combineRanks();
  Value combineRank(Combine kind, Value column);
  void combineGroups();
  void gatherGroups();
  Value combineGroup(Combine kind, Value source, Value group);
  Value combineBlock(Combine kind, Value column);
  Emitter::Values addRows(ValueRange sources, Value first, unsigned rows,
                          ValueRange sums);
  LogicalResult finish(ValueRange sums);
  void loadEarly();

  Emitter &e;
  ControlKernelOp kernel;
  ControlArguments args;
  /// One f64 a warp, in memory of the block.
  Value shared;
  SmallVector<Combine> kinds, groupKinds;
  Value thread, isLocal;
  /// What the scalar code reads of the control block.
  SmallVector<Value> loaded;
};

} // namespace

LogicalResult DeviceControlKernel::emit() {
  thread = emitThread(e);
  loadEarly();
  Value yes = arith::ConstantIntOp::create(e, 1, 1);
  Value noLocal = e.isNull(args.localSums);
  isLocal = arith::XOrIOp::create(e, noLocal, yes);
  Value isGathered =
      e.bitAnd(noLocal, arith::XOrIOp::create(e, e.isNull(args.gathered), yes));
  Emitter::Values sums;
  // Conditions depend on arguments only, so barriers inside are met by all.
  if (!kinds.empty())
    sums = e.ifElse(
        isGathered, SmallVector<Type>(kinds.size(), e.getF64Type()),
        [&] { return combineRanks(); }, [&] { return combineAtoms(); });
  if (!groupKinds.empty())
    e.ifTrue(isGathered, [&] { gatherGroups(); }, [&] { combineGroups(); });
  LogicalResult result = success();
  Value first = e.compare(arith::CmpIPredicate::eq, thread, e.constI64(0));
  e.ifTrue(first, [&] { result = finish(sums); });
  return result;
}

/// Loads fields while the partials are on their way, rather than after all
/// barriers: the values become arguments of the scalar code. All that it reads
/// before its first store is as it was when the kernel started.
void DeviceControlKernel::loadEarly() {
  Block &body = kernel.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(body)) {
    int64_t offset = 0;
    if (LoadControlOp field = dyn_cast<LoadControlOp>(op))
      offset = getControlFieldOffset(field.getField());
    else if (LoadScratchOp slot = dyn_cast<LoadScratchOp>(op))
      offset = offsetof(dfa_rt_control_t, scratch) + 8 * slot.getSlot();
    else if (isa<StoreControlOp, StoreScratchOp>(op))
      return;
    else
      continue;
    Type type = op.getResult(0).getType();
    loaded.push_back(e.load(type, e.at(args.control, offset),
                            type.getIntOrFloatBitWidth() / 8));
    op.getResult(0).replaceAllUsesWith(body.addArgument(type, op.getLoc()));
    op.erase();
  }
}

LogicalResult DeviceControlKernel::finish(ValueRange sums) {
  LogicalResult result = success();
  e.ifTrue(
      isLocal,
      [&] {
        for (auto [i, sum] : llvm::enumerate(sums))
          e.store(sum, e.at(args.localSums, sizeof(double) * i), 8);
      },
      [&] {
        TableRows rows;
        rows.control = args.control;
        SmallVector<Value> values(sums);
        llvm::append_range(values, loaded);
        result = emitRegion(e, kernel.getBody(), values, rows);
      });
  return result;
}

/// The tree over the columns of the block's threads; thread 0 has the result.
Value DeviceControlKernel::combineBlock(Combine kind, Value column) {
  constexpr int64_t warps = DFA_RT_CONTROL_BLOCK / kWarp;
  static_assert(warps == kWarp, "the second tree is one of a warp, too");
  Value warpSum = emitWarpTree(e, kind, column);
  Value lane = e.bitAnd(thread, e.constI64(kWarp - 1));
  Value warp = e.shiftRight(thread, e.constI64(llvm::Log2_32(kWarp)));
  Value leads = e.compare(arith::CmpIPredicate::eq, lane, e.constI64(0));
  e.ifTrue(leads, [&] {
    e.store(warpSum, e.element(shared, warp, sizeof(double)), 8);
  });
  gpu::BarrierOp::create(e);
  // Every warp does it, to keep shuffles out of branches.
  Value total =
      emitWarpTree(e, kind, e.loadF64(e.element(shared, lane, sizeof(double))));
  // Before the memory is used again.
  gpu::BarrierOp::create(e);
  return total;
}

/// Adds `rows` rows of the matrix, loads first.
Emitter::Values DeviceControlKernel::addRows(ValueRange sources, Value first,
                                             unsigned rows, ValueRange sums) {
  SmallVector<SmallVector<Value>> loaded(rows);
  for (unsigned r = 0; r < rows; ++r) {
    Value index = e.add(first, e.constI64(int64_t(r) * DFA_RT_COMBINE_COLUMNS));
    for (Value source : sources)
      loaded[r].push_back(e.loadF64(e.element(source, index, sizeof(double))));
  }
  Emitter::Values next(sums);
  for (unsigned r = 0; r < rows; ++r)
    for (auto [i, kind] : llvm::enumerate(kinds))
      next[i] = emitCombine(e, kind, next[i], loaded[r][i]);
  return next;
}

Emitter::Values DeviceControlKernel::combineAtoms() {
  // One block hides the latency of memory by loads in flight alone.
  unsigned rows = std::max<size_t>(1, 8 / kinds.size());
  int64_t step = int64_t(rows) * DFA_RT_COMBINE_COLUMNS;
  SmallVector<Value> sources;
  for (size_t i = 0; i < kinds.size(); ++i)
    sources.push_back(getPartialRow(e, args.partials, args.partialStride, i));
  // Iterations whose last row is there for this thread.
  Value before = e.sub(args.atoms, e.constI64(step - DFA_RT_COMBINE_COLUMNS));
  Value distance = e.sub(before, thread);
  Value rounded = e.add(distance, e.constI64(step - 1));
  Value none = e.compare(arith::CmpIPredicate::sle, distance, e.constI64(0));
  Value steps = e.select(none, e.constI64(0),
                         arith::DivUIOp::create(e, rounded, e.constI64(step)));
  Value rest = e.add(thread, e.mul(steps, e.constI64(step)));

  Emitter::Values columns(kinds.size(), emitIdentity(e));
  columns = e.loop(thread, rest, e.constI64(step), columns,
                   [&](Value first, ValueRange sums) {
                     return addRows(sources, first, rows, sums);
                   });
  columns = e.loop(rest, args.atoms, e.constI64(DFA_RT_COMBINE_COLUMNS),
                   columns, [&](Value first, ValueRange sums) {
                     return addRows(sources, first, 1, sums);
                   });
  Emitter::Values totals;
  for (auto [i, kind] : llvm::enumerate(kinds))
    totals.push_back(combineBlock(kind, columns[i]));
  return totals;
}

/// One accumulator of all ranks, in rank order. A rank's row holds the plain
/// accumulators, then those of each group.
Value DeviceControlKernel::combineRank(Combine kind, Value column) {
  Value rowLength = e.constI64(kinds.size());
  if (!groupKinds.empty())
    rowLength =
        e.add(rowLength, e.mul(args.groupCount, e.constI64(groupKinds.size())));
  return e
      .loop(e.constI64(0), args.ranks, e.constI64(1), emitIdentity(e),
            [&](Value rank, ValueRange sum) -> Emitter::Values {
              Value index = e.add(e.mul(rank, rowLength), column);
              Value next =
                  e.loadF64(e.element(args.gathered, index, sizeof(double)));
              return {emitCombine(e, kind, sum[0], next)};
            })
      .front();
}

Emitter::Values DeviceControlKernel::combineRanks() {
  Emitter::Values sums;
  for (auto [i, kind] : llvm::enumerate(kinds))
    sums.push_back(combineRank(kind, e.constI64(i)));
  return sums;
}

/// Group accumulators of all ranks: a thread a group.
void DeviceControlKernel::gatherGroups() {
  e.loop(
      thread, args.groupCount, e.constI64(DFA_RT_CONTROL_BLOCK),
      [&](Value group) {
        for (auto [i, kind] : llvm::enumerate(groupKinds)) {
          Value index =
              e.add(e.mul(group, e.constI64(groupKinds.size())), e.constI64(i));
          Value total =
              combineRank(kind, e.add(index, e.constI64(kinds.size())));
          e.store(total, e.element(args.groupStats, index, sizeof(double)), 8);
        }
      });
}

/// Over the atoms of one group; the other atoms are absent.
Value DeviceControlKernel::combineGroup(Combine kind, Value source,
                                        Value group) {
  Value column =
      e.loop(thread, args.atoms, e.constI64(DFA_RT_COMBINE_COLUMNS),
             emitIdentity(e),
             [&](Value i, ValueRange sum) -> Emitter::Values {
               Value own =
                   e.loadU32(e.element(args.atomGroups, i, sizeof(uint32_t)));
               Value next = e.loadF64(e.element(source, i, sizeof(double)));
               Value mine = e.compare(arith::CmpIPredicate::eq, own, group);
               return {
                   e.select(mine, emitCombine(e, kind, sum[0], next), sum[0])};
             })
          .front();
  return combineBlock(kind, column);
}

void DeviceControlKernel::combineGroups() {
  Value first = e.compare(arith::CmpIPredicate::eq, thread, e.constI64(0));
  Value behind = e.at(args.localSums, sizeof(double) * kinds.size());
  Value target = e.select(isLocal, behind, args.groupStats);
  e.loop(e.constI64(0), args.groupCount, e.constI64(1), [&](Value group) {
    for (auto [i, kind] : llvm::enumerate(groupKinds)) {
      Value row =
          getPartialRow(e, args.partials, args.partialStride, kinds.size() + i);
      Value total = combineGroup(kind, row, group);
      Value index =
          e.add(e.mul(group, e.constI64(groupKinds.size())), e.constI64(i));
      e.ifTrue(first, [&] {
        e.store(total, e.element(target, index, sizeof(double)), 8);
      });
    }
  });
}

LogicalResult dfa::emitDeviceControlKernel(Emitter &emitter,
                                           ControlKernelOp kernel,
                                           ValueRange arguments, Value shared) {
  return DeviceControlKernel(emitter, kernel, arguments, shared).emit();
}
