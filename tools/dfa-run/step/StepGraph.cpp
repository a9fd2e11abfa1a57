// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Look-ups in a step graph.
#include "step/StepGraph.h"

using namespace dfa::run;

const char *dfa::run::formatName(Format format) {
  switch (format) {
  case Format::None:
    return "none";
  case Format::F64:
    return "f64";
  case Format::F32:
    return "f32";
  case Format::F16:
    return "f16";
  case Format::BF16:
    return "bf16";
  case Format::Remainder:
    return "remainder";
  }
  return "?";
}

int64_t StepGraph::ranks() const {
  int64_t ranks = 1;
  for (const MeshAxis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

int64_t StepGraph::elements() const {
  int64_t sum = 0;
  for (const ParamSpec &param : params)
    sum += param.elements;
  return sum;
}

static int find(const std::vector<Binding> &bindings, const std::string &role,
                int cls) {
  for (size_t i = 0; i < bindings.size(); ++i)
    if (bindings[i].role == role && bindings[i].cls == cls)
      return static_cast<int>(i);
  return -1;
}

bool StepGraph::accumulates() const {
  for (const Node &node : nodes)
    if (node.kind == NodeKind::Accumulate)
      return true;
  return false;
}

int StepGraph::findArgument(const std::string &role, int cls) const {
  return find(arguments, role, cls);
}

int StepGraph::findResult(const std::string &role, int cls) const {
  return find(results, role, cls);
}

int StepGraph::findParam(const std::string &name) const {
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == name)
      return static_cast<int>(i);
  return -1;
}

const Node &StepGraph::definition(int value) const {
  // Steps have tens of nodes; nobody asks in a loop over elements.
  for (const Node &node : nodes)
    for (int result : node.results)
      if (result == value)
        return node;
  return nodes.front();
}

std::string StepGraph::masterRole(int cls) const {
  Format master = classes[static_cast<size_t>(cls)].master;
  bool separate = master != Format::None && master != Format::Remainder;
  return separate ? "master" : "param";
}
