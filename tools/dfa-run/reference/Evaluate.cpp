// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise nodes of the step on one block.
#include "reference/Program.h"
#include "reference/Scratch.h"

#include <algorithm>
#include <cmath>

using namespace dfa::run;

//===----------------------------------------------------------------------===//
// What holds for a whole piece
//===----------------------------------------------------------------------===//

void Reference::preparePiece(const std::vector<int> &nodes, const Piece &piece,
                             Scratch &scratch) const {
  const std::map<std::string, double> &hyper =
      graph.groups[graph.params[piece.param].group].hyper;
  int64_t step = steps[piece.param] + 1;
  for (int index : nodes) {
    const Node &node = graph.nodes[index];
    if (node.kind == NodeKind::Reduce)
      preparePiece(plan.reduced[index], piece, scratch);
    if (node.kind != NodeKind::Rule && node.kind != NodeKind::Update)
      continue;
    Scratch::Prepared &prepared = scratch.prepared[index];
    bool skips = node.foundInf >= 0 && scalars.flag(node.foundInf);
    prepared.applies = active[piece.param] && !skips;
    size_t firstScalar = static_cast<size_t>(node.inputs + node.outs);
    if (node.kind == NodeKind::Rule) {
      prepared.rule = makeRuleScalars(hyper, step);
      if (node.rule.kind == RuleKind::LambStep)
        prepared.rule.trust =
            scalars.get(graph, node.operands[firstScalar], piece.param);
      continue;
    }
    Block *registers = scratch.registersFor(node.derive);
    int next = 0;
    registers[next++].set(0, exactly(static_cast<double>(step)));
    for (const std::string &name : node.hyper)
      registers[next++].set(0, exactly(hyper.at(name)));
    for (size_t i = firstScalar; i < node.operands.size(); ++i)
      registers[next++].set(0,
                            scalars.get(graph, node.operands[i], piece.param));
    runProgram(node.derive, registers, 1);
    prepared.derived.clear();
    for (int result : node.derive.results)
      prepared.derived.push_back(registers[result].get(0));
  }
}

//===----------------------------------------------------------------------===//
// Single nodes
//===----------------------------------------------------------------------===//

void Reference::evaluate(const std::vector<int> &nodes, const BlockPlace &place,
                         int level, Scratch &scratch) const {
  for (int index : nodes)
    evaluateNode(index, place, level, scratch);
}

void Reference::loadGradient(const BlockPlace &place, int64_t number,
                             Block &target) const {
  float lossScale = static_cast<float>(controlNow.value(control_scale));
  source.gradient(place.param, number, place.rank, lossScale, place.begin,
                  place.count, target.value);
  std::fill_n(target.terms, place.count, 0.0);
}

void Reference::loadArgument(const Node &node, const BlockPlace &place,
                             Block &target) const {
  const Binding &argument = graph.arguments[node.argument];
  if (argument.role == "grad")
    return loadGradient(place, graph.gradientNumber(done, 0), target);
  const ReferenceArray &array = arrays[node.argument];
  if (!array.values) { // a remainder
    std::fill_n(target.value, place.count, 0.0);
    std::fill_n(target.terms, place.count, 0.0);
    return;
  }
  int64_t offset = offsets[place.param] + place.begin;
  std::copy_n(array.values.get() + offset, place.count, target.value);
  std::copy_n(array.terms.get() + offset, place.count, target.terms);
}

Bounded Reference::factorFor(int value, int param) const {
  return scalars.get(graph, value, param);
}

/// Multiplies by a factor that reaches the elements as f32.
static void scale(const Block &input, Bounded factor, int64_t count,
                  Block &result) {
  if (factor.value == 1 && factor.terms == 0) {
    std::copy_n(input.value, count, result.value);
    std::copy_n(input.terms, count, result.terms);
    return;
  }
  Bounded single = asF32(factor);
  for (int64_t i = 0; i < count; ++i) {
    Bounded product = input.get(i) * single;
    // An f32 product is infinite from here on, and counts as an overflow.
    if (std::fabs(product.value) >= f32Overflow)
      product.value = std::copysign(INFINITY, product.value);
    result.set(i, product);
  }
}

static Bounded clampTo(Bounded x, Bounded limit) {
  double bound = limit.value;
  if (x.value > bound)
    return {bound, std::max(x.terms, limit.terms)};
  if (x.value < -bound)
    return {-bound, std::max(x.terms, limit.terms)};
  return x;
}

void Reference::evaluateNode(int index, const BlockPlace &place, int level,
                             Scratch &scratch) const {
  const Node &node = graph.nodes[index];
  if (node.kind == NodeKind::Rule || node.kind == NodeKind::Update)
    return applyRuleNode(index, place, level, scratch);
  if (node.kind == NodeKind::Reduce)
    return reduce(index, place, level, scratch);
  Block &result = scratch.block(level, graph.values[node.results[0]].slot);
  if (node.kind == NodeKind::Argument)
    return loadArgument(node, place, result);
  if (node.kind == NodeKind::Accumulate)
    return accumulate(node, place, level, scratch);
  const Block &input =
      scratch.block(level, graph.values[node.operands[0]].slot);
  switch (node.kind) {
  case NodeKind::Unscale:
    return scale(input, factorFor(node.operands[1], place.param), place.count,
                 result);
  case NodeKind::Clip:
    return scale(input,
                 clipFactor(factorFor(node.operands[1], place.param),
                            factorFor(node.operands[2], place.param)),
                 place.count, result);
  case NodeKind::ClipValue: {
    Bounded limit = asF32(factorFor(node.operands[1], place.param));
    for (int64_t i = 0; i < place.count; ++i)
      result.set(i, clampTo(input.get(i), limit));
    return;
  }
  case NodeKind::Encode:
    for (int64_t i = 0; i < place.count; ++i)
      result.set(i, roundToFormat(node.format, input.get(i)));
    if (node.results.size() > 1) {
      // The first half carries the exact value, so the second has nothing.
      Block &low = scratch.block(level, graph.values[node.results[1]].slot);
      std::fill_n(low.value, place.count, 0.0);
      std::fill_n(low.terms, place.count, 0.0);
    }
    return;
  case NodeKind::Decode:
    if (node.format == Format::F64) {
      for (int64_t i = 0; i < place.count; ++i)
        result.set(i, asF32(input.get(i)));
      return;
    }
    [[fallthrough]];
  default: // Decode and Copy: exact
    std::copy_n(input.value, place.count, result.value);
    std::copy_n(input.terms, place.count, result.terms);
  }
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// How much a sum in a format may lose, by an addition and unit of magnitude,
/// in terms.
static double lossOfSum(Format format) {
  switch (format) {
  case Format::BF16:
    return 0x1p-8 / verifyBound;
  case Format::F16:
    return 0x1p-11 / verifyBound;
  default:
    return 0.25;
  }
}

/// Each addition rounds to the bucket's format, and so does the first copy
/// where that is narrower than f32.
void Reference::accumulate(const Node &node, const BlockPlace &place, int level,
                           Scratch &scratch) const {
  const ValueInfo &info = graph.values[node.results[0]];
  Block &part = scratch.block(level, graph.values[node.operands[0]].slot);
  const Block &bucket =
      scratch.block(level, graph.values[node.operands[1]].slot);
  Block &result = scratch.block(level, info.slot);
  bool adds = holds[place.param];
  double loss = lossOfSum(info.element);
  for (int64_t i = 0; i < place.count; ++i)
    result.set(i, adds ? bucket.get(i) : exactly(0));
  bool narrow = info.element == Format::BF16 || info.element == Format::F16;
  for (int64_t number = 0; number < graph.microBatches; ++number) {
    loadGradient(place, graph.gradientNumber(done, number), part);
    bool rounds = narrow || adds || number > 0;
    for (int64_t i = 0; i < place.count; ++i) {
      result.value[i] += part.value[i];
      if (rounds)
        result.terms[i] += loss * std::fabs(result.value[i]);
    }
  }
}

void Reference::reduce(int index, const BlockPlace &place, int level,
                       Scratch &scratch) const {
  const Node &node = graph.nodes[index];
  const ValueInfo &info = graph.values[node.results[0]];
  Block &result = scratch.block(level, info.slot);
  Block &input = scratch.block(level + 1, graph.values[node.operands[0]].slot);
  int64_t size = graph.mesh[node.axis].size, stride = 1;
  for (size_t i = node.axis + 1; i < graph.mesh.size(); ++i)
    stride *= graph.mesh[i].size;
  double loss = static_cast<double>(size - 1) * lossOfSum(info.element);
  // Equal contributions need to be made once only.
  int64_t distinct = source.ranksDiffer() ? size : 1;
  double repeat = static_cast<double>(size / distinct);

  double sizes[blockElements] = {};
  for (int64_t k = 0; k < distinct; ++k) {
    BlockPlace other = place;
    other.rank += (k - place.rank / stride % size) * stride;
    evaluate(plan.reduced[index], other, level + 1, scratch);
    for (int64_t i = 0; i < place.count; ++i) {
      Bounded part = input.get(i);
      if (node.maximum) {
        result.set(i, k == 0 ? part : largest(result.get(i), part));
        continue;
      }
      Bounded sum = k == 0 ? exactly(0) : result.get(i);
      sizes[i] += std::fabs(part.value) * repeat;
      result.set(i, {sum.value + part.value * repeat,
                     sum.terms + part.terms * repeat});
    }
  }
  if (node.maximum)
    return;
  for (int64_t i = 0; i < place.count; ++i)
    result.terms[i] += loss * sizes[i];
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

void Reference::applyRuleNode(int index, const BlockPlace &place, int level,
                              Scratch &scratch) const {
  const Node &node = graph.nodes[index];
  const Scratch::Prepared &prepared = scratch.prepared[index];
  auto blockOf = [&](int value) -> Block & {
    return scratch.block(level, graph.values[value].slot);
  };
  if (node.kind == NodeKind::Rule) {
    RuleBlocks blocks;
    if (node.inputs == 1 && node.rule.kind != RuleKind::LambDirection)
      blocks.gradient = &blockOf(node.operands[0]);
    // LAMB's direction reads what the other rules update.
    bool reads = node.rule.kind == RuleKind::LambDirection;
    int first = reads ? 0 : node.inputs,
        count = reads ? node.inputs : node.outs;
    for (int i = 0; i < count; ++i)
      blocks.outs[i] = &blockOf(node.operands[first + i]);
    for (size_t i = 0; i < node.results.size(); ++i)
      blocks.results[i] = &blockOf(node.results[i]);
    applyRule(node.rule, prepared.rule, blocks, place.count);
  } else {
    Block *registers = scratch.registersFor(node.apply);
    int flat = node.inputs + node.outs;
    for (int i = 0; i < flat; ++i) {
      const Block &source = blockOf(node.operands[i]);
      std::copy_n(source.value, place.count, registers[i].value);
      std::copy_n(source.terms, place.count, registers[i].terms);
    }
    for (size_t i = 0; i < prepared.derived.size(); ++i) {
      Block &derived = registers[flat + i];
      std::fill_n(derived.value, place.count, prepared.derived[i].value);
      std::fill_n(derived.terms, place.count, prepared.derived[i].terms);
    }
    runProgram(node.apply, registers, place.count);
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Block &source = registers[node.apply.results[i]];
      Block &result = blockOf(node.results[i]);
      std::copy_n(source.value, place.count, result.value);
      std::copy_n(source.terms, place.count, result.terms);
    }
  }
  if (prepared.applies)
    return;
  // Nothing changes: what has a destination keeps it.
  for (int i = 0; i < node.outs; ++i) {
    const Block &source = blockOf(node.operands[node.inputs + i]);
    Block &result = blockOf(node.results[i]);
    std::copy_n(source.value, place.count, result.value);
    std::copy_n(source.terms, place.count, result.terms);
  }
}
