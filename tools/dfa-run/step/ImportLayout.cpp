// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level A: what the model has.
#include "step/Import.h"

using namespace mlir;
namespace run = ::dfa::run;

run::Format run::importFormat(mlir::dfa::Format format) {
  switch (format) {
  case mlir::dfa::Format::None:
    return Format::None;
  case mlir::dfa::Format::F64:
    return Format::F64;
  case mlir::dfa::Format::F32:
    return Format::F32;
  case mlir::dfa::Format::F16:
    return Format::F16;
  case mlir::dfa::Format::BF16:
    return Format::BF16;
  case mlir::dfa::Format::Remainder:
    return Format::Remainder;
  }
  return Format::None;
}

run::Format run::formatOfType(Type type) {
  if (type.isF64())
    return Format::F64;
  if (type.isF16())
    return Format::F16;
  if (type.isBF16())
    return Format::BF16;
  return type.isInteger() ? Format::Remainder : Format::F32;
}

double run::defaultHyper(Operation *rule, StringRef name) {
  bool lion = isa<mlir::dfa::LionOp>(rule);
  bool adagrad = isa<mlir::dfa::AdagradOp>(rule);
  bool rmsprop = isa<mlir::dfa::RmspropOp>(rule);
  bool lamb = isa<mlir::dfa::LambOp>(rule);
  if (name == "lr")
    return lion ? 1e-4 : adagrad || rmsprop ? 1e-2 : 1e-3;
  if (name == "beta1")
    return 0.9;
  if (name == "beta2")
    return lion ? 0.99 : 0.999;
  if (name == "eps")
    return adagrad ? 1e-10 : lamb ? 1e-6 : 1e-8;
  if (name == "alpha")
    return 0.99;
  if (name == "weight_decay") {
    mlir::dfa::AdamOp adam = dyn_cast<mlir::dfa::AdamOp>(rule);
    bool decoupled = adam && adam.getMode() == mlir::dfa::AdamMode::AdamW;
    return decoupled || lamb ? 1e-2 : 0;
  }
  return 0;
}

static void importClass(mlir::dfa::ClassOp op, run::StepGraph &graph) {
  run::ClassSpec spec;
  spec.name = op.getSymName().str();
  spec.param = run::importFormat(op.getParam());
  spec.grad = run::importFormat(op.getGrad());
  spec.master = run::importFormat(op.getMaster());
  for (mlir::dfa::StateAttr state :
       op.getStates().getAsRange<mlir::dfa::StateAttr>())
    spec.states.push_back(
        {state.getName().str(), run::importFormat(state.getFormat())});
  graph.classes.push_back(std::move(spec));
}

/// The position of a group, which gets no hyper-parameters if none are given.
static int findOrAddGroup(int64_t index, run::StepGraph &graph) {
  for (size_t i = 0; i < graph.groups.size(); ++i)
    if (graph.groups[i].index == index)
      return static_cast<int>(i);
  graph.groups.push_back({index, {}});
  return static_cast<int>(graph.groups.size()) - 1;
}

LogicalResult run::importLayout(mlir::dfa::LayoutOp layout, StepGraph &graph) {
  graph.layoutName = layout.getSymName().str();
  if (std::optional<uint64_t> bytes = layout.getBucketBytes())
    graph.bucketBytes = static_cast<int64_t>(*bytes);
  if (mlir::dfa::MeshOp mesh = layout.getMeshOp())
    for (mlir::dfa::AxisAttr axis :
         mesh.getAxes().getAsRange<mlir::dfa::AxisAttr>())
      graph.mesh.push_back({axis.getName().str(), axis.getSize()});

  for (mlir::dfa::ClassOp op : layout.getBody().getOps<mlir::dfa::ClassOp>())
    importClass(op, graph);
  for (mlir::dfa::GroupOp op : layout.getBody().getOps<mlir::dfa::GroupOp>()) {
    int group = findOrAddGroup(op.getIndex(), graph);
    for (NamedAttribute hyper : op.getHyper())
      graph.groups[group].hyper[hyper.getName().str()] =
          cast<FloatAttr>(hyper.getValue()).getValueAsDouble();
  }
  for (mlir::dfa::ParamOp op : layout.getBody().getOps<mlir::dfa::ParamOp>()) {
    ParamSpec param;
    RankedTensorType type = cast<RankedTensorType>(op.getType());
    param.name = op.getName().str();
    param.shape.assign(type.getShape().begin(), type.getShape().end());
    if (std::optional<ArrayRef<int64_t>> order = op.getOrder())
      param.order.assign(order->begin(), order->end());
    param.elements = type.getNumElements();
    while (graph.classes[param.cls].name != op.getCls())
      ++param.cls; // the layout's verifier knows that it is there
    param.group = findOrAddGroup(op.getGroup(), graph);
    graph.params.push_back(std::move(param));
  }
  return success();
}
