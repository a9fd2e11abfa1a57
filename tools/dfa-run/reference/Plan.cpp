// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Depths of values, and for each pass the nodes it needs.
#include "reference/Plan.h"

#include <algorithm>

using namespace dfa::run;

bool dfa::run::isFlat(const Node &node) {
  return node.kind <= NodeKind::Update;
}

/// The nodes that a flat value needs within one pass and on one rank: behind a
/// Reduce other ranks begin.
void ReferencePlan::needs(const StepGraph &graph, int value,
                          std::vector<char> &marked) const {
  if (graph.values[value].kind != ValueKind::Flat)
    return;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = graph.nodes[i];
    if (std::find(node.results.begin(), node.results.end(), value) ==
        node.results.end())
      continue;
    if (marked[i])
      return;
    marked[i] = 1;
    if (node.kind != NodeKind::Reduce)
      for (int operand : node.operands)
        needs(graph, operand, marked);
    return;
  }
}

static std::vector<int> listMarked(const std::vector<char> &marked) {
  std::vector<int> list;
  for (size_t i = 0; i < marked.size(); ++i)
    if (marked[i])
      list.push_back(static_cast<int>(i));
  return list;
}

ReferencePlan::ReferencePlan(const StepGraph &graph) {
  size_t classes = graph.classes.size();
  std::vector<int> depth(graph.values.size(), 0);
  std::vector<int> nodeDepth(graph.nodes.size(), 0);
  int last = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = graph.nodes[i];
    int deepest = node.foundInf >= 0 ? depth[node.foundInf] : 0;
    for (int operand : node.operands)
      deepest = std::max(deepest, depth[operand]);
    nodeDepth[i] = deepest;
    bool reduces =
        node.kind == NodeKind::NormPartial || node.kind == NodeKind::NonFinite;
    if (reduces)
      last = std::max(last, deepest);
    for (int result : node.results)
      depth[result] = deepest + (reduces ? 1 : 0);
  }
  for (size_t i = 0; i < graph.results.size(); ++i) {
    const Binding &result = graph.results[i];
    if (result.cls < 0 || graph.findArgument(result.role, result.cls) < 0)
      continue;
    stored.push_back(static_cast<int>(i));
    last = std::max(last, depth[result.value]);
  }

  sweeps.resize(static_cast<size_t>(last) + 1);
  for (SweepPlan &sweep : sweeps) {
    sweep.nodes.resize(classes);
    sweep.partialsOfClass.resize(classes);
    sweep.writes.resize(classes);
  }
  reduced.resize(graph.nodes.size());
  counting.assign(classes, -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = graph.nodes[i];
    int index = static_cast<int>(i);
    size_t at = static_cast<size_t>(nodeDepth[i]);
    if (node.kind == NodeKind::Reduce) {
      std::vector<char> marked(graph.nodes.size(), 0);
      needs(graph, node.operands[0], marked);
      reduced[i] = listMarked(marked);
    }
    bool updates =
        (node.kind == NodeKind::Rule || node.kind == NodeKind::Update) &&
        node.outs > 0;
    if (updates)
      counting[static_cast<size_t>(node.cls)] = index;
    if (isFlat(node))
      continue;
    if (node.kind == NodeKind::NormPartial ||
        node.kind == NodeKind::NonFinite) {
      size_t cls = static_cast<size_t>(graph.values[node.operands[0]].cls);
      sweeps[at].partialsOfClass[cls].push_back(
          static_cast<int>(sweeps[at].partials.size()));
      sweeps[at].partials.push_back(index);
      continue;
    }
    (at < sweeps.size() ? sweeps[at].scalarNodes : finalScalars)
        .push_back(index);
  }
  for (int result : stored)
    sweeps.back()
        .writes[static_cast<size_t>(graph.results[result].cls)]
        .push_back(result);

  for (SweepPlan &sweep : sweeps) {
    for (size_t cls = 0; cls < classes; ++cls) {
      std::vector<char> marked(graph.nodes.size(), 0);
      for (int partial : sweep.partialsOfClass[cls])
        needs(graph, graph.nodes[sweep.partials[partial]].operands[0], marked);
      for (int result : sweep.writes[cls])
        needs(graph, graph.results[result].value, marked);
      sweep.nodes[cls] = listMarked(marked);
    }
  }

  // Large enough to hide the cost of a piece, small enough for all threads.
  constexpr int64_t pieceElements = 1 << 16;
  for (size_t i = 0; i < graph.params.size(); ++i)
    for (int64_t begin = 0; begin < graph.params[i].elements;
         begin += pieceElements)
      pieces.push_back(
          {static_cast<int>(i), begin,
           std::min(pieceElements, graph.params[i].elements - begin)});
}
