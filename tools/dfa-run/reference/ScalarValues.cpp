// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms, flags and control, in f64 as on the device: only errors of the f32
// elements they are made of count.
#include "reference/ScalarValues.h"
#include "reference/Program.h"

#include <cmath>

using namespace dfa::run;

/// Summing in another order, and roots, in f64: far below the bounds.
constexpr double f64Terms = 0x1p-20;

static Bounded inF64(double value, double terms) {
  return {value, terms + f64Terms * std::fabs(value)};
}

Bounded dfa::run::partialOf(const ValueInfo &info, Bounded element) {
  double size = std::fabs(element.value);
  switch (info.accumulation) {
  case Accumulation::L1:
  case Accumulation::Inf:
    return {size, element.terms};
  case Accumulation::L2:
    return {size * size,
            2 * size * element.terms + errorOf(element) * element.terms};
  case Accumulation::Lp:
    return {std::pow(size, info.order),
            info.order * std::pow(size + errorOf(element), info.order - 1) *
                element.terms};
  case Accumulation::Flag:
    return exactly(std::isfinite(element.value) && size < f32Overflow ? 0 : 1);
  }
  return {};
}

Bounded dfa::run::joinPartials(const ValueInfo &info, Bounded a, Bounded b) {
  bool sums = info.accumulation != Accumulation::Inf &&
              info.accumulation != Accumulation::Flag;
  if (sums)
    return {a.value + b.value, a.terms + b.terms};
  if (std::isnan(a.value))
    return a;
  return largest(a, b);
}

Bounded dfa::run::clipFactor(Bounded norm, Bounded limit) {
  if (!std::isfinite(norm.value))
    return exactly(1);
  Bounded sum{norm.value + 1e-6, norm.terms};
  Bounded ratio = limit / sum;
  return ratio.value < 1 ? ratio : exactly(1);
}

static size_t sizeOf(const StepGraph &graph, const ValueInfo &info) {
  bool scoped = info.kind == ValueKind::Per || info.kind == ValueKind::Partial;
  if (!scoped || info.scope == Scope::Whole)
    return 1;
  return info.scope == Scope::Group ? graph.groups.size() : graph.params.size();
}

static size_t positionOf(const StepGraph &graph, const ValueInfo &info,
                         int param) {
  if (sizeOf(graph, info) <= 1 || info.scope == Scope::Whole)
    return 0;
  return static_cast<size_t>(
      info.scope == Scope::Group ? graph.params[param].group : param);
}

void ScalarValues::reset(const StepGraph &graph, const ControlState &control) {
  numbers.assign(graph.values.size(), {});
  controls.clear();
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].kind != ValueKind::Flat &&
        graph.values[i].kind != ValueKind::Control)
      numbers[i].assign(std::max<size_t>(1, sizeOf(graph, graph.values[i])),
                        Bounded());
  for (const Binding &argument : graph.arguments)
    if (argument.cls < 0)
      controls[argument.value] = control;
}

Bounded ScalarValues::get(const StepGraph &graph, int value, int param) const {
  return numbers[value][positionOf(graph, graph.values[value], param)];
}

void ScalarValues::accumulate(const StepGraph &graph, int value, int param,
                              Bounded part) {
  const ValueInfo &info = graph.values[value];
  Bounded &sum = numbers[value][positionOf(graph, info, param)];
  sum = joinPartials(info, sum, part);
}

void ScalarValues::combine(const StepGraph &graph, const Node &node) {
  // Of ranks nothing is left to combine: partials cover all of them.
  int result = node.results[0];
  for (int operand : node.operands)
    for (size_t i = 0; i < numbers[result].size(); ++i)
      numbers[result][i] = joinPartials(
          graph.values[result], numbers[result][i], numbers[operand][i]);
}

void ScalarValues::finishNorm(const StepGraph &graph, const Node &node) {
  const ValueInfo &info = graph.values[node.operands[0]];
  const std::vector<Bounded> &sums = numbers[node.operands[0]];
  std::vector<Bounded> &norms = numbers[node.results[0]];
  for (size_t i = 0; i < sums.size(); ++i) {
    Bounded sum = inF64(sums[i].value, sums[i].terms);
    switch (info.accumulation) {
    case Accumulation::L2: {
      Bounded root = squareRoot(sum);
      double far = sum.terms / (2 * root.value);
      bool usual = root.value > 0 && 2 * errorOf(sum) < sum.value;
      norms[i] = inF64(root.value, usual ? 1.2 * far : root.terms);
      break;
    }
    case Accumulation::Lp: {
      double root = std::pow(sum.value, 1 / info.order);
      double terms =
          sum.value > 0 ? root / sum.value / info.order * sum.terms : 0;
      norms[i] = inF64(root, 1.2 * terms);
      break;
    }
    default:
      norms[i] = sum;
    }
  }
}

void ScalarValues::evaluateControl(const Node &node) {
  int before =
      node.kind == NodeKind::Write ? node.operands[1] : node.operands[0];
  ControlState state = controls.at(before);
  switch (node.kind) {
  case NodeKind::Write:
    state.set(findControlField(node.field), numbers[node.operands[0]][0]);
    break;
  case NodeKind::ScalerUpdate:
    state.updateScale(flag(node.foundInf));
    break;
  case NodeKind::StepCount:
    state.countStep(node.foundInf >= 0,
                    node.foundInf >= 0 && flag(node.foundInf));
    break;
  default:
    state.zeroGrad();
  }
  controls[node.results[0]] = state;
}

void ScalarValues::evaluate(const StepGraph &graph, const Node &node) {
  switch (node.kind) {
  case NodeKind::Combine:
    return combine(graph, node);
  case NodeKind::NormFinish:
    return finishNorm(graph, node);
  case NodeKind::FlagFinish:
    numbers[node.results[0]] = numbers[node.operands[0]];
    return;
  case NodeKind::TrustRatio:
    for (size_t i = 0; i < numbers[node.results[0]].size(); ++i) {
      Bounded param = numbers[node.operands[0]][i];
      Bounded update = numbers[node.operands[1]][i];
      bool defined = param.value > 0 && update.value > 0;
      numbers[node.results[0]][i] = defined ? param / update : exactly(1);
    }
    return;
  case NodeKind::ClipFactor:
    for (size_t i = 0; i < numbers[node.results[0]].size(); ++i)
      numbers[node.results[0]][i] = clipFactor(numbers[node.operands[0]][i],
                                               numbers[node.operands[1]][0]);
    return;
  case NodeKind::GradFactor:
    numbers[node.results[0]][0] = controls.at(node.operands[0]).gradFactor();
    return;
  case NodeKind::Read:
    numbers[node.results[0]][0] =
        controls.at(node.operands[0]).get(findControlField(node.field));
    return;
  case NodeKind::Scalar: {
    Bounded operands[3];
    for (size_t i = 0; i < node.operands.size() && i < 3; ++i)
      operands[i] = numbers[node.operands[i]][0];
    numbers[node.results[0]][0] = runInstruction(node.instruction, operands);
    return;
  }
  default:
    return evaluateControl(node);
  }
}
