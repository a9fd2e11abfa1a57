// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Control kernels on the host: combine over atoms or ranks, then scalar code.

#include "HostKernels.h"
#include "dfa-rt/abi.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

class HostControlKernel {
public:
  HostControlKernel(Emitter &e, ControlKernelOp kernel, ValueRange arguments,
                    unsigned width)
      : e(e), kernel(kernel), args(bindControlArguments(arguments)),
        width(width), kinds(getCombines(kernel.getAccumulators())),
        groupKinds(getCombines(kernel.getGroupAccumulators())) {}

  LogicalResult emit();

private:
  Emitter::Values combineAtoms();
  Emitter::Values combineRanks();
  Value combineRank(Combine kind, Value column, Value rowLength);
  void combineGroups(Value isGathered, Value isLocal);
  Value combineGroup(Combine kind, Value source, Value group);
  LogicalResult emitBody(ValueRange sums);

  Emitter &e;
  ControlKernelOp kernel;
  ControlArguments args;
  unsigned width;
  SmallVector<Combine> kinds, groupKinds;
  Value buffer;
};

} // namespace

LogicalResult HostControlKernel::emit() {
  if (!kinds.empty() || !groupKinds.empty())
    buffer = e.allocate(DFA_RT_COMBINE_COLUMNS);
  Value noLocal = e.isNull(args.localSums);
  Value noGathered = e.isNull(args.gathered);
  Value yes = arith::ConstantIntOp::create(e, 1, 1);
  Value isLocal = arith::XOrIOp::create(e, noLocal, yes);
  Value isGathered =
      e.bitAnd(noLocal, arith::XOrIOp::create(e, noGathered, yes));

  SmallVector<Type> types(kinds.size(), e.getF64Type());
  Emitter::Values sums;
  if (!kinds.empty())
    sums = e.ifElse(
        isGathered, types, [&] { return combineRanks(); },
        [&] { return combineAtoms(); });
  if (!groupKinds.empty())
    combineGroups(isGathered, isLocal);

  LogicalResult result = success();
  e.ifTrue(
      isLocal,
      [&] {
        for (auto [i, sum] : llvm::enumerate(sums))
          e.store(sum, e.at(args.localSums, sizeof(double) * i), 8);
      },
      [&] { result = emitBody(sums); });
  return result;
}

Emitter::Values HostControlKernel::combineAtoms() {
  Emitter::Values sums;
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    Value row = getPartialRow(e, args.partials, args.partialStride, i);
    sums.push_back(emitMatrix(e, kind, row, args.atoms, buffer,
                              DFA_RT_COMBINE_COLUMNS, width));
  }
  return sums;
}

/// One accumulator of all ranks, in rank order.
Value HostControlKernel::combineRank(Combine kind, Value column,
                                     Value rowLength) {
  Value identity = emitIdentity(e);
  return e
      .loop(e.constI64(0), args.ranks, e.constI64(1), identity,
            [&](Value rank, ValueRange sum) -> Emitter::Values {
              Value index = e.add(e.mul(rank, rowLength), column);
              Value next =
                  e.loadF64(e.element(args.gathered, index, sizeof(double)));
              return {emitCombine(e, kind, sum[0], next)};
            })
      .front();
}

/// Accumulators in a rank's row of sums: the plain ones, then those of each
/// group.
static Value getRowLength(Emitter &e, const ControlArguments &args,
                          size_t plain, size_t perGroup) {
  Value length = e.constI64(plain);
  if (perGroup == 0)
    return length;
  return e.add(length, e.mul(args.groupCount, e.constI64(perGroup)));
}

Emitter::Values HostControlKernel::combineRanks() {
  Value rowLength = getRowLength(e, args, kinds.size(), groupKinds.size());
  Emitter::Values sums;
  for (auto [i, kind] : llvm::enumerate(kinds))
    sums.push_back(combineRank(kind, e.constI64(i), rowLength));
  return sums;
}

/// Over the atoms of one group; the other atoms are absent.
Value HostControlKernel::combineGroup(Combine kind, Value source, Value group) {
  emitClearColumns(e, buffer, DFA_RT_COMBINE_COLUMNS, width);
  e.loop(e.constI64(0), args.atoms, e.constI64(1), [&](Value i) {
    Value own = e.loadU32(e.element(args.atomGroups, i, sizeof(uint32_t)));
    Value mine = e.compare(arith::CmpIPredicate::eq, own, group);
    e.ifTrue(mine, [&] {
      Value column = e.bitAnd(i, e.constI64(DFA_RT_COMBINE_COLUMNS - 1));
      Value address = e.element(buffer, column, sizeof(double));
      Value next = e.loadF64(e.element(source, i, sizeof(double)));
      e.store(emitCombine(e, kind, e.loadF64(address), next), address, 8);
    });
  });
  return emitColumnTree(e, kind, buffer, DFA_RT_COMBINE_COLUMNS, width);
}

void HostControlKernel::combineGroups(Value isGathered, Value isLocal) {
  Value rowLength = getRowLength(e, args, kinds.size(), groupKinds.size());
  // Where the results go: behind the plain sums if they will be gathered.
  Value behind = e.at(args.localSums, sizeof(double) * kinds.size());
  Value target = e.select(isLocal, behind, args.groupStats);
  e.loop(e.constI64(0), args.groupCount, e.constI64(1), [&](Value group) {
    for (auto [i, kind] : llvm::enumerate(groupKinds)) {
      Value index =
          e.add(e.mul(group, e.constI64(groupKinds.size())), e.constI64(i));
      Value total =
          e.ifElse(
               isGathered, SmallVector<Type>{e.getF64Type()},
               [&]() -> Emitter::Values {
                 Value column = e.add(index, e.constI64(kinds.size()));
                 return {combineRank(kind, column, rowLength)};
               },
               [&]() -> Emitter::Values {
                 Value row = getPartialRow(e, args.partials, args.partialStride,
                                           kinds.size() + i);
                 return {combineGroup(kind, row, group)};
               })
              .front();
      e.store(total, e.element(target, index, sizeof(double)), 8);
    }
  });
}

LogicalResult HostControlKernel::emitBody(ValueRange sums) {
  TableRows rows;
  rows.control = args.control;
  return emitRegion(e, kernel.getBody(), sums, rows);
}

LogicalResult dfa::emitHostControlKernel(Emitter &emitter,
                                         ControlKernelOp kernel,
                                         ValueRange arguments, unsigned width) {
  return HostControlKernel(emitter, kernel, arguments, width).emit();
}
