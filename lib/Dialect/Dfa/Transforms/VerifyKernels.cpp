// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-verify-kernels: kernels, tables and commands of level C fit together.

#include "dfa/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAVERIFYKERNELS
#include "dfa/Transforms/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

namespace {

class ProgramVerifier {
public:
  explicit ProgramVerifier(ProgramOp program) : program(program) {
    for (auto cls : program.getBody().getOps<ProgramClassOp>())
      classes[cls.getCls()] = cls;
  }

  LogicalResult run();

private:
  LogicalResult verifyLaunch(LaunchElementsOp launch);
  LogicalResult verifyLaunch(LaunchControlOp launch);
  LogicalResult verifyLaunch(LaunchSegmentsOp launch);
  LogicalResult verifyArrays(LaunchElementsOp launch, KernelOp kernel,
                             ProgramClassOp cls);
  LogicalResult verifySlots(Operation *launch, Operation *kernel,
                            ProgramClassOp cls);
  LogicalResult verifyRows(Operation *launch, int64_t first, int64_t count);
  LogicalResult verifyCollective(CollectiveOp op);
  LogicalResult verifyEvents(EntryOp entry);
  FailureOr<ProgramClassOp> findClass(Operation *op, StringRef name);

  template <typename KernelT>
  FailureOr<KernelT> findKernel(Operation *launch, FlatSymbolRefAttr name) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelT>(
        program->getParentOp(), name);
    if (kernel)
      return kernel;
    return launch->emitOpError("expects ")
           << name << " to be a '" << KernelT::getOperationName()
           << "', but found none";
  }

  ProgramOp program;
  llvm::StringMap<ProgramClassOp> classes;
};

} // namespace

FailureOr<ProgramClassOp> ProgramVerifier::findClass(Operation *op,
                                                     StringRef name) {
  auto it = classes.find(name);
  if (it != classes.end())
    return it->second;
  return op->emitOpError("expects a 'dfa.program_class' '@")
         << name << "' in this program, but found none";
}

LogicalResult ProgramVerifier::verifyRows(Operation *launch, int64_t first,
                                          int64_t count) {
  int64_t rows = program.getAccumulators();
  if (count == 0 || (first >= 0 && first + count <= rows))
    return success();
  return launch->emitOpError("expects accumulator rows ")
         << first << " to " << first + count - 1 << " to be among the " << rows
         << " of the program";
}

LogicalResult ProgramVerifier::verifyArrays(LaunchElementsOp launch,
                                            KernelOp kernel,
                                            ProgramClassOp cls) {
  for (auto array : kernel.getArrays().getAsRange<KernelArrayAttr>()) {
    auto names = cls.getArrays().getAsRange<StringAttr>();
    auto it = llvm::find(names, array.getName());
    if (it == names.end())
      return launch.emitOpError("expects class ")
             << cls.getClsAttr() << " to have the kernel's array "
             << array.getName();
    Type type = cast<TypeAttr>(cls.getTypes()[std::distance(names.begin(), it)])
                    .getValue();
    if (type != array.getType())
      return launch.emitOpError("expects array ")
             << array.getName() << " with elements of type " << type
             << ", but the kernel has " << array.getType();
  }
  return success();
}

/// Columns and slots that kernels name are in the tables of the program.
LogicalResult ProgramVerifier::verifySlots(Operation *launch, Operation *kernel,
                                           ProgramClassOp cls) {
  WalkResult result = kernel->walk([&](Operation *op) {
    auto check = [&](int64_t slot, int64_t limit,
                     StringRef what) -> WalkResult {
      if (slot < limit)
        return WalkResult::advance();
      InFlightDiagnostic diag = op->emitOpError("expects ")
                                << what << " below " << limit << ", but got "
                                << slot;
      diag.attachNote(launch->getLoc()) << "launched here";
      return WalkResult::interrupt();
    };
    if (auto load = dyn_cast<LoadHyperOp>(op)) {
      ArrayAttr names = program.getHyper();
      WalkResult inRange =
          check(load.getColumn(), names.size(), "a column of the group table");
      if (inRange.wasInterrupted())
        return inRange;
      auto name = cast<StringAttr>(names[load.getColumn()]);
      if (name == load.getNameAttr())
        return WalkResult::advance();
      op->emitOpError("expects column ")
          << load.getColumn() << " to be " << load.getNameAttr()
          << ", but the program has " << name;
      return WalkResult::interrupt();
    }
    if (auto load = dyn_cast<LoadGroupStatOp>(op))
      return check(load.getSlot(), program.getGroupStats(),
                   "a group statistic");
    if (auto load = dyn_cast<LoadDerivedOp>(op))
      return check(load.getSlot(), cls.getDerived(), "a derived value");
    if (auto store = dyn_cast<StoreDerivedOp>(op))
      return check(store.getSlot(), cls.getDerived(), "a derived value");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ProgramVerifier::verifyLaunch(LaunchElementsOp launch) {
  FailureOr<KernelOp> kernel =
      findKernel<KernelOp>(launch, launch.getKernelAttr());
  FailureOr<ProgramClassOp> cls = findClass(launch, launch.getCls());
  if (failed(kernel) || failed(cls))
    return failure();
  bool accumulates = kernel->getNumAccumulators() > 0;
  if (accumulates != (launch.getTable() == Table::Atoms))
    return launch.emitOpError("expects a kernel ")
           << (accumulates ? "with accumulators to run over 'atoms'"
                           : "without accumulators to run over 'chunks'");
  return failure(failed(verifyArrays(launch, *kernel, *cls)) ||
                 failed(verifySlots(launch, *kernel, *cls)) ||
                 failed(verifyRows(launch, launch.getAcc(),
                                   kernel->getNumAccumulators())));
}

LogicalResult ProgramVerifier::verifyLaunch(LaunchControlOp launch) {
  FailureOr<ControlKernelOp> kernel =
      findKernel<ControlKernelOp>(launch, launch.getKernelAttr());
  if (failed(kernel))
    return failure();
  return verifyRows(launch, launch.getAcc(), kernel->getNumAccumulators());
}

LogicalResult ProgramVerifier::verifyLaunch(LaunchSegmentsOp launch) {
  FailureOr<SegmentKernelOp> kernel =
      findKernel<SegmentKernelOp>(launch, launch.getKernelAttr());
  FailureOr<ProgramClassOp> cls = findClass(launch, launch.getCls());
  if (failed(kernel) || failed(cls))
    return failure();
  return failure(failed(verifySlots(launch, *kernel, *cls)) ||
                 failed(verifyRows(launch, launch.getAcc(),
                                   kernel->getNumAccumulators())));
}

LogicalResult ProgramVerifier::verifyCollective(CollectiveOp op) {
  if (!op.getCls())
    return verifyRows(op, op.getAcc(), op.getAccs());
  FailureOr<ProgramClassOp> cls = findClass(op, *op.getCls());
  if (failed(cls))
    return failure();
  // Not an array of the class, but a table of the runtime.
  if (op.getSource() == "presence")
    return success();
  if (op.getSource() == "stats")
    return verifyRows(op, op.getAcc(), op.getAccs());
  for (StringRef array : {op.getSource(), op.getTarget()})
    if (!llvm::is_contained(cls->getArrays(),
                            StringAttr::get(op.getContext(), array)))
      return op.emitOpError("expects an array of class ")
             << cls->getClsAttr() << ", but got '" << array << "'";
  return success();
}

/// A wait for what nobody records would never do anything.
LogicalResult ProgramVerifier::verifyEvents(EntryOp entry) {
  llvm::StringSet<> recorded;
  WalkResult result = entry.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto record = dyn_cast<RecordOp>(op))
      recorded.insert(record.getEvent());
    auto wait = dyn_cast<WaitOp>(op);
    if (!wait || recorded.contains(wait.getEvent()))
      return WalkResult::advance();
    wait.emitOpError("expects event '")
        << wait.getEvent() << "' to be recorded before in this entry";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ProgramVerifier::run() {
  WalkResult result = program.walk([&](Operation *op) {
    LogicalResult ok = success();
    if (auto launch = dyn_cast<LaunchElementsOp>(op))
      ok = verifyLaunch(launch);
    else if (auto launch = dyn_cast<LaunchControlOp>(op))
      ok = verifyLaunch(launch);
    else if (auto launch = dyn_cast<LaunchSegmentsOp>(op))
      ok = verifyLaunch(launch);
    else if (auto collective = dyn_cast<CollectiveOp>(op))
      ok = verifyCollective(collective);
    else if (auto entry = dyn_cast<EntryOp>(op))
      ok = verifyEvents(entry);
    return failed(ok) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {

struct VerifyKernels : dfa::impl::DfaVerifyKernelsBase<VerifyKernels> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.getSymName() != "step")
        continue;
      function.emitError("expects no step function at level C; run "
                         "dfa-form-kernels first");
      return signalPassFailure();
    }
    WalkResult lowered = getOperation().walk([](Operation *op) {
      if (!isa<RuleOpInterface, ElementwiseOpInterface, ReductionOpInterface,
               ControlOpInterface, CombineOp, NormFinishOp, FlagFinishOp,
               ReduceScatterOp, AllReduceOp, AllGatherOp, BroadcastOp>(op))
        return WalkResult::advance();
      op->emitOpError("expects no op of level B at level C; only functions "
                      "named 'step' are compiled");
      return WalkResult::interrupt();
    });
    if (lowered.wasInterrupted())
      return signalPassFailure();
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(ProgramVerifier(program).run()))
        return signalPassFailure();
  }
};

} // namespace
