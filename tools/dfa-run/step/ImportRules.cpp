// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Update rules as nodes: their modes, and LAMB in its three parts.
#include "step/StepImporter.h"

using namespace mlir;
using namespace mlir::dfa;
namespace run = ::dfa::run;
using run::Node;
using run::NodeKind;
using run::RuleKind;
using run::RuleModes;
using run::StepImporter;

static RuleModes modesOf(AdamOp op) {
  RuleModes modes;
  modes.kind = RuleKind::Adam;
  modes.decoupled = op.getMode() == AdamMode::AdamW;
  modes.amsgrad = op.getAmsgrad();
  modes.maximize = op.getMaximize();
  modes.noBiasCorrection = op.getNoBiasCorrection();
  return modes;
}

static RuleModes modesOf(SgdOp op) {
  RuleModes modes;
  modes.kind = RuleKind::Sgd;
  modes.nesterov = op.getNesterov();
  modes.maximize = op.getMaximize();
  modes.withMomentum = op.getOuts().size() > 1;
  return modes;
}

static RuleModes modesOf(LionOp op) {
  RuleModes modes;
  modes.kind = RuleKind::Lion;
  modes.maximize = op.getMaximize();
  return modes;
}

static RuleModes modesOf(AdagradOp op) {
  RuleModes modes;
  modes.kind = RuleKind::Adagrad;
  modes.maximize = op.getMaximize();
  return modes;
}

static RuleModes modesOf(RmspropOp op) {
  RuleModes modes;
  modes.kind = RuleKind::Rmsprop;
  modes.centered = op.getCentered();
  modes.withMomentum = op.getWithMomentum();
  modes.maximize = op.getMaximize();
  return modes;
}

/// Groups of the class that lack a hyper-parameter get the rule's default.
void StepImporter::addDefaults(Operation *op, int cls,
                               ArrayRef<StringRef> names) {
  for (const ParamSpec &param : graph.params)
    if (param.cls == cls)
      for (StringRef name : names)
        graph.groups[param.group].hyper.try_emplace(name.str(),
                                                    defaultHyper(op, name));
}

/// A rule of the user's own has no defaults.
LogicalResult StepImporter::checkHyper(UpdateOp op, int cls) {
  for (const ParamSpec &param : graph.params) {
    if (param.cls != cls)
      continue;
    const GroupSpec &group = graph.groups[param.group];
    for (Attribute name : op.getHyper())
      if (!group.hyper.count(cast<StringAttr>(name).str()))
        return op.emitOpError("expects hyper-parameter ")
               << name << " in group " << group.index << " of parameter '"
               << param.name << "', but it has none";
  }
  return success();
}

template <typename Op> LogicalResult StepImporter::addRule(Op op) {
  SmallVector<Value> operands = {op.getGrad()};
  llvm::append_range(operands, op.getOuts());
  FailureOr<Node> node = makeNode(op, NodeKind::Rule, operands);
  if (failed(node))
    return failure();
  node->rule = modesOf(op);
  node->inputs = 1;
  node->outs = static_cast<int>(op.getOuts().size());
  if (op.getFoundInf())
    node->foundInf = numbers.at(op.getFoundInf());
  addDefaults(op, node->cls, op.getHyperNames());
  return add(node);
}

template LogicalResult StepImporter::addRule<AdamOp>(AdamOp);
template LogicalResult StepImporter::addRule<SgdOp>(SgdOp);
template LogicalResult StepImporter::addRule<LionOp>(LionOp);
template LogicalResult StepImporter::addRule<AdagradOp>(AdagradOp);
template LogicalResult StepImporter::addRule<RmspropOp>(RmspropOp);

LogicalResult StepImporter::addUpdate(UpdateOp op) {
  SmallVector<Value> operands(op.getInputs());
  llvm::append_range(operands, op.getOuts());
  llvm::append_range(operands, op.getScalars());
  FailureOr<Node> node = makeNode(op, NodeKind::Update, operands);
  if (failed(node))
    return failure();
  node->inputs = static_cast<int>(op.getInputs().size());
  node->outs = static_cast<int>(op.getOuts().size());
  if (op.getFoundInf())
    node->foundInf = numbers.at(op.getFoundInf());
  for (Attribute name : op.getHyper())
    node->hyper.push_back(cast<StringAttr>(name).str());
  if (failed(checkHyper(op, node->cls)))
    return failure();
  FailureOr<ScalarProgram> derive = importRegion(op.getDerive());
  if (failed(derive))
    return failure();
  FailureOr<ScalarProgram> apply = importRegion(op.getApply());
  if (failed(apply))
    return failure();
  node->derive = std::move(*derive);
  node->apply = std::move(*apply);
  return add(node);
}

LogicalResult StepImporter::addLamb(LambOp op) {
  FailureOr<Node> whole = makeNode(op, NodeKind::Rule, {});
  if (failed(whole))
    return failure();
  RuleModes modes;
  modes.maximize = op.getMaximize();
  modes.noBiasCorrection = op.getNoBiasCorrection();
  int flag = op.getFoundInf() ? numbers.at(op.getFoundInf()) : -1;
  int grad = numbers.at(op.getGrad()), param = numbers.at(op.getOuts()[0]);
  int m = numbers.at(op.getOuts()[1]), v = numbers.at(op.getOuts()[2]);
  addDefaults(op, whole->cls, op.getHyperNames());

  auto addPart = [&](RuleKind kind, std::vector<int> operands, int inputs,
                     int outs, std::vector<int> results, int foundInf) {
    Node node;
    node.kind = NodeKind::Rule;
    node.rule = modes;
    node.rule.kind = kind;
    node.operands = std::move(operands);
    node.results = std::move(results);
    node.inputs = inputs;
    node.outs = outs;
    node.foundInf = foundInf;
    node.cls = whole->cls;
    graph.nodes.push_back(std::move(node));
  };
  auto addScalarPart = [&](NodeKind kind, std::vector<int> operands,
                           ValueKind valueKind) {
    ValueInfo info;
    info.kind = valueKind;
    info.scope = Scope::Param;
    Node node;
    node.kind = kind;
    node.operands = std::move(operands);
    node.results = {addInternal(info)};
    graph.nodes.push_back(node);
    return node.results[0];
  };

  ValueInfo flat;
  flat.kind = ValueKind::Flat;
  flat.cls = whole->cls;
  int direction = addInternal(flat);
  addPart(RuleKind::LambMoments, {grad, m, v}, 1, 2,
          {whole->results[1], whole->results[2]}, flag);
  addPart(RuleKind::LambDirection,
          {param, whole->results[1], whole->results[2]}, 3, 0, {direction}, -1);
  int norms[2];
  for (int i = 0; i < 2; ++i)
    norms[i] = addScalarPart(
        NodeKind::NormFinish,
        {addScalarPart(NodeKind::NormPartial, {i == 0 ? param : direction},
                       ValueKind::Partial)},
        ValueKind::Per);
  int trust =
      addScalarPart(NodeKind::TrustRatio, {norms[0], norms[1]}, ValueKind::Per);
  addPart(RuleKind::LambStep, {direction, param, trust}, 1, 1,
          {whole->results[0]}, flag);
  return success();
}
