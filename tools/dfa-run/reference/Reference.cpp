// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of things in a step: passes over the elements, scalars between
// them, counters at the end. Single nodes are evaluated in Evaluate.cpp.
#include "reference/Reference.h"
#include "reference/Scratch.h"
#include "support/Parallel.h"

#include <algorithm>

using namespace dfa::run;

Status Reference::prepare() {
  std::vector<int64_t> elements(graph.classes.size(), 0);
  for (const ParamSpec &param : graph.params) {
    int64_t &count = elements[static_cast<size_t>(param.cls)];
    offsets.push_back(count);
    count += param.elements;
  }
  for (size_t i = 0; i < graph.params.size(); ++i)
    steps.push_back(source.initialStep(static_cast<int>(i)));
  active.assign(graph.params.size(), 1);
  holds.assign(graph.params.size(), 0);

  for (const Binding &argument : graph.arguments) {
    arrays.emplace_back();
    bool hasArray = argument.cls >= 0 && argument.role != "grad" &&
                    argument.role != "remainder";
    if (!hasArray)
      continue;
    size_t count =
        static_cast<size_t>(elements[static_cast<size_t>(argument.cls)]);
    ReferenceArray &array = arrays.back();
    array.values.reset(
        static_cast<double *>(std::malloc(count * sizeof(double) + 1)));
    array.terms.reset(
        static_cast<float *>(std::calloc(count + 1, sizeof(float))));
    if (!array.values || !array.terms)
      return Status::failure("the float64 reference needs " +
                             std::to_string(count * 12) + " bytes more for " +
                             quoted(argument.role) +
                             ", which this machine does not have");
    for (size_t i = 0; i < graph.params.size(); ++i) {
      if (graph.params[i].cls != argument.cls)
        continue;
      Status status = source.initial(argument.role, static_cast<int>(i),
                                     array.values.get() + offsets[i]);
      if (!status.ok())
        return status;
    }
  }

  for (const std::pair<const std::string, double> &field : graph.control)
    controlNow.set(findControlField(field.first), field.second);
  for (const std::pair<const std::string, double> &field : source.control())
    controlNow.set(findControlField(field.first), field.second);
  return Status();
}

void Reference::step() {
  ++done;
  for (size_t i = 0; i < graph.params.size(); ++i) {
    active[i] = 0;
    for (int64_t part = 0; part < graph.microBatches; ++part)
      for (int64_t rank = 0; rank < graph.ranks() && !active[i]; ++rank)
        active[i] = source.hasGradient(static_cast<int>(i),
                                       graph.gradientNumber(done, part), rank);
  }
  scalars.reset(graph, controlNow);
  for (size_t depth = 0; depth < plan.sweeps.size(); ++depth) {
    for (int node : plan.sweeps[depth].scalarNodes)
      scalars.evaluate(graph, graph.nodes[node]);
    sweep(static_cast<int>(depth));
  }
  for (int node : plan.finalScalars)
    scalars.evaluate(graph, graph.nodes[node]);

  for (size_t i = 0; i < graph.params.size(); ++i) {
    int counting = plan.counting[static_cast<size_t>(graph.params[i].cls)];
    if (counting < 0 || !active[i])
      continue;
    int flag = graph.nodes[counting].foundInf;
    steps[i] += flag < 0 || !scalars.flag(flag);
  }
  bool forgets =
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node &node) {
        return node.kind == NodeKind::ZeroGrad;
      });
  for (size_t i = 0; i < holds.size(); ++i)
    holds[i] = !forgets && (holds[i] || active[i]);
  for (const Binding &result : graph.results)
    if (result.cls < 0)
      controlNow = scalars.control(result.value);
}

void Reference::sweep(int depth) {
  const SweepPlan &sweepPlan = plan.sweeps[depth];
  if (sweepPlan.partials.empty() && depth + 1 < int(plan.sweeps.size()))
    return;
  // Sums of pieces, joined in the order of the pieces: the result does not
  // depend on the number of threads.
  size_t width = sweepPlan.partials.size();
  std::vector<std::vector<Bounded>> sums(plan.pieces.size());
  int levels = static_cast<int>(graph.mesh.size()) + 2;
  int64_t count = static_cast<int64_t>(plan.pieces.size());
  parallelFor(count, std::max<int64_t>(1, std::min<int64_t>(8, count / 16)),
              threads, [&](int64_t begin, int64_t end) {
                Scratch scratch(graph, levels);
                for (int64_t i = begin; i < end; ++i) {
                  sums[i].resize(width);
                  runPiece(sweepPlan, plan.pieces[i], scratch, sums[i]);
                }
              });
  for (size_t i = 0; i < plan.pieces.size(); ++i) {
    const Piece &piece = plan.pieces[i];
    int cls = graph.params[piece.param].cls;
    for (int partial : sweepPlan.partialsOfClass[static_cast<size_t>(cls)])
      scalars.accumulate(graph,
                         graph.nodes[sweepPlan.partials[partial]].results[0],
                         piece.param, sums[i][partial]);
  }
}

void Reference::runPiece(const SweepPlan &sweepPlan, const Piece &piece,
                         Scratch &scratch, std::vector<Bounded> &sums) const {
  size_t cls = static_cast<size_t>(graph.params[piece.param].cls);
  const std::vector<int> &nodes = sweepPlan.nodes[cls];
  preparePiece(nodes, piece, scratch);
  for (int64_t at = 0; at < piece.count; at += blockElements) {
    BlockPlace place{piece.param, piece.begin + at,
                     std::min(blockElements, piece.count - at), 0};
    evaluate(nodes, place, 0, scratch);
    for (int partial : sweepPlan.partialsOfClass[cls]) {
      const Node &node = graph.nodes[sweepPlan.partials[partial]];
      const ValueInfo &info = graph.values[node.results[0]];
      const Block &input =
          scratch.block(0, graph.values[node.operands[0]].slot);
      Bounded sum = sums[partial];
      for (int64_t i = 0; i < place.count; ++i)
        sum = joinPartials(info, sum, partialOf(info, input.get(i)));
      sums[partial] = sum;
    }
    writeBack(sweepPlan.writes[cls], place, scratch);
  }
}

void Reference::writeBack(const std::vector<int> &results,
                          const BlockPlace &place, Scratch &scratch) const {
  for (int index : results) {
    const Binding &result = graph.results[index];
    const ReferenceArray &array =
        arrays[graph.findArgument(result.role, result.cls)];
    if (!array.values)
      continue; // a remainder: its parameter holds the whole value
    const Block &block = scratch.block(0, graph.values[result.value].slot);
    int64_t offset = offsets[place.param] + place.begin;
    double *values = array.values.get() + offset;
    float *terms = array.terms.get() + offset;
    bool limited = result.element != Format::F64;
    for (int64_t i = 0; i < place.count; ++i) {
      double value = block.value[i];
      bool tooLarge = limited && std::fabs(value) >= f32Overflow;
      values[i] = tooLarge ? std::copysign(INFINITY, value) : value;
      terms[i] = static_cast<float>(block.terms[i]);
    }
  }
}
