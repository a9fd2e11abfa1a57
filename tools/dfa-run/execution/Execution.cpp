// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads around ranks, and arrays put together from their parts. The
// comparison with the reference is in Verify.cpp.
#include "execution/Execution.h"
#include "support/ElementOrder.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace dfa::run;

Status Execution::forAll(const std::function<Status(Rank &, int64_t)> &body) {
  std::vector<Status> statuses(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < ranks.size(); ++i)
    threads.emplace_back(
        [&, i] { statuses[i] = body(*ranks[i], static_cast<int64_t>(i)); });
  statuses[0] = body(*ranks[0], 0);
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < ranks.size(); ++i)
    if (!statuses[i].ok())
      return ranks.size() == 1 ? statuses[i]
                               : statuses[i].in("rank " + std::to_string(i));
  return Status();
}

Status Execution::create(const StepGraph &stepGraph, const StepCode &code,
                         const ExecutionOptions &options) {
  graph = &stepGraph;
  threads = options.threads;
  int64_t count = graph->ranks();
  unsigned cores =
      options.threads ? options.threads : std::thread::hardware_concurrency();
  for (int64_t i = 0; i < count; ++i)
    ranks.push_back(std::make_unique<Rank>());
  return forAll([&](Rank &rank, int64_t number) {
    RankOptions made;
    made.rank = number;
    made.cuda = options.cuda;
    made.ordinal = static_cast<int>(number);
    if (count > 1 || options.threads)
      made.threads = std::max<int>(1, static_cast<int>(cores / count));
    made.replay = options.replay;
    made.store = store.callbacks();
    return rank.create(stepGraph, code, made);
  });
}

Status Execution::load(const Source &source) {
  return forAll([&](Rank &rank, int64_t) { return rank.load(source); });
}

Status Execution::setGradients(const Source &source, int64_t number) {
  return forAll(
      [&](Rank &rank, int64_t) { return rank.setGradients(source, number); });
}

Status Execution::step() {
  return forAll([&](Rank &rank, int64_t) {
    Status status = rank.step();
    return status.ok() ? rank.synchronize() : status;
  });
}

/// Copies elements of one width from memory order to logical order.
template <typename T>
static void scatter(const ElementOrder &order, const Fragment &part,
                    const char *memory, void *logical) {
  order.toLogical(reinterpret_cast<const T *>(memory), part.begin, part.count,
                  static_cast<T *>(logical));
}

Status Execution::readStored(const std::string &role, int64_t replica,
                             int param, void *target) {
  const ParamSpec &spec = graph->params[param];
  const ClassSpec &cls = graph->classes[spec.cls];
  size_t width = 2; // the remainder's, which is no stored array
  for (const StoredArray &array : storedArrays(cls))
    if (array.role == role)
      width = formatBytes(array.format);
  std::memset(target, 0, static_cast<size_t>(spec.elements) * width);
  ElementOrder order;
  Status status = ElementOrder::create(spec.shape, spec.order, order);
  int64_t shards = 1;
  for (const MeshAxis &axis : graph->mesh)
    if (axis.name == "shard")
      shards = axis.size;
  for (int64_t shard = 0; shard < shards && status.ok(); ++shard) {
    Rank &rank = *ranks[replica * shards + shard];
    Fragment part = rank.fragment(role, param);
    std::vector<char> bytes(static_cast<size_t>(part.count) * width);
    status = rank.read(role, param, bytes.data());
    if (width == 8)
      scatter<uint64_t>(order, part, bytes.data(), target);
    else if (width == 4)
      scatter<uint32_t>(order, part, bytes.data(), target);
    else
      scatter<uint16_t>(order, part, bytes.data(), target);
  }
  return status;
}

Status Execution::read(const std::string &role, int param, void *target) {
  const ParamSpec &spec = graph->params[param];
  bool joined =
      role == "master" && graph->classes[spec.cls].master == Format::Remainder;
  if (!joined)
    return readStored(role, 0, param, target);
  std::vector<uint16_t> high(static_cast<size_t>(spec.elements)), low(high);
  Status status = readStored("param", 0, param, high.data());
  if (status.ok())
    status = readStored("remainder", 0, param, low.data());
  joinRemainders(high.data(), low.data(), spec.elements,
                 static_cast<float *>(target));
  return status;
}

Status Execution::readControl(int field, double &value) {
  return ranks.front()->readControl(controlFieldName(field), value);
}

Status Execution::readSteps(int param, int64_t &steps) {
  return ranks.front()->readSteps(param, steps);
}

std::string Execution::describe() const {
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += "rank " + std::to_string(i) + ": " + ranks[i]->deviceName() + "\n";
    text += ranks[i]->describeGroup();
    if (!text.empty() && text.back() != '\n')
      text += "\n";
  }
  return text;
}
