// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level B: the step function as nodes. Rules are in ImportRules.cpp.
#include "step/StepImporter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dfa;
namespace run = ::dfa::run;
using run::Node;
using run::NodeKind;
using run::StepImporter;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static run::Scope importScope(mlir::dfa::Scope scope) {
  switch (scope) {
  case mlir::dfa::Scope::Whole:
    return run::Scope::Whole;
  case mlir::dfa::Scope::Group:
    return run::Scope::Group;
  case mlir::dfa::Scope::Param:
    return run::Scope::Param;
  }
  return run::Scope::Whole;
}

static run::Accumulation importAccumulation(mlir::dfa::Accumulation kind) {
  switch (kind) {
  case mlir::dfa::Accumulation::L1:
    return run::Accumulation::L1;
  case mlir::dfa::Accumulation::L2:
    return run::Accumulation::L2;
  case mlir::dfa::Accumulation::Lp:
    return run::Accumulation::Lp;
  case mlir::dfa::Accumulation::Inf:
    return run::Accumulation::Inf;
  case mlir::dfa::Accumulation::Flag:
    return run::Accumulation::Flag;
  }
  return run::Accumulation::L2;
}

int StepImporter::addInternal(const ValueInfo &info) {
  graph.values.push_back(info);
  if (info.kind == ValueKind::Flat)
    graph.values.back().slot = graph.flatValues++;
  return static_cast<int>(graph.values.size()) - 1;
}

FailureOr<int> StepImporter::addValue(Value value, Operation *user) {
  ValueInfo info;
  Type type = value.getType();
  if (FlatType flat = dyn_cast<FlatType>(type)) {
    info.kind = ValueKind::Flat;
    info.element = formatOfType(flat.getElementType());
    if (flat.getLayout().getValue() != graph.layoutName)
      return user->emitError("expects values of layout @")
             << graph.layoutName << ", but got " << type;
    info.cls = findClass(flat.getCls().getValue());
    if (info.cls < 0)
      return user->emitError("expects a class of layout @")
             << graph.layoutName << ", but got " << type;
  } else if (PartialType partial = dyn_cast<PartialType>(type)) {
    info.kind = ValueKind::Partial;
    info.scope = importScope(partial.getScope());
    info.accumulation = importAccumulation(partial.getKind());
    if (partial.getOrder())
      info.order = partial.getOrder().getValueAsDouble();
  } else if (PerType per = dyn_cast<PerType>(type)) {
    info.kind = ValueKind::Per;
    info.scope = importScope(per.getScope());
  } else if (isa<ControlType>(type)) {
    info.kind = ValueKind::Control;
  } else if (!type.isIntOrIndexOrFloat()) {
    return user->emitError("expects step values of types of 'dfa' or scalars, "
                           "but got ")
           << type;
  }
  return numbers[value] = addInternal(info);
}

int StepImporter::findClass(StringRef name) const {
  for (size_t i = 0; i < graph.classes.size(); ++i)
    if (graph.classes[i].name == name)
      return static_cast<int>(i);
  return -1;
}

FailureOr<Node> StepImporter::makeNode(Operation *op, NodeKind kind,
                                       ValueRange operands) {
  Node node;
  node.kind = kind;
  for (Value operand : operands)
    node.operands.push_back(numbers.at(operand));
  for (Value result : op->getResults()) {
    FailureOr<int> number = addValue(result, op);
    if (failed(number))
      return failure();
    node.results.push_back(*number);
    if (graph.values[*number].kind == ValueKind::Flat)
      node.cls = graph.values[*number].cls;
  }
  return node;
}

LogicalResult StepImporter::add(FailureOr<Node> node) {
  if (failed(node))
    return failure();
  graph.nodes.push_back(std::move(*node));
  return success();
}

LogicalResult StepImporter::addSimple(Operation *op, NodeKind kind) {
  return add(makeNode(op, kind, op->getOperands()));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult StepImporter::addEncode(Operation *op, NodeKind kind,
                                      mlir::dfa::Format format) {
  FailureOr<Node> node = makeNode(op, kind, op->getOperands());
  if (succeeded(node))
    node->format = importFormat(format);
  return add(node);
}

LogicalResult StepImporter::addReduce(Operation *op, StringRef axis,
                                      Reduction reduction) {
  FailureOr<Node> node = makeNode(op, NodeKind::Reduce, op->getOperands());
  if (failed(node))
    return failure();
  node->maximum = reduction == Reduction::Max;
  for (size_t i = 0; i < graph.mesh.size(); ++i)
    if (graph.mesh[i].name == axis)
      node->axis = static_cast<int>(i);
  if (node->axis < 0)
    return op->emitError("expects an axis of the layout's mesh, but got '")
           << axis << "'";
  return add(node);
}

LogicalResult StepImporter::addField(Operation *op, NodeKind kind,
                                     StringRef field) {
  FailureOr<Node> node = makeNode(op, kind, op->getOperands());
  if (succeeded(node))
    node->field = field.str();
  return add(node);
}

LogicalResult StepImporter::addFlagged(Operation *op, NodeKind kind,
                                       Value control, Value flag) {
  FailureOr<Node> node = makeNode(op, kind, control);
  if (succeeded(node) && flag)
    node->foundInf = numbers.at(flag);
  return add(node);
}

LogicalResult StepImporter::addScalar(Operation *op) {
  if (op->getNumRegions() != 0)
    return op->emitError("expects a step without control flow");
  FailureOr<run::Instruction> instruction = importScalarOp(op);
  if (failed(instruction))
    return failure();
  // Operands in the order of the instruction: comparisons may swap them.
  SmallVector<Value> operands;
  for (int operand : instruction->operands)
    if (operand >= 0)
      operands.push_back(op->getOperand(operand));
  FailureOr<Node> node = makeNode(op, NodeKind::Scalar, operands);
  if (succeeded(node))
    node->instruction = *instruction;
  return add(node);
}

LogicalResult StepImporter::addOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<UnscaleOp>(
          [&](Operation *) { return addSimple(op, NodeKind::Unscale); })
      .Case<ClipOp>([&](Operation *) { return addSimple(op, NodeKind::Clip); })
      .Case<ClipValueOp>(
          [&](Operation *) { return addSimple(op, NodeKind::ClipValue); })
      .Case<EncodeOp>([&](EncodeOp encode) {
        return addEncode(op, NodeKind::Encode, encode.getFormat());
      })
      .Case<DecodeOp>([&](DecodeOp decode) {
        return addEncode(op, NodeKind::Decode, decode.getFormat());
      })
      .Case<AllGatherOp, BroadcastOp>(
          [&](Operation *) { return addSimple(op, NodeKind::Copy); })
      .Case<ReduceScatterOp, AllReduceOp>([&](auto reduce) {
        return addReduce(op, reduce.getAxis(), reduce.getReduction());
      })
      .Case<AccumulateOp>(
          [&](Operation *) { return addSimple(op, NodeKind::Accumulate); })
      .Case<NormPartialOp>(
          [&](Operation *) { return addSimple(op, NodeKind::NormPartial); })
      .Case<NonFiniteOp>(
          [&](Operation *) { return addSimple(op, NodeKind::NonFinite); })
      .Case<CombineOp>(
          [&](Operation *) { return addSimple(op, NodeKind::Combine); })
      .Case<NormFinishOp>(
          [&](Operation *) { return addSimple(op, NodeKind::NormFinish); })
      .Case<FlagFinishOp>(
          [&](Operation *) { return addSimple(op, NodeKind::FlagFinish); })
      .Case<ClipFactorOp>(
          [&](Operation *) { return addSimple(op, NodeKind::ClipFactor); })
      .Case<TrustRatioOp>(
          [&](Operation *) { return addSimple(op, NodeKind::TrustRatio); })
      .Case<GradFactorOp>(
          [&](Operation *) { return addSimple(op, NodeKind::GradFactor); })
      .Case<ReadOp>([&](ReadOp read) {
        return addField(op, NodeKind::Read, read.getField());
      })
      .Case<WriteOp>([&](WriteOp write) {
        return addField(op, NodeKind::Write, write.getField());
      })
      .Case<ScalerUpdateOp>([&](ScalerUpdateOp update) {
        return addFlagged(op, NodeKind::ScalerUpdate, update.getControl(),
                          update.getFoundInf());
      })
      .Case<StepCountOp>([&](StepCountOp count) {
        return addFlagged(op, NodeKind::StepCount, count.getControl(),
                          count.getFoundInf());
      })
      .Case<ZeroGradOp>([&](ZeroGradOp zero) {
        return addFlagged(op, NodeKind::ZeroGrad, zero.getControl(), {});
      })
      .Case<UpdateOp>([&](UpdateOp update) { return addUpdate(update); })
      .Case<LambOp>([&](LambOp lamb) { return addLamb(lamb); })
      .Case<AdamOp, SgdOp, LionOp, AdagradOp, RmspropOp>(
          [&](auto rule) { return addRule(rule); })
      .Default([&](Operation *) { return addScalar(op); });
}

//===----------------------------------------------------------------------===//
// Arguments, results and roles
//===----------------------------------------------------------------------===//

LogicalResult StepImporter::addBinding(Operation *function, Value value,
                                       DictionaryAttr attributes,
                                       const Twine &which,
                                       std::vector<Binding> &bindings) {
  StringAttr role;
  if (attributes)
    role = attributes.getAs<StringAttr>(kRoleAttr);
  if (!role)
    return function->emitError("expects a '")
           << kRoleAttr << "' attribute on " << which << " of @" << stepName;
  Binding binding;
  binding.role = role.str();
  binding.value = numbers.at(value);
  bool isControl = isa<ControlType>(value.getType());
  if (isControl != (role == "control"))
    return function->emitError("expects the role 'control' on values of type "
                               "'!dfa.control' only, but ")
           << which << " is a " << value.getType() << " with role " << role;
  if (isControl) {
    bindings.push_back(std::move(binding));
    return success();
  }
  FlatType type = dyn_cast<FlatType>(value.getType());
  if (!type)
    return function->emitError("expects '!dfa.flat' or '!dfa.control' as ")
           << which << " of @" << stepName << ", but got " << value.getType();
  binding.cls = graph.values[binding.value].cls;
  binding.shard = type.getPart() == Part::Shard;
  binding.element = formatOfType(type.getElementType());

  const ClassSpec &cls = graph.classes[binding.cls];
  std::string known = "'grad', 'param'";
  // Any class may add its gradients up in memory of another format.
  bool isKnown = role == "grad" || role == "param" || role == "main_grad";
  if (cls.master == Format::Remainder) {
    known += ", 'remainder'";
    isKnown |= role == "remainder";
  } else if (cls.master != Format::None) {
    known += ", 'master'";
    isKnown |= role == "master";
  }
  for (const StateSpec &state : cls.states) {
    known += ", '" + state.name + "'";
    isKnown |= role.getValue() == state.name;
  }
  if (!isKnown)
    return function->emitError("expects the role of ")
           << which << " to be one that class @" << cls.name << " has ("
           << known << "), but got " << role;
  for (const Binding &other : bindings)
    if (other.role == binding.role && other.cls == binding.cls)
      return function->emitError("expects each role once for class @")
             << cls.name << ", but " << which << " is " << role << " again";
  bindings.push_back(std::move(binding));
  return success();
}

LogicalResult StepImporter::addArguments(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    FailureOr<int> number = addValue(argument, function);
    if (failed(number) ||
        failed(addBinding(function, argument,
                          function.getArgAttrDict(argument.getArgNumber()),
                          "argument " + Twine(argument.getArgNumber()),
                          graph.arguments)))
      return failure();
    if (graph.values[*number].kind != ValueKind::Flat)
      continue;
    Node node;
    node.kind = NodeKind::Argument;
    node.argument = static_cast<int>(graph.arguments.size()) - 1;
    node.cls = graph.values[*number].cls;
    node.results.push_back(*number);
    graph.nodes.push_back(std::move(node));
  }
  return success();
}

LogicalResult StepImporter::addControlFields(func::FuncOp function) {
  // Ranks contribute sums; a step with one needs no average.
  if (graph.ranks() > 1)
    graph.control["average"] = 1.0 / static_cast<double>(graph.ranks());
  Attribute attribute = function->getAttr(kControlAttr);
  if (!attribute)
    return success();
  DictionaryAttr fields = dyn_cast<DictionaryAttr>(attribute);
  if (!fields)
    return function->emitError("expects '")
           << kControlAttr << "' to be a dictionary, but got " << attribute;
  for (NamedAttribute field : fields) {
    if (!getControlFieldType(field.getName(), function->getContext()))
      return function->emitError("expects fields of the control block (")
             << listControlFields() << ") in '" << kControlAttr << "', but got "
             << field.getName();
    double number = 0;
    if (FloatAttr value = dyn_cast<FloatAttr>(field.getValue()))
      number = value.getValueAsDouble();
    else if (IntegerAttr value = dyn_cast<IntegerAttr>(field.getValue()))
      number = static_cast<double>(value.getInt());
    else
      return function->emitError("expects control field ")
             << field.getName() << " to be a number, but got "
             << field.getValue();
    graph.control[field.getName().str()] = number;
  }
  return success();
}

LogicalResult StepImporter::addFunction(func::FuncOp function) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function->emitError("expects @")
           << stepName << " to have a body of one block";
  if (failed(addArguments(function)) || failed(addControlFields(function)))
    return failure();
  Block &block = function.getBody().front();
  for (Operation &op : block.without_terminator())
    if (failed(addOp(&op)))
      return failure();
  unsigned index = 0;
  for (Value value : block.getTerminator()->getOperands()) {
    if (failed(addBinding(function, value, function.getResultAttrDict(index),
                          "result " + Twine(index), graph.results)))
      return failure();
    ++index;
  }
  return success();
}

FailureOr<run::StepGraph> run::importStep(ModuleOp module) {
  func::FuncOp step = module.lookupSymbol<func::FuncOp>(stepName);
  if (!step)
    return module.emitError("expects a function @")
           << stepName << ", but found none";
  mlir::dfa::LayoutOp layout;
  for (Value argument :
       step.getBody().empty() ? ValueRange() : ValueRange(step.getArguments()))
    if (FlatType type = dyn_cast<FlatType>(argument.getType()))
      if (!layout)
        layout = module.lookupSymbol<mlir::dfa::LayoutOp>(type.getLayout());
  if (!layout)
    return step.emitError("expects arguments of type '!dfa.flat' over a "
                          "'dfa.layout' of this module");
  StepGraph graph;
  if (failed(importLayout(layout, graph)))
    return failure();
  StepImporter importer(graph);
  if (failed(importer.addFunction(step)))
    return failure();
  return graph;
}
