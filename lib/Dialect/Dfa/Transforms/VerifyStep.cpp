// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-verify-step: what one op of levels A and B cannot check by itself.

#include "dfa/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAVERIFYSTEP
#include "dfa/Transforms/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

namespace {

class StepVerifier {
public:
  explicit StepVerifier(func::FuncOp step) : step(step) {}

  LogicalResult run() {
    return failure(failed(verifySymbols()) || failed(verifyRoles()) ||
                   failed(verifyPartials()) || failed(verifyControl()));
  }

private:
  LogicalResult verifySymbols();
  LogicalResult verifyFlat(Location loc, FlatType type);
  LogicalResult verifyPresence();
  LogicalResult verifyRoles();
  LogicalResult verifyFormat(Location loc, FlatType type, StringAttr role);
  LogicalResult verifyPartials();
  LogicalResult verifyControl();
  StringAttr getArgRole(unsigned index) {
    return step.getArgAttrOfType<StringAttr>(index, kRoleAttr);
  }
  StringAttr getResultRole(unsigned index) {
    return step.getResultAttrOfType<StringAttr>(index, kRoleAttr);
  }

  func::FuncOp step;
  FlatType first;
};

} // namespace

LogicalResult StepVerifier::verifyFlat(Location loc, FlatType type) {
  if (!first)
    first = type;
  if (type.getLayout() != first.getLayout())
    return emitError(loc) << "expects all values of a step in layout "
                          << first.getLayout() << ", but got " << type;
  auto layout =
      SymbolTable::lookupNearestSymbolFrom<LayoutOp>(step, type.getLayout());
  if (!layout)
    return emitError(loc) << "expects a 'dfa.layout' " << type.getLayout()
                          << ", but found none";
  if (!layout.getClass(type.getCls().getValue())) {
    InFlightDiagnostic diag = emitError(loc)
                              << "expects a 'dfa.class' " << type.getCls()
                              << " in layout " << type.getLayout()
                              << ", but found none";
    diag.attachNote(layout.getLoc()) << "layout defined here";
    return diag;
  }
  if (type.getPart() == Part::Shard && !layout.getMeshOp())
    return emitError(loc) << "expects layout " << type.getLayout()
                          << " on a mesh to have shards, but got " << type;
  return success();
}

LogicalResult StepVerifier::verifySymbols() {
  for (BlockArgument argument : step.getArguments())
    if (auto type = dyn_cast<FlatType>(argument.getType()))
      if (failed(verifyFlat(argument.getLoc(), type)))
        return failure();
  WalkResult result = step.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto flat = dyn_cast<FlatType>(type))
        if (failed(verifyFlat(op->getLoc(), flat)))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted() || failed(verifyPresence()));
}

/// Ranks can agree along axes of the mesh only.
LogicalResult StepVerifier::verifyPresence() {
  auto axes = step->getAttrOfType<ArrayAttr>(kPresenceAttr);
  if (!axes || !first)
    return success();
  auto layout =
      SymbolTable::lookupNearestSymbolFrom<LayoutOp>(step, first.getLayout());
  MeshOp mesh = layout.getMeshOp();
  for (auto axis : axes.getAsRange<StringAttr>())
    if (!mesh || !mesh.getAxis(axis.getValue()))
      return step.emitError("expects axes of the layout's mesh in '")
             << kPresenceAttr << "', but got " << axis;
  return success();
}

/// The format in which a class keeps what has this role; none if it does not
/// say.
static Format getRoleFormat(ClassOp cls, StringRef role) {
  if (role == "param")
    return cls.getParam();
  if (role == "grad")
    return cls.getGrad();
  if (role == "master" && cls.getMaster() != Format::Remainder)
    return cls.getMaster();
  for (auto state : cls.getStates().getAsRange<StateAttr>())
    if (state.getName() == role)
      return state.getFormat();
  return Format::None;
}

/// Memory is laid out by the formats of the class.
LogicalResult StepVerifier::verifyFormat(Location loc, FlatType type,
                                         StringAttr role) {
  auto layout =
      SymbolTable::lookupNearestSymbolFrom<LayoutOp>(step, type.getLayout());
  ClassOp cls = layout.getClass(type.getCls().getValue());
  Format format = getRoleFormat(cls, role.getValue());
  if (format == Format::None || format == Format::Remainder ||
      llvm::is_contained(getStoredTypes(format, step.getContext()),
                         type.getElementType()))
    return success();
  InFlightDiagnostic diag = emitError(loc)
                            << "expects role " << role << " in format "
                            << stringifyFormat(format)
                            << ", as its class has it, but got " << type;
  diag.attachNote(cls.getLoc()) << "class defined here";
  return diag;
}

/// Roles name the memory behind arguments and results.
LogicalResult StepVerifier::verifyRoles() {
  llvm::DenseMap<std::pair<Attribute, Attribute>, FlatType> arguments;
  int controls = 0;
  for (auto [index, type] : llvm::enumerate(step.getArgumentTypes())) {
    StringAttr role = getArgRole(index);
    if (!isa<FlatType, ControlType>(type))
      return step.emitError("expects arguments of type '!dfa.flat' or "
                            "'!dfa.control', but argument #")
             << index << " is of type " << type;
    if (!role)
      return step.emitError("expects a '")
             << kRoleAttr << "' on argument #" << index;
    controls += isa<ControlType>(type);
    auto flat = dyn_cast<FlatType>(type);
    if (!flat)
      continue;
    if (failed(verifyFormat(step.getArgument(index).getLoc(), flat, role)))
      return failure();
    if (!arguments.insert({{flat.getCls(), role}, flat}).second)
      return step.emitError("expects each role once a class, but class ")
             << flat.getCls() << " has two arguments of role " << role;
  }
  if (controls > 1)
    return step.emitError("expects at most one '!dfa.control' argument, but "
                          "got ")
           << controls;
  llvm::DenseSet<std::pair<Attribute, Attribute>> results;
  for (auto [index, type] : llvm::enumerate(step.getResultTypes())) {
    StringAttr role = getResultRole(index);
    if (!role)
      return step.emitError("expects a '")
             << kRoleAttr << "' on result #" << index;
    if (!isa<FlatType, ControlType>(type))
      return step.emitError("expects results of type '!dfa.flat' or "
                            "'!dfa.control', but result #")
             << index << " is of type " << type;
    auto flat = dyn_cast<FlatType>(type);
    if (!flat)
      continue;
    if (failed(verifyFormat(step.getLoc(), flat, role)))
      return failure();
    if (!results.insert({flat.getCls(), role}).second)
      return step.emitError("expects each role once a class, but class ")
             << flat.getCls() << " has two results of role " << role;
    auto it = arguments.find({flat.getCls(), role});
    if (it != arguments.end() &&
        it->second.getElementType() != flat.getElementType())
      return step.emitError("expects result #")
             << index << " of role " << role << " with elements of type "
             << it->second.getElementType() << " as its argument has, but got "
             << flat.getElementType();
  }
  return success();
}

/// Whether a partial of a shard reaches `value` without a combine over the
/// ranks with the other shards. What is in `seen` is known.
static bool isUncombinedShard(Value value, DenseSet<Value> &seen) {
  Operation *op = value.getDefiningOp();
  if (!seen.insert(value).second)
    return false;
  if (isa_and_nonnull<ReductionOpInterface>(op))
    return cast<FlatType>(op->getOperand(0).getType()).getPart() == Part::Shard;
  auto combine = dyn_cast_or_null<CombineOp>(op);
  if (!combine)
    return false;
  if (combine.getAxes() &&
      llvm::is_contained(combine.getAxes()->getAsValueRange<StringAttr>(),
                         "shard"))
    return false;
  return llvm::any_of(combine.getPartials(), [&](Value partial) {
    return isUncombinedShard(partial, seen);
  });
}

LogicalResult StepVerifier::verifyPartials() {
  WalkResult result = step.walk([&](Operation *op) {
    DenseSet<Value> seen;
    if (!isa<NormFinishOp, FlagFinishOp>(op) ||
        !isUncombinedShard(op->getOperand(0), seen))
      return WalkResult::advance();
    op->emitOpError("expects partials of a shard to be combined over the "
                    "ranks that hold the other shards; use 'dfa.combine' "
                    "with 'over'");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Control values form one chain from the argument to a result.
LogicalResult StepVerifier::verifyControl() {
  Value value;
  for (BlockArgument argument : step.getArguments())
    if (isa<ControlType>(argument.getType()))
      value = argument;
  while (value) {
    Value next;
    for (Operation *user : value.getUsers()) {
      if (user->getNumResults() != 1 ||
          !isa<ControlType>(user->getResult(0).getType()))
        continue;
      if (next) {
        Operation *other = next.getDefiningOp();
        if (other->getBlock() == user->getBlock() &&
            user->isBeforeInBlock(other))
          std::swap(user, other);
        InFlightDiagnostic diag = user->emitOpError(
            "makes a second control value from the same one; changes of the "
            "control block must follow each other");
        diag.attachNote(other->getLoc()) << "the other one is made here";
        return diag;
      }
      next = user->getResult(0);
    }
    if (next) {
      value = next;
      continue;
    }
    bool isReturned = llvm::any_of(value.getUsers(), [](Operation *user) {
      return isa<func::ReturnOp>(user);
    });
    if (isReturned || isa<BlockArgument>(value))
      return success();
    return emitError(value.getLoc())
           << "makes the last control value, which the step must return";
  }
  return success();
}

namespace {

struct VerifyStep : dfa::impl::DfaVerifyStepBase<VerifyStep> {
  void runOnOperation() override {
    bool found = false;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.getSymName() != "step" || function.isExternal())
        continue;
      found = true;
      if (!llvm::hasSingleElement(function.getBody())) {
        function.emitError("expects a step of one block");
        return signalPassFailure();
      }
      if (failed(StepVerifier(function).run()))
        return signalPassFailure();
    }
    if (!found) {
      emitError(getOperation().getLoc(), "expects a function named 'step'");
      signalPassFailure();
    }
  }
};

} // namespace
