// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-form-kernels: the step function as kernels and a program.

#include "FormKernels/ElementEmitter.h"
#include "FormKernels/ProgramEmitter.h"
#include "dfa/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAFORMKERNELS
#include "dfa/Transforms/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

namespace {

/// Turns one step function into kernels and a program.
class StepFormer {
public:
  explicit StepFormer(func::FuncOp step)
      : schedule(step), control(schedule, scratch), builder(step) {}

  LogicalResult run();

private:
  using Kernels = SmallVector<std::unique_ptr<ElementEmitter>>;

  LogicalResult formClass(StringAttr cls);
  LogicalResult formElements(int stage, StringAttr cls, DerivedSlots &derived);
  LogicalResult placeReduction(Kernels &kernels, ReductionOpInterface leaf,
                               function_ref<ElementEmitter &(Value)> kernelFor);
  LogicalResult orderKernels(Kernels &kernels);
  LogicalResult verifyRows(const Kernels &kernels);
  LogicalResult formSegments(int stage, StringAttr cls,
                             const DerivedSlots &derived, int countStage);
  FailureOr<Value> getCountFlag(StringAttr cls);
  LogicalResult formMark(StringAttr cls);
  FailureOr<StringAttr> getAxis(int64_t first, int64_t count);
  std::string makeName(StringRef base, StringRef cls);
  void remarkFused(KernelOp kernel, const ElementEmitter &emitter);

  StepSchedule schedule;
  ScratchSlots scratch;
  ControlEmitter control;
  OpBuilder builder;
  ProgramPlan program;
  llvm::StringSet<> names;
  /// Updates that kernels of the class at hand compute, and the last stage in
  /// which they do.
  llvm::SetVector<Operation *> updates;
  int lastUpdateStage = -1;
};

} // namespace

/// A symbol that is free in the module, and a word in every target's language.
std::string StepFormer::makeName(StringRef base, StringRef cls) {
  std::string name = base.str();
  if (!cls.empty())
    name += "_" + cls.str();
  for (char &letter : name)
    if (!llvm::isAlnum(letter))
      letter = '_';
  auto isTaken = [&](StringRef symbol) {
    return SymbolTable::lookupSymbolIn(schedule.getStep()->getParentOp(),
                                       symbol) ||
           !names.insert(symbol).second;
  };
  std::string unique = name;
  for (int next = 1; isTaken(unique); ++next)
    unique = name + "_" + std::to_string(next);
  return unique;
}

/// Whether everything that `value` leads to is disabled by `flag`, so that it
/// need not be right when the flag is set. What is in `seen` is known.
static bool onlyUsedUnder(Value value, Value flag, DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return true;
  for (Operation *user : value.getUsers()) {
    if (auto elementwise = dyn_cast<ElementwiseOpInterface>(user)) {
      if (elementwise.getUnlessFlag() == flag)
        continue;
    } else if (!isa<CombineOp, ScalarOpInterface>(user)) {
      return false;
    }
    for (Value result : user->getResults())
      if (!onlyUsedUnder(result, flag, seen))
        return false;
  }
  return true;
}

static bool onlyUsedUnder(Value value, Value flag) {
  DenseSet<Value> seen;
  return onlyUsedUnder(value, flag, seen);
}

/// The flag of all updates of a class: its step is counted once.
FailureOr<Value> StepFormer::getCountFlag(StringAttr cls) {
  UpdateOp first;
  for (Operation *op : updates) {
    auto update = cast<UpdateOp>(op);
    if (update.getOuts().empty())
      continue;
    if (first && first.getFoundInf() != update.getFoundInf()) {
      InFlightDiagnostic diag =
          update.emitOpError("expects the 'unless' flag of the other "
                             "updates of class '@")
          << cls.getValue() << "': a parameter has one step count";
      diag.attachNote(first.getLoc()) << "another update";
      return diag;
    }
    first = update;
  }
  return first ? first.getFoundInf() : Value();
}

/// Notes which parameters of `cls` have a gradient now, if the step accumulates
/// any.
LogicalResult StepFormer::formMark(StringAttr cls) {
  auto ops = schedule.getStep().getBody().front().getOps<AccumulateOp>();
  if (llvm::none_of(ops, [&](AccumulateOp op) {
        return getClassName(op.getResult()) == cls;
      }))
    return success();
  SegmentEmitter segments(schedule, scratch, program.hyper, cls);
  FailureOr<SegmentKernelOp> op =
      segments.emit(builder, makeName("mark", cls.getValue()), DerivedSlots(),
                    /*countsStep=*/false, Value(), /*marksGradient=*/true);
  if (failed(op))
    return failure();
  program.marks.push_back({FlatSymbolRefAttr::get(op->getSymNameAttr()),
                           FlatSymbolRefAttr::get(cls), false, 0, StringAttr(),
                           0});
  return success();
}

void StepFormer::remarkFused(KernelOp kernel, const ElementEmitter &emitter) {
  std::string text = llvm::formatv(
      "{0} elementwise ops and {1} reductions in one pass over {2} arrays",
      emitter.getFused().size(), emitter.reductions.size(),
      kernel.getArrays().size());
  remark::passed(kernel.getLoc(),
                 remark::RemarkOpts::name("fused").category("dfa").function(
                     kernel.getSymName()))
      << text;
}

/// A reduction joins a kernel that runs whenever its result is needed.
LogicalResult
StepFormer::placeReduction(Kernels &kernels, ReductionOpInterface leaf,
                           function_ref<ElementEmitter &(Value)> kernelFor) {
  FailureOr<Value> flag = schedule.getPredicate(leaf->getOperand(0));
  if (failed(flag))
    return failure();
  if (*flag && !onlyUsedUnder(leaf->getResult(0), *flag))
    return leaf.emitError(
        "reduces values that an 'unless' flag may keep from changing, but its "
        "result is needed even then; expects uses under the same flag only");
  for (auto &kernel : kernels) {
    bool fits =
        kernel->predicate == *flag ||
        (!*flag && onlyUsedUnder(leaf->getResult(0), kernel->predicate));
    if (!fits)
      continue;
    if (!llvm::is_contained(kernel->reductions, leaf))
      kernel->reductions.push_back(leaf);
    return success();
  }
  if (!kernels.empty())
    remark::missed(leaf.getLoc(),
                   remark::RemarkOpts::name("separate")
                       .category("dfa")
                       .function(getClassName(leaf->getOperand(0)).getValue()))
        << "reduction not fused with the stores of its stage: its result is "
           "needed even if they are skipped";
  kernelFor(*flag).reductions.push_back(leaf);
  return success();
}

/// A kernel that reads an array comes before the one that overwrites it.
LogicalResult StepFormer::orderKernels(Kernels &kernels) {
  Kernels ordered;
  while (!kernels.empty()) {
    auto isFree = [&](const std::unique_ptr<ElementEmitter> &kernel) {
      return llvm::none_of(kernels, [&](const auto &other) {
        return other != kernel && other->readsFrom(*kernel);
      });
    };
    auto next = llvm::find_if(kernels, isFree);
    if (next == kernels.end())
      return emitError(kernels[0]->stores[0].value.getLoc())
             << "is computed apart from other values, by their 'unless' "
                "flags, and each needs what the other overwrites";
    ordered.push_back(std::move(*next));
    kernels.erase(next);
  }
  kernels = std::move(ordered);
  return success();
}

/// A kernel writes all rows from its first to its last, so no other kernel of
/// the class may contribute to one of them.
LogicalResult StepFormer::verifyRows(const Kernels &kernels) {
  for (const auto &kernel : kernels) {
    SmallVector<const AccumulatorRow *> rows = kernel->getRows();
    for (const auto &other : kernels) {
      if (other == kernel || rows.empty())
        continue;
      for (const AccumulatorRow *row : other->getRows())
        if (row->index >= rows.front()->index &&
            row->index <= rows.back()->index)
          return emitError(row->partial.getLoc(),
                           "expects the norms and flags that are ready "
                           "together to be needed under the same 'unless' "
                           "flag");
    }
  }
  return success();
}

LogicalResult StepFormer::formElements(int stage, StringAttr cls,
                                       DerivedSlots &derived) {
  // One kernel for each flag that disables its stores.
  Kernels kernels;
  auto kernelFor = [&](Value flag) -> ElementEmitter & {
    for (auto &kernel : kernels)
      if (kernel->predicate == flag)
        return *kernel;
    kernels.push_back(std::make_unique<ElementEmitter>(schedule, scratch,
                                                       derived, stage, cls));
    kernels.back()->predicate = flag;
    return *kernels.back();
  };
  for (const StoredValue &stored : schedule.getStage(stage).stores) {
    if (getClassName(stored.value) != cls)
      continue;
    FailureOr<Value> flag = schedule.getPredicate(stored.value);
    if (failed(flag))
      return failure();
    kernelFor(*flag).stores.push_back(stored);
  }
  for (const AccumulatorRow &row : schedule.getStage(stage).rows)
    for (ReductionOpInterface leaf : row.leaves)
      if (getClassName(leaf->getOperand(0)) == cls &&
          failed(placeReduction(kernels, leaf, kernelFor)))
        return failure();
  for (auto &kernel : kernels)
    if (failed(kernel->discover()))
      return failure();
  if (failed(orderKernels(kernels)) || failed(verifyRows(kernels)))
    return failure();
  for (auto &kernel : kernels) {
    StringRef base = kernel->stores.empty()             ? "reduce"
                     : stage < schedule.getFirstStage() ? "accumulate"
                                                        : "update";
    FailureOr<KernelOp> op =
        kernel->emit(builder, makeName(base, cls.getValue()));
    if (failed(op))
      return failure();
    remarkFused(*op, *kernel);
    program.stages[stage].elements.push_back(
        {FlatSymbolRefAttr::get(op->getSymNameAttr()),
         FlatSymbolRefAttr::get(cls), op->getNumAccumulators() > 0,
         kernel->getFirstRow(), StringAttr(), 0});
    for (Operation *fused : kernel->getFused()) {
      if (!isa<UpdateOp>(fused))
        continue;
      updates.insert(fused);
      lastUpdateStage = stage;
    }
  }
  return success();
}

/// The axis over which all of some accumulators are combined, or null.
FailureOr<StringAttr> StepFormer::getAxis(int64_t first, int64_t count) {
  const AccumulatorRow *known = nullptr;
  for (const KernelStage &stage : schedule.getStages())
    for (const AccumulatorRow &row : stage.rows) {
      if (row.index < first || row.index >= first + count)
        continue;
      if (known && known->axis != row.axis) {
        InFlightDiagnostic diag =
            emitError(row.partial.getLoc(),
                      "expects statistics of parameters that are needed "
                      "together to be combined over the same ranks");
        diag.attachNote(known->partial.getLoc()) << "another one";
        return diag;
      }
      known = &row;
    }
  return known ? known->axis : StringAttr();
}

LogicalResult StepFormer::formSegments(int stage, StringAttr cls,
                                       const DerivedSlots &derived,
                                       int countStage) {
  if (derived.getValues().empty() && stage != countStage)
    return success();
  FailureOr<Value> flag = getCountFlag(cls);
  if (failed(flag))
    return failure();
  SegmentEmitter segments(schedule, scratch, program.hyper, cls);
  FailureOr<SegmentKernelOp> op =
      segments.emit(builder, makeName("segments", cls.getValue()), derived,
                    stage == countStage, *flag, /*marksGradient=*/false);
  if (failed(op))
    return failure();
  FailureOr<StringAttr> axis =
      getAxis(segments.getFirstRow(), op->getNumAccumulators());
  if (failed(axis))
    return failure();
  program.stages[stage].segments.push_back(
      {FlatSymbolRefAttr::get(op->getSymNameAttr()),
       FlatSymbolRefAttr::get(cls), false, segments.getFirstRow(), *axis,
       op->getNumAccumulators()});
  int64_t &count = program.derived[cls];
  count = std::max(count, static_cast<int64_t>(derived.getValues().size()));
  return success();
}

/// Element kernels of all stages first: steps are counted in the last stage
/// that needs the count.
LogicalResult StepFormer::formClass(StringAttr cls) {
  int stages = static_cast<int>(schedule.getStages().size());
  SmallVector<DerivedSlots> derived(stages);
  updates.clear();
  lastUpdateStage = -1;
  for (int stage = 0; stage < stages; ++stage)
    if (failed(formElements(stage, cls, derived[stage])))
      return failure();
  if (failed(formMark(cls)))
    return failure();
  for (int stage = 0; stage < stages; ++stage)
    if (failed(formSegments(stage, cls, derived[stage], lastUpdateStage)))
      return failure();
  return success();
}

LogicalResult StepFormer::run() {
  if (failed(schedule.build()) || failed(control.requestSlots()))
    return failure();
  int last = static_cast<int>(schedule.getStages().size()) - 1;
  if (!schedule.getControlStages().empty())
    last = std::max(last, *schedule.getControlStages().rbegin());
  program.stages.resize(last + 1);
  for (StringAttr cls : schedule.getClasses())
    if (failed(formClass(cls)))
      return failure();
  // After the kernels, so that every scalar they load has its slot.
  for (int stage : schedule.getControlStages()) {
    FailureOr<ControlKernelOp> op =
        control.emit(builder, stage, makeName("control", ""));
    if (failed(op))
      return failure();
    program.stages[stage].control =
        FlatSymbolRefAttr::get(op->getSymNameAttr());
  }
  if (failed(
          emitProgram(builder, schedule, program, makeName("zero_grad", ""))))
    return failure();
  schedule.getStep().erase();
  return success();
}

/// What the passes before this one would have replaced.
static LogicalResult verifyPrepared(func::FuncOp step) {
  WalkResult result = step.walk([](Operation *op) {
    if (isa<RuleOpInterface>(op))
      op->emitError("expects generic updates; run dfa-generalize-rules first");
    else if (isa<ClipOp>(op))
      op->emitOpError("expects to be a factor by now; run dfa-defer-factors "
                      "first");
    else
      return WalkResult::advance();
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {

struct FormKernels : dfa::impl::DfaFormKernelsBase<FormKernels> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> steps;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.getSymName() == "step" && !function.isExternal())
        steps.push_back(function);
    for (func::FuncOp step : steps) {
      if (!llvm::hasSingleElement(step.getBody())) {
        step.emitError("expects a step of one block");
        return signalPassFailure();
      }
      if (failed(verifyPrepared(step)) || failed(StepFormer(step).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
