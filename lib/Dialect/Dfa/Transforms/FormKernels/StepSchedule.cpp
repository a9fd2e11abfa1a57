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
  if (failed(collectRows()) || failed(verifyAccumulates()))
    return failure();
  shareRows();
  for (KernelStage &stage : stages) {
    llvm::stable_sort(stage.rows,
                      [](const AccumulatorRow &a, const AccumulatorRow &b) {
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
      return emitError(loc)
             << "expects role '" << role.getValue() << "' of class '@"
             << cls.getValue() << "' to have one element type, but got "
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
    if (!type && !isa<ControlType>(argument.getType()))
      return emitError(argument.getLoc())
             << "expects arguments of type '!dfa.flat' or '!dfa.control', but "
                "argument #"
             << argument.getArgNumber() << " is of type " << argument.getType();
    if (!type)
      continue;
    if (failed(addArray(argument.getLoc(), type, role)))
      return failure();
    memory[argument] = role;
  }
  if (memory.empty())
    return step.emitError("expects an argument of type '!dfa.flat'");
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

/// Whether `op` writes over `value`, which lies in `array`. A gather leaves the
/// rank's own shard as it was.
bool StepSchedule::isCollectiveOver(Operation *op, Value value,
                                    StringAttr array) const {
  Value result = op->getResult(0);
  if (result == value || memory.lookup(result) != array ||
      getClassName(result) != getClassName(value))
    return false;
  if (isa<AllGatherOp>(op) && op->getOperand(0) == value)
    return false;
  Operation *producer = value.getDefiningOp();
  if (!producer)
    return true;
  if (getStage(result) != getStage(value))
    return getStage(result) > getStage(value);
  // Collectives of a stage run in order, before its kernels.
  return isCollective(producer) && producer->isBeforeInBlock(op);
}

bool StepSchedule::isOverwritten(Value value, int stage) const {
  StringAttr array = getArray(value, stage);
  int first = isa<BlockArgument>(value) ? 0 : getStage(value);
  int end = std::min(stage + 1, static_cast<int>(stages.size()));
  for (int earlier = first; earlier < end; ++earlier) {
    for (Operation *op : stages[earlier].collectives)
      if (isCollectiveOver(op, value, array))
        return true;
    if (earlier == stage)
      break;
    for (const StoredValue &stored : stages[earlier].stores)
      if (stored.array == array && stored.value != value &&
          getClassName(stored.value) == getClassName(value))
        return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// A collective of values that no kernel has touched runs first of all;
/// another one runs right after its operand's stage.
LogicalResult StepSchedule::assignCollective(Operation &op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op);
      broadcast && broadcast.getRoot() != 0)
    return op.emitOpError("expects to broadcast from rank 0 of the axis, but "
                          "got ")
           << broadcast.getRoot();
  Value operand = op.getOperand(0), result = op.getResult(0);
  StringAttr array = memory.lookup(operand);
  int stage = array ? getStage(operand) : getStage(operand) + 1;
  if (operand.getDefiningOp<AccumulateOp>()) {
    array = getArray(operand, stage);
  } else if (!array) {
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

/// Scalar ops of other dialects take any type where they only pass it on.
static bool isOnScalars(Operation &op) {
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  return isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
         llvm::all_of(op.getOperandTypes(), isScalar) &&
         llvm::all_of(op.getResultTypes(), isScalar);
}

LogicalResult StepSchedule::assignStages() {
  stages.resize(1);
  Operation *zeroGrad = nullptr;
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (isCollective(&op)) {
      if (failed(assignCollective(op)))
        return failure();
      continue;
    }
    if (!isa<ElementwiseOpInterface, ReductionOpInterface, ScalarOpInterface,
             ControlOpInterface, CombineOp>(op) &&
        !isOnScalars(op))
      return op.emitOpError("is not allowed in a step; expects ops of 'dfa' on "
                            "values, 'arith' and 'math' on scalars");
    // Accumulation compares with the generation that zero_grad changes.
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      if (zeroGrad)
        return op.emitOpError("expects to come before 'dfa.zero_grad'");
      if (failed(assignAccumulate(accumulate)))
        return failure();
      continue;
    }
    int stage = 0;
    for (Value operand : op.getOperands())
      // The control operand orders changes of the block; it is not data.
      if (!isa<ElementwiseOpInterface>(op) ||
          !isa<ControlType>(operand.getType()))
        stage = std::max(stage, getOperandStage(operand));
    // A partial is finished after the kernels that accumulate it.
    bool finishes = llvm::any_of(
        op.getOperandTypes(), [](Type type) { return isa<PartialType>(type); });
    if (finishes && !isa<CombineOp>(op))
      ++stage;
    if (isa<ZeroGradOp>(op))
      zeroGrad = &op;
    // Scalar work is not repeated with every contribution.
    if (isa<ScalarOpInterface, ControlOpInterface>(op) || isOnScalars(op))
      stage = std::max(stage, getFirstStage());
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
  return verifyStores();
}

/// Memory holds one value at a time, and the returned ones at the end.
LogicalResult StepSchedule::verifyStores() {
  Operation *terminator = step.getBody().front().getTerminator();
  DenseMap<std::pair<Attribute, Attribute>, Value> last;
  for (const KernelStage &stage : stages)
    for (const StoredValue &stored : stage.stores) {
      Value &known = last[{getClassName(stored.value), stored.array}];
      if (known && known != stored.value)
        return terminator->emitOpError("expects one value in role '")
               << stored.array.getValue() << "' of class '@"
               << getClassName(stored.value).getValue() << "', but got two";
      known = stored.value;
    }
  for (OpOperand &use : terminator->getOpOperands())
    if (isa<FlatType>(use.get().getType()) && memory.lookup(use.get()) &&
        isOverwritten(use.get(), static_cast<int>(stages.size())))
      return terminator->emitOpError("expects result #")
             << use.getOperandNumber()
             << " to be what is in its memory at the end, but role '"
             << memory.lookup(use.get()).getValue() << "' was overwritten";
  for (auto op : step.getBody().front().getOps<AccumulateOp>())
    if (!llvm::is_contained(op.getResult().getUsers(), terminator))
      return op.emitOpError("expects its result to be returned");
  for (auto op : step.getBody().front().getOps<ZeroGradOp>())
    for (Value grad : op.getGrads())
      if (!memory.lookup(grad))
        return op.emitOpError("expects gradients that are arguments of the "
                              "step or results of collectives");
  return success();
}

/// The first kernel stage that needs what is computed from `scalar`, leaving
/// out what is in `seen`.
int StepSchedule::getFirstElementwiseUse(Value scalar,
                                         DenseSet<Value> &seen) const {
  int first = static_cast<int>(stages.size());
  if (!seen.insert(scalar).second)
    return first;
  for (Operation *user : scalar.getUsers()) {
    if (isa<ElementwiseOpInterface>(user)) {
      first = std::min(first, getStage(user->getResult(0)));
      continue;
    }
    for (Value result : user->getResults())
      first = std::min(first, getFirstElementwiseUse(result, seen));
  }
  return first;
}

/// A statistic of parameters that is not needed at once is taken where a later
/// stage reads the same elements anyway.
void StepSchedule::sinkReductions() {
  for (auto norm : step.getBody().front().getOps<NormPartialOp>()) {
    if (norm.getResult().getType().getScope() != Scope::Param)
      continue;
    DenseSet<Value> seen;
    int latest = getFirstElementwiseUse(norm.getResult(), seen) - 1;
    if (latest > getStage(norm.getResult()) &&
        latest < static_cast<int>(stages.size()) &&
        getArray(norm.getInput(), latest) &&
        !isOverwritten(norm.getInput(), latest)) {
      stageOf[norm.getResult()] = latest;
      for (Operation *user : norm->getUsers())
        if (auto combine = dyn_cast<CombineOp>(user);
            combine && combine.getPartials().size() == 1)
          stageOf[combine.getResult()] = latest;
    }
  }
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

/// The first kernel stage in which an elementwise value is computed: that of a
/// store or reduction it leads to.
int StepSchedule::getNeededStage(Value value) {
  auto [it, isNew] =
      neededStages.insert({value, static_cast<int>(stages.size())});
  if (!isNew)
    return it->second;
  int first = it->second;
  for (const KernelStage &stage : stages)
    for (const StoredValue &stored : stage.stores)
      if (stored.value == value)
        first = std::min(first, getStage(value));
  for (Operation *user : value.getUsers())
    for (Value result : user->getResults())
      first = std::min(first, isa<ElementwiseOpInterface>(user)
                                  ? getNeededStage(result)
                                  : getStage(result));
  neededStages[value] = first;
  return first;
}

/// The earliest control or kernel stage that needs a result of `op`.
int StepSchedule::getLatestUse(Operation *op) {
  int latest = static_cast<int>(stages.size());
  for (Operation *user : op->getUsers()) {
    auto it = controlStageOf.find(user);
    if (it != controlStageOf.end())
      latest = std::min(latest, it->second);
    else
      for (Value result : user->getResults())
        latest = std::min(latest, isa<ElementwiseOpInterface>(user)
                                      ? getNeededStage(result)
                                      : getStage(result));
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
      // As late as need be, so that kernels before it depend on no scalar.
      int latest = getLatestUse(op);
      auto it = controlStages.lower_bound(ready);
      if (it != controlStages.end() && *it <= latest)
        stage = *it;
      else if (latest < static_cast<int>(stages.size()))
        stage = latest;
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

FailureOr<Value> StepSchedule::getPredicate(Value value) {
  auto op = value.getDefiningOp<ElementwiseOpInterface>();
  if (!op)
    return Value();
  if (auto it = predicates.find(op); it != predicates.end())
    return it->second;
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
  predicates[op] = flag;
  return flag;
}
