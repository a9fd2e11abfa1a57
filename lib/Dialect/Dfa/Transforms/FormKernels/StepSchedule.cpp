// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When and where each value of a step is computed.

#include "StepSchedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::dfa;

bool dfa::isCollective(Operation *op) {
  return isa<ReduceScatterOp, AllReduceOp, AllGatherOp, BroadcastOp>(op);
}

static StringAttr getRole(DictionaryAttr attributes) {
  return attributes ? attributes.getAs<StringAttr>(kRoleAttr) : StringAttr();
}

LogicalResult StepSchedule::build() {
  if (failed(collectArrays()) || failed(assignStages()) ||
      failed(collectStores()))
    return failure();
  sinkReductions();
  if (failed(collectRows()))
    return failure();
  shareRows();
  for (KernelStage &stage : stages) {
    llvm::stable_sort(stage.rows, [](const AccumulatorRow &a,
                                     const AccumulatorRow &b) {
      return a.scope < b.scope;
    });
    for (AccumulatorRow &row : stage.rows)
      row.index = numRows++;
  }
  assignControlStages();
  return success();
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

LogicalResult StepSchedule::addArray(Location loc, FlatType type,
                                     StringAttr role) {
  StringAttr cls = type.getCls().getAttr();
  classes.insert(cls);
  SmallVector<ArrayInfo> &list = arrays[cls];
  for (ArrayInfo &info : list) {
    if (info.name != role)
      continue;
    if (info.type != type.getElementType())
      return emitError(loc) << "expects role '" << role.getValue()
                            << "' of class '@" << cls.getValue()
                            << "' to have one element type, but got "
                            << info.type << " and " << type.getElementType();
    // A shard lies inside the full array.
    if (type.getPart() == Part::Full)
      info.part = Part::Full;
    return success();
  }
  list.push_back({role, type.getElementType(), type.getPart()});
  return success();
}

LogicalResult StepSchedule::collectArrays() {
  Block &body = step.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    auto type = dyn_cast<FlatType>(argument.getType());
    StringAttr role = getRole(step.getArgAttrDict(argument.getArgNumber()));
    if (!role)
      return emitError(argument.getLoc())
             << "expects a '" << kRoleAttr << "' on argument #"
             << argument.getArgNumber() << " of the step";
    if (!type)
      continue;
    if (failed(addArray(argument.getLoc(), type, role)))
      return failure();
    memory[argument] = role;
  }
  for (auto [index, type] : llvm::enumerate(step.getResultTypes())) {
    StringAttr role = getRole(step.getResultAttrDict(index));
    if (!role)
      return step.emitError("expects a '")
             << kRoleAttr << "' on result #" << index << " of the step";
    if (auto flat = dyn_cast<FlatType>(type))
      if (failed(addArray(step.getLoc(), flat, role)))
        return failure();
  }
  return success();
}

StringAttr StepSchedule::getArray(Value value, int stage) const {
  if (StringAttr array = memory.lookup(value))
    return array;
  for (int earlier = 0; earlier < stage; ++earlier)
    for (const StoredValue &stored : stages[earlier].stores)
      if (stored.value == value)
        return stored.array;
  return {};
}

bool StepSchedule::isOverwritten(Value value, int stage) const {
  StringAttr array = getArray(value, stage);
  bool isArgument = isa<BlockArgument>(value);
  for (int earlier = isArgument ? 0 : getStage(value) + 1; earlier < stage;
       ++earlier)
    for (const StoredValue &stored : stages[earlier].stores)
      if (stored.array == array && stored.value != value &&
          getClassName(stored.value) == getClassName(value))
        return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// A collective of values that no kernel has touched runs first of all;
/// another one runs right after its operand's stage.
LogicalResult StepSchedule::assignCollective(Operation &op) {
  Value operand = op.getOperand(0), result = op.getResult(0);
  StringAttr array = memory.lookup(operand);
  int stage = array ? getStage(operand) : getStage(operand) + 1;
  if (!array) {
    // Computed here: it is stored in the array that the result is returned in.
    for (Value value = result; !array;) {
      if (!value.hasOneUse())
        return op.emitOpError("expects the result of a collective over a "
                              "computed value to be returned");
      OpOperand &use = *value.getUses().begin();
      if (isa<func::ReturnOp>(use.getOwner()))
        array = getRole(step.getResultAttrDict(use.getOperandNumber()));
      else if (isCollective(use.getOwner()))
        value = use.getOwner()->getResult(0);
      else
        return op.emitOpError("expects the result of a collective over a "
                              "computed value to be returned");
    }
    if (stages.size() <= static_cast<size_t>(stage))
      stages.resize(stage + 1);
    stages[stage - 1].stores.push_back({operand, array});
  }
  if (stages.size() <= static_cast<size_t>(stage))
    stages.resize(stage + 1);
  memory[result] = array;
  stageOf[result] = stage;
  stages[stage].collectives.push_back(&op);
  return success();
}

LogicalResult StepSchedule::assignStages() {
  stages.resize(1);
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (isCollective(&op)) {
      if (failed(assignCollective(op)))
        return failure();
      continue;
    }
    if (!isa<ElementwiseOpInterface, ReductionOpInterface, ScalarOpInterface,
             ControlOpInterface, CombineOp>(op) &&
        !isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
      return op.emitOpError("is not allowed in a step; expects ops of 'dfa' on "
                            "values, 'arith' and 'math'");
    int stage = 0;
    for (Value operand : op.getOperands())
      // The control operand orders changes of the block; it is not data.
      if (!isa<ElementwiseOpInterface>(op) ||
          !isa<ControlType>(operand.getType()))
        stage = std::max(stage, getStage(operand));
    // A partial is finished after the kernels that accumulate it.
    bool finishes = llvm::any_of(op.getOperandTypes(), [](Type type) {
      return isa<PartialType>(type);
    });
    if (finishes && !isa<CombineOp>(op))
      ++stage;
    for (Value result : op.getResults())
      stageOf[result] = stage;
    if (stages.size() <= static_cast<size_t>(stage))
      stages.resize(stage + 1);
  }
  return success();
}

LogicalResult StepSchedule::collectStores() {
  Operation *terminator = step.getBody().front().getTerminator();
  for (OpOperand &use : terminator->getOpOperands()) {
    Value value = use.get();
    if (!isa<FlatType>(value.getType()))
      continue;
    StringAttr role = getRole(step.getResultAttrDict(use.getOperandNumber()));
    StringAttr held = memory.lookup(value);
    if (held && held != role)
      return terminator->emitOpError("expects result #")
             << use.getOperandNumber() << " to keep the role '"
             << held.getValue() << "' of the memory it is in, but got '"
             << role.getValue() << "'";
    if (held)
      continue;
    KernelStage &stage = stages[getStage(value)];
    bool known = llvm::any_of(stage.stores, [&](const StoredValue &stored) {
      return stored.value == value && stored.array == role;
    });
    if (!known)
      stage.stores.push_back({value, role});
  }
  return success();
}

/// The first kernel stage that needs what is computed from `scalar`.
int StepSchedule::getFirstElementwiseUse(Value scalar) const {
  int first = static_cast<int>(stages.size());
  for (Operation *user : scalar.getUsers()) {
    if (isa<ElementwiseOpInterface>(user)) {
      first = std::min(first, getStage(user->getResult(0)));
      continue;
    }
    for (Value result : user->getResults())
      first = std::min(first, getFirstElementwiseUse(result));
  }
  return first;
}

/// A statistic of parameters that is not needed at once is taken where a later
/// stage reads the same elements anyway.
void StepSchedule::sinkReductions() {
  for (auto norm : step.getBody().front().getOps<NormPartialOp>()) {
    if (norm.getResult().getType().getScope() != Scope::Param)
      continue;
    int latest = getFirstElementwiseUse(norm.getResult()) - 1;
    if (latest > getStage(norm.getResult()) &&
        latest < static_cast<int>(stages.size()) &&
        getArray(norm.getInput(), latest) &&
        !isOverwritten(norm.getInput(), latest))
      stageOf[norm.getResult()] = latest;
  }
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

LogicalResult StepSchedule::collectLeaves(Value partial, AccumulatorRow &row) {
  Operation *op = partial.getDefiningOp();
  if (auto leaf = dyn_cast_or_null<ReductionOpInterface>(op)) {
    row.leaves.push_back(leaf);
    row.combine = leaf.getCombine();
    return success();
  }
  auto combine = cast<CombineOp>(op);
  if (combine.getAxes()) {
    if (combine.getAxes()->size() != 1 || row.axis)
      return combine.emitOpError("expects partials to be combined over one "
                                 "axis, once");
    row.axis = cast<StringAttr>((*combine.getAxes())[0]);
  }
  for (Value operand : combine.getPartials())
    if (failed(collectLeaves(operand, row)))
      return failure();
  return success();
}

LogicalResult StepSchedule::collectRows() {
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (isa<CombineOp>(op))
      continue;
    for (Value operand : op.getOperands()) {
      auto type = dyn_cast<PartialType>(operand.getType());
      if (!type || getRow(operand))
        continue;
      if (!isa_and_nonnull<CombineOp, ReductionOpInterface>(
              operand.getDefiningOp()))
        return op.emitOpError("expects a partial that the step computes");
      AccumulatorRow row;
      row.partial = operand;
      row.scope = type.getScope();
      if (failed(collectLeaves(operand, row)))
        return failure();
      if (row.axis && row.scope != Scope::Whole)
        return op.emitOpError("expects partials of scope 'whole' over ranks; "
                              "statistics of each ")
               << stringifyScope(row.scope)
               << " are not exchanged between ranks";
      KernelStage &stage = stages[getStage(operand)];
      for (const AccumulatorRow &other : stage.rows)
        if (other.scope == Scope::Whole && row.scope == Scope::Whole &&
            other.axis != row.axis)
          return op.emitOpError("expects all partials that are ready together "
                                "to be combined over the same ranks");
      stage.rows.push_back(row);
    }
  }
  return success();
}

/// A sum of |x| or x^2 in f64, or a largest |x|, is inf or nan exactly if an
/// element is: f32 and narrower squares cannot overflow it. So a flag over the
/// same elements needs no accumulator of its own.
void StepSchedule::shareRows() {
  auto inputs = [](const AccumulatorRow &row) {
    SmallVector<Value> values;
    for (ReductionOpInterface leaf : row.leaves)
      values.push_back(leaf->getOperand(0));
    llvm::sort(values, [](Value a, Value b) {
      return a.getAsOpaquePointer() < b.getAsOpaquePointer();
    });
    return values;
  };
  auto kindOf = [](const AccumulatorRow &row) {
    return cast<PartialType>(row.partial.getType()).getKind();
  };
  for (KernelStage &stage : stages) {
    for (const AccumulatorRow &flag : stage.rows) {
      if (kindOf(flag) != Accumulation::Flag)
        continue;
      bool hasF64 = llvm::any_of(inputs(flag), [](Value value) {
        return cast<FlatType>(value.getType()).getElementType().isF64();
      });
      for (const AccumulatorRow &norm : stage.rows) {
        Accumulation kind = kindOf(norm);
        bool fits = kind == Accumulation::L1 || kind == Accumulation::L2 ||
                    kind == Accumulation::Inf;
        if (!hasF64 && fits && norm.scope == Scope::Whole &&
            inputs(norm) == inputs(flag))
          standIns[flag.partial] = norm.partial;
      }
    }
    llvm::erase_if(stage.rows, [&](const AccumulatorRow &row) {
      return standIns.contains(row.partial);
    });
  }
}

const AccumulatorRow *StepSchedule::getRow(Value partial,
                                           bool *isStandIn) const {
  Value other = standIns.lookup(partial);
  if (isStandIn)
    *isStandIn = static_cast<bool>(other);
  Value wanted = other ? other : partial;
  for (const KernelStage &stage : stages)
    for (const AccumulatorRow &row : stage.rows)
      if (row.partial == wanted)
        return &row;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Whether the op's work is one scalar computation (not one a parameter).
static bool isScalarWork(Operation &op) {
  if (isa<ElementwiseOpInterface, ReductionOpInterface, CombineOp>(op) ||
      isCollective(&op) || op.hasTrait<OpTrait::ConstantLike>())
    return false;
  return llvm::none_of(op.getResultTypes(),
                       [](Type type) { return isa<PerType>(type); });
}

/// The earliest control or kernel stage that needs a result of `op`.
int StepSchedule::getLatestUse(Operation *op) const {
  int latest = static_cast<int>(stages.size());
  for (Operation *user : op->getUsers()) {
    auto it = controlStageOf.find(user);
    if (it != controlStageOf.end())
      latest = std::min(latest, it->second);
    else if (user->getNumResults() > 0)
      latest = std::min(latest, getStage(user->getResult(0)));
  }
  return latest;
}

void StepSchedule::assignControlStages() {
  SmallVector<Operation *> ops;
  for (Operation &op : step.getBody().front().without_terminator())
    if (isScalarWork(op))
      ops.push_back(&op);
  // Changes of the control block and finished statistics fix a stage; other
  // scalars join one of those where they can.
  auto isFixed = [](Operation *op) {
    return isa<ControlType>(op->getResult(0).getType()) ||
           llvm::any_of(op->getOperandTypes(),
                        [](Type type) { return isa<PartialType>(type); });
  };
  for (Operation *op : ops)
    if (isFixed(op))
      controlStages.insert(getStage(op->getResult(0)));
  for (auto [index, stage] : llvm::enumerate(stages))
    for (const AccumulatorRow &row : stage.rows)
      if (row.scope == Scope::Group)
        controlStages.insert(static_cast<int>(index) + 1);
  for (Operation *op : llvm::reverse(ops)) {
    int ready = getStage(op->getResult(0));
    int stage = ready;
    if (!isFixed(op)) {
      auto it = controlStages.lower_bound(ready);
      if (it != controlStages.end() && *it <= getLatestUse(op))
        stage = *it;
      controlStages.insert(stage);
    }
    controlStageOf[op] = stage;
  }
  for (Operation *op : ops)
    controlOps[controlStageOf[op]].push_back(op);
}

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

FailureOr<Value> StepSchedule::getPredicate(Value value) const {
  auto op = value.getDefiningOp<ElementwiseOpInterface>();
  if (!op)
    return Value();
  Value flag = op.getUnlessFlag();
  for (Value operand : op->getOperands()) {
    if (!isa<FlatType>(operand.getType()))
      continue;
    FailureOr<Value> inner = getPredicate(operand);
    if (failed(inner))
      return failure();
    if (!*inner)
      continue;
    if (flag && flag != *inner)
      return op->emitOpError("expects one 'unless' flag for values that are "
                             "computed together");
    flag = *inner;
  }
  return flag;
}
