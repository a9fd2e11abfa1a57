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
  LogicalResult formStage(int stage);
  LogicalResult formClass(int stage, StringAttr cls);
  LogicalResult formElements(int stage, StringAttr cls, DerivedSlots &derived,
                             SmallVectorImpl<LaunchPlan> &launches);
  bool onlyUsedUnder(Value value, Value flag);
  bool isLastUpdateStage(int stage, StringAttr cls, Value &flag);
  std::string makeName(StringRef base, StringRef cls, int stage);
  void remarkFused(KernelOp kernel, const ElementEmitter &emitter);

  StepSchedule schedule;
  ScratchSlots scratch;
  ControlEmitter control;
  OpBuilder builder;
  ProgramPlan program;
  llvm::StringSet<> names;
};

} // namespace

std::string StepFormer::makeName(StringRef base, StringRef cls, int stage) {
  std::string name = base.str();
  if (!cls.empty())
    name += "_" + cls.str();
  std::string unique = name;
  for (int next = 1; !names.insert(unique).second; ++next)
    unique = name + "_" + std::to_string(next);
  return unique;
}

/// Whether everything that `value` leads to is disabled by `flag`, so that it
/// need not be right when the flag is set.
bool StepFormer::onlyUsedUnder(Value value, Value flag) {
  for (Operation *user : value.getUsers()) {
    if (auto elementwise = dyn_cast<ElementwiseOpInterface>(user)) {
      if (elementwise.getUnlessFlag() == flag)
        continue;
    } else if (!isa<CombineOp, ScalarOpInterface>(user)) {
      return false;
    }
    for (Value result : user->getResults())
      if (!onlyUsedUnder(result, flag))
        return false;
  }
  return true;
}

/// Whether `stage` is the last in which an update changes something of `cls`;
/// steps are counted there. `flag` becomes the updates' flag.
bool StepFormer::isLastUpdateStage(int stage, StringAttr cls, Value &flag) {
  int last = -1;
  for (auto update :
       schedule.getStep().getBody().front().getOps<UpdateOp>()) {
    if (update.getOuts().empty() ||
        getClassName(update.getResult(0)) != cls)
      continue;
    int at = schedule.getStage(update.getResult(0));
    if (at >= last) {
      last = at;
      flag = update.getFoundInf();
    }
  }
  return last == stage;
}

void StepFormer::remarkFused(KernelOp kernel, const ElementEmitter &emitter) {
  std::string text = llvm::formatv(
      "{0} elementwise ops and {1} reductions in one pass over {2} arrays",
      emitter.getFused().size(), emitter.reductions.size(),
      kernel.getArrays().size());
  remark::passed(kernel.getLoc(), remark::RemarkOpts::name("fused")
                                      .category("dfa")
                                      .function(kernel.getSymName()))
      << text;
}

LogicalResult
StepFormer::formElements(int stage, StringAttr cls, DerivedSlots &derived,
                         SmallVectorImpl<LaunchPlan> &launches) {
  // One kernel for each flag that disables its stores; reductions join the
  // first where they may.
  SmallVector<std::unique_ptr<ElementEmitter>> kernels;
  auto kernelFor = [&](Value flag) -> ElementEmitter & {
    for (auto &kernel : kernels)
      if (kernel->predicate == flag)
        return *kernel;
    kernels.push_back(std::make_unique<ElementEmitter>(
        schedule, scratch, derived, stage, cls));
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
  for (const AccumulatorRow &row : schedule.getStage(stage).rows) {
    for (ReductionOpInterface leaf : row.leaves) {
      if (getClassName(leaf->getOperand(0)) != cls)
        continue;
      FailureOr<Value> flag = schedule.getPredicate(leaf->getOperand(0));
      if (failed(flag))
        return failure();
      ElementEmitter *home = nullptr;
      for (auto &kernel : kernels) {
        bool fits = kernel->predicate == *flag ||
                    (!*flag && onlyUsedUnder(leaf->getResult(0),
                                             kernel->predicate));
        if (fits && !home)
          home = kernel.get();
      }
      if (!home && !kernels.empty())
        remark::missed(leaf.getLoc(), remark::RemarkOpts::name("separate")
                                          .category("dfa")
                                          .function(cls.getValue()))
            << "reduction not fused with the stores of its stage: its result "
               "is needed even if they are skipped";
      if (!home)
        home = &kernelFor(*flag);
      if (!llvm::is_contained(home->reductions, leaf))
        home->reductions.push_back(leaf);
    }
  }
  // Kernels without stores first: they read what the others overwrite.
  llvm::stable_sort(kernels, [](const auto &a, const auto &b) {
    return a->stores.empty() > b->stores.empty();
  });
  for (auto &kernel : kernels) {
    StringRef base = kernel->stores.empty() ? "reduce" : "update";
    FailureOr<KernelOp> op =
        kernel->emit(builder, makeName(base, cls.getValue(), stage));
    if (failed(op))
      return failure();
    remarkFused(*op, *kernel);
    launches.push_back({FlatSymbolRefAttr::get(op->getSymNameAttr()),
                        FlatSymbolRefAttr::get(cls),
                        op->getNumAccumulators() > 0, kernel->getFirstRow()});
  }
  return success();
}

LogicalResult StepFormer::formClass(int stage, StringAttr cls) {
  DerivedSlots derived;
  SmallVector<LaunchPlan> elements;
  if (failed(formElements(stage, cls, derived, elements)))
    return failure();
  Value flag;
  bool countsStep = isLastUpdateStage(stage, cls, flag);
  if (!derived.getValues().empty() || countsStep) {
    SegmentEmitter segments(schedule, scratch, program.hyper, cls);
    FailureOr<SegmentKernelOp> op =
        segments.emit(builder, makeName("segments", cls.getValue(), stage),
                      derived, countsStep, flag);
    if (failed(op))
      return failure();
    program.stages[stage].segments.push_back(
        {FlatSymbolRefAttr::get(op->getSymNameAttr()),
         FlatSymbolRefAttr::get(cls), false, segments.getFirstRow()});
    int64_t &count = program.derived[cls];
    count = std::max(count,
                     static_cast<int64_t>(derived.getValues().size()));
  }
  llvm::append_range(program.stages[stage].elements, elements);
  return success();
}

LogicalResult StepFormer::formStage(int stage) {
  for (StringAttr cls : schedule.getClasses())
    if (failed(formClass(stage, cls)))
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
  for (int stage = 0; stage < static_cast<int>(schedule.getStages().size());
       ++stage)
    if (failed(formStage(stage)))
      return failure();
  // After the kernels, so that every scalar they load has its slot.
  for (int stage : schedule.getControlStages()) {
    FailureOr<ControlKernelOp> op =
        control.emit(builder, stage, makeName("control", "", stage));
    if (failed(op))
      return failure();
    program.stages[stage].control =
        FlatSymbolRefAttr::get(op->getSymNameAttr());
  }
  if (failed(emitProgram(builder, schedule, program)))
    return failure();
  schedule.getStep().erase();
  return success();
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
      WalkResult named = step.walk([](RuleOpInterface rule) {
        rule.emitError("expects generic updates; run dfa-generalize-rules "
                       "first");
        return WalkResult::interrupt();
      });
      if (named.wasInterrupted() || failed(StepFormer(step).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
