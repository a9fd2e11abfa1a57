// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program: kernels and collectives of all stages as one command list.

#include "ProgramEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

/// Emits commands; puts events between the two streams where one needs what
/// the other did.
class CommandEmitter {
public:
  CommandEmitter(OpBuilder &builder, StepSchedule &schedule,
                 const ProgramPlan &plan, StringRef zeroGrad)
      : builder(builder), schedule(schedule), plan(plan), zeroGrad(zeroGrad),
        loc(schedule.getStep().getLoc()) {}

  LogicalResult run();

private:
  void emitClasses();
  void emitEntry(Entry kind, function_ref<void()> body);
  void emitFill();
  void emitReduce();
  void emitFinish();
  void emitZeroGrad();
  void emitMemsets();
  void emitStage(size_t stage);
  void emitPresence();
  void emitReadBack();
  void emitControl(size_t stage);
  void emitSegments(const LaunchPlan &launch);
  void emitCollective(Operation *op);
  void emitElements(const LaunchPlan &launch);
  void emitGathers(size_t stage);
  bool reducesByBucket() const;
  ArrayRef<Operation *> reductions() const {
    return schedule.getStages()[schedule.getFirstStage()].collectives;
  }
  SmallVector<Operation *> gathersOf(size_t stage, StringAttr cls) const;

  /// Orders `to` behind everything on `from`.
  void join(Stream from, Stream to);

  OpBuilder &builder;
  StepSchedule &schedule;
  const ProgramPlan &plan;
  StringRef zeroGrad;
  Location loc;
  int nextEvent = 0;
  /// Stage of the last control kernel, after which the control block is as the
  /// host will see it.
  std::optional<size_t> lastControl;
};

} // namespace

void CommandEmitter::join(Stream from, Stream to) {
  std::string event = "e" + std::to_string(nextEvent++);
  RecordOp::create(builder, loc, event, from);
  WaitOp::create(builder, loc, event, to);
}

void CommandEmitter::emitClasses() {
  for (StringAttr cls : schedule.getClasses()) {
    SmallVector<Attribute> names, types, parts;
    for (const StepSchedule::ArrayInfo &info : schedule.getArrays(cls)) {
      names.push_back(info.name);
      types.push_back(TypeAttr::get(info.type));
      parts.push_back(PartAttr::get(builder.getContext(), info.part));
    }
    ProgramClassOp::create(
        builder, loc, FlatSymbolRefAttr::get(cls), builder.getArrayAttr(names),
        builder.getArrayAttr(types), builder.getArrayAttr(parts),
        builder.getI64IntegerAttr(plan.derived.lookup(cls)));
  }
}

void CommandEmitter::emitEntry(Entry kind, function_ref<void()> body) {
  auto entry = EntryOp::create(builder, loc, kind);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&entry.getBody());
  body();
}

void CommandEmitter::emitElements(const LaunchPlan &launch) {
  LaunchElementsOp::create(builder, loc, launch.kernel.getValue(),
                           launch.cls.getValue(),
                           launch.accumulates ? Table::Atoms : Table::Chunks,
                           launch.firstRow, ValueRange());
}

static std::optional<Collective> getKind(Operation *op) {
  if (isa<ReduceScatterOp>(op))
    return Collective::ReduceScatter;
  if (isa<AllReduceOp>(op))
    return Collective::AllReduce;
  if (isa<AllGatherOp>(op))
    return Collective::AllGather;
  if (isa<BroadcastOp>(op))
    return Collective::Broadcast;
  return std::nullopt;
}

void CommandEmitter::emitCollective(Operation *op) {
  Value result = op->getResult(0);
  StringAttr array = schedule.getArray(result, schedule.getStage(result));
  Reduction reduction = Reduction::Sum;
  Order order = Order::Any;
  if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    reduction = scatter.getReduction();
    order = scatter.getOrder();
  }
  if (auto reduce = dyn_cast<AllReduceOp>(op)) {
    reduction = reduce.getReduction();
    order = reduce.getOrder();
  }
  CollectiveOp::create(builder, loc, *getKind(op),
                       op->getAttrOfType<StringAttr>("axis"),
                       FlatSymbolRefAttr::get(getClassName(result)), array,
                       array, reduction, order, 0, 0);
}

/// Sums of all ranks are gathered and added in rank order by the kernel.
void CommandEmitter::emitControl(size_t stage) {
  FlatSymbolRefAttr kernel = plan.stages[stage].control;
  if (!kernel)
    return;
  StringAttr axis;
  int64_t first = 0, count = 0, groups = 0;
  if (stage > 0)
    for (const AccumulatorRow &row : schedule.getStage(stage - 1).rows) {
      if (row.scope == Scope::Param)
        continue;
      // All rows that are ready together have the same axis.
      if (count++ == 0)
        first = row.index;
      groups += row.scope == Scope::Group;
      axis = row.axis;
    }
  if (!axis) {
    LaunchControlOp::create(builder, loc, kernel.getValue(), ControlMode::Whole,
                            first);
    return;
  }
  LaunchControlOp::create(builder, loc, kernel.getValue(), ControlMode::Local,
                          first);
  join(Stream::Compute, Stream::Comm);
  CollectiveOp::create(builder, loc, Collective::AllGather, axis,
                       FlatSymbolRefAttr(), "sums", "sums", Reduction::Sum,
                       Order::Rank, first, count, groups);
  join(Stream::Comm, Stream::Compute);
  LaunchControlOp::create(builder, loc, kernel.getValue(),
                          ControlMode::Gathered, first);
}

/// Collectives that read what kernels of `stage` store, for one class.
SmallVector<Operation *> CommandEmitter::gathersOf(size_t stage,
                                                   StringAttr cls) const {
  SmallVector<Operation *> result;
  if (stage + 1 >= schedule.getStages().size())
    return result;
  for (Operation *op : schedule.getStages()[stage + 1].collectives)
    if (getClassName(op->getResult(0)) == cls)
      result.push_back(op);
  return result;
}

/// Gradients are reduced, and their norm taken, bucket by bucket while the
/// backward pass runs, if nothing else comes before.
bool CommandEmitter::reducesByBucket() const {
  // Which parameters have a gradient is known to all in finish only.
  if (schedule.getStep()->hasAttr(kPresenceAttr))
    return false;
  int first = schedule.getFirstStage();
  return !reductions().empty() && !plan.stages[first].control &&
         plan.stages[first].segments.empty() &&
         schedule.getStages()[first].stores.empty();
}

/// A contribution of gradients: copied or added, then noted.
void CommandEmitter::emitFill() {
  UploadOp::create(builder, loc, "segments");
  // Of whole parameters: what a rank owns is cut out when they are reduced.
  for (const LaunchPlan &launch : plan.stages[0].elements)
    LaunchElementsOp::create(builder, loc, launch.kernel.getValue(),
                             launch.cls.getValue(), Table::Full,
                             launch.firstRow, ValueRange());
  for (const LaunchPlan &launch : plan.marks)
    LaunchSegmentsOp::create(builder, loc, launch.kernel.getValue(),
                             launch.cls.getValue(), launch.firstRow);
}

/// The norm of a bucket runs beside the reduction of the next one; commands
/// behind a collective wait for that bucket only.
void CommandEmitter::emitReduce() {
  join(Stream::Compute, Stream::Comm);
  bool together = reducesByBucket();
  ArrayRef<LaunchPlan> launches =
      plan.stages[schedule.getFirstStage()].elements;
  for (StringAttr cls : schedule.getClasses()) {
    bool reduces = llvm::any_of(reductions(), [&](Operation *op) {
      return getClassName(op->getResult(0)) == cls;
    });
    OpBuilder::InsertionGuard guard(builder);
    if (reduces) {
      auto loop =
          ForEachBucketOp::create(builder, loc, FlatSymbolRefAttr::get(cls));
      builder.createBlock(&loop.getBody());
      for (Operation *op : reductions())
        if (getClassName(op->getResult(0)) == cls)
          emitCollective(op);
      if (together)
        join(Stream::Comm, Stream::Compute);
    }
    if (!together)
      continue;
    for (const LaunchPlan &launch : launches)
      if (launch.cls.getAttr() == cls)
        emitElements(launch);
  }
  if (!together)
    join(Stream::Comm, Stream::Compute);
}

/// Element kernels whose results are gathered go bucket by bucket, so that
/// the update of one overlaps the gather of the one before.
void CommandEmitter::emitGathers(size_t stage) {
  bool gathered = false;
  for (StringAttr cls : schedule.getClasses()) {
    SmallVector<Operation *> gathers = gathersOf(stage, cls);
    SmallVector<LaunchPlan> launches;
    for (const LaunchPlan &launch : plan.stages[stage].elements)
      if (launch.cls.getAttr() == cls)
        launches.push_back(launch);
    if (gathers.empty()) {
      for (const LaunchPlan &launch : launches)
        emitElements(launch);
      continue;
    }
    gathered = true;
    auto loop =
        ForEachBucketOp::create(builder, loc, FlatSymbolRefAttr::get(cls));
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&loop.getBody());
    for (const LaunchPlan &launch : launches)
      emitElements(launch);
    join(Stream::Compute, Stream::Comm);
    for (Operation *op : gathers)
      emitCollective(op);
  }
  if (gathered)
    join(Stream::Comm, Stream::Compute);
}

/// Statistics of parameters that lie on several ranks are gathered and added in
/// rank order by the kernel, as sums are.
void CommandEmitter::emitSegments(const LaunchPlan &launch) {
  auto launchIn = [&](ControlMode mode) {
    LaunchSegmentsOp::create(builder, loc, launch.kernel.getValue(),
                             launch.cls.getValue(), launch.firstRow, mode);
  };
  if (!launch.axis)
    return launchIn(ControlMode::Whole);
  launchIn(ControlMode::Local);
  join(Stream::Compute, Stream::Comm);
  CollectiveOp::create(builder, loc, Collective::AllGather, launch.axis,
                       launch.cls, "stats", "stats", Reduction::Sum,
                       Order::Rank, launch.firstRow, launch.rows);
  join(Stream::Comm, Stream::Compute);
  launchIn(ControlMode::Gathered);
}

void CommandEmitter::emitStage(size_t stage) {
  emitControl(stage);
  if (lastControl == stage)
    emitReadBack();
  for (const LaunchPlan &launch : plan.stages[stage].segments)
    emitSegments(launch);
  emitGathers(stage);
}

void CommandEmitter::emitFinish() {
  UploadOp::create(builder, loc, "segments");
  UploadOp::create(builder, loc, "groups");
  emitPresence();
  size_t first = schedule.getFirstStage() + (reducesByBucket() ? 1 : 0);
  for (size_t stage = first; stage < plan.stages.size(); ++stage)
    if (plan.stages[stage].control)
      lastControl = stage;
  // Where nothing comes after it, there is nothing to be beside of.
  if (lastControl && *lastControl + 1 == plan.stages.size() &&
      plan.stages.back().segments.empty() &&
      plan.stages.back().elements.empty())
    lastControl.reset();
  for (size_t stage = first; stage < plan.stages.size(); ++stage)
    emitStage(stage);
  emitMemsets();
  if (lastControl)
    join(Stream::Side, Stream::Compute);
  else
    ReadBackOp::create(builder, loc);
}

/// The control block goes to the host beside the kernels that are left.
void CommandEmitter::emitReadBack() {
  join(Stream::Compute, Stream::Side);
  ReadBackOp::create(builder, loc, Stream::Side);
}

/// What any rank saw counts, on all the axes that the step names.
void CommandEmitter::emitPresence() {
  auto axes = schedule.getStep()->getAttrOfType<ArrayAttr>(kPresenceAttr);
  if (!axes || axes.empty())
    return;
  join(Stream::Compute, Stream::Comm);
  for (auto axis : axes.getAsRange<StringAttr>())
    CollectiveOp::create(builder, loc, Collective::AllReduce, axis,
                         FlatSymbolRefAttr(), "presence", "presence",
                         Reduction::Max, Order::Any, 0, 0);
  join(Stream::Comm, Stream::Compute);
}

/// Gradients that the user sees become zeros. The modes of a step's zero_grad
/// hold for its entry of that name too.
void CommandEmitter::emitMemsets() {
  llvm::SetVector<std::pair<StringAttr, StringAttr>> arrays;
  for (auto zero : schedule.getStep().getBody().front().getOps<ZeroGradOp>())
    for (Value grad : zero.getGrads())
      arrays.insert({getClassName(grad), schedule.getArray(grad, 0)});
  for (auto [cls, array] : arrays)
    MemsetOp::create(builder, loc, FlatSymbolRefAttr::get(cls), array);
}

void CommandEmitter::emitZeroGrad() {
  LaunchControlOp::create(builder, loc, zeroGrad, ControlMode::Whole, 0);
  emitMemsets();
}

LogicalResult CommandEmitter::run() {
  // A control kernel of its own: zero_grad is also an entry point.
  ArrayAttr none = builder.getArrayAttr({});
  auto zero = ControlKernelOp::create(builder, loc, zeroGrad, none, none);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&zero.getBody());
    Type i32 = builder.getI32Type();
    Value generation = LoadControlOp::create(builder, loc, i32, "generation");
    Value one = arith::ConstantIntOp::create(builder, loc, 1, 32);
    Value next = arith::AddIOp::create(builder, loc, generation, one);
    StoreControlOp::create(builder, loc, "generation", next);
    YieldOp::create(builder, loc);
  }

  int64_t groupStats = 0;
  FlatSymbolRefAttr layout;
  for (const KernelStage &stage : schedule.getStages())
    for (const AccumulatorRow &row : stage.rows)
      groupStats += row.scope == Scope::Group;
  for (Value argument : schedule.getStep().getArguments())
    if (auto flat = dyn_cast<FlatType>(argument.getType()))
      layout = flat.getLayout();
  if (!layout)
    return schedule.getStep().emitError(
        "expects an argument of type '!dfa.flat'");
  auto program = ProgramOp::create(
      builder, loc, schedule.getStep().getSymName(), layout.getValue(),
      builder.getStrArrayAttr(plan.hyper), schedule.getNumRows(), groupStats);
  if (Attribute initial = schedule.getStep()->getAttr(kControlAttr))
    program->setAttr("control", initial);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&program.getBody());
  emitClasses();
  if (schedule.getFirstStage() > 0)
    emitEntry(Entry::Fill, [&] { emitFill(); });
  if (!reductions().empty())
    emitEntry(Entry::Reduce, [&] { emitReduce(); });
  emitEntry(Entry::Finish, [&] { emitFinish(); });
  emitEntry(Entry::ZeroGrad, [&] { emitZeroGrad(); });
  return success();
}

LogicalResult dfa::emitProgram(OpBuilder &builder, StepSchedule &schedule,
                               const ProgramPlan &plan, StringRef zeroGrad) {
  return CommandEmitter(builder, schedule, plan, zeroGrad).run();
}
