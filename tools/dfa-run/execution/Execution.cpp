// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps, and arrays put together from the parts of the ranks. How ranks ask
// each other is in Requests.cpp, the comparison in Verify.cpp.
#include "execution/Execution.h"
#include "support/ElementOrder.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace dfa::run;

Status dfa::run::readPlace(Place &place) {
  dfa_rt_launch_t launch = {};
  launch.struct_size = sizeof(launch);
  dfa_rt_status_t read = dfa_rt_launch_read(&launch);
  if (read != DFA_RT_OK)
    return Status::failure(dfa_rt_last_error());
  place.rank = launch.rank;
  place.ranks = launch.world_size;
  place.localRank = launch.local_rank;
  place.localRanks = launch.local_world_size;
  place.source = launch.source;
  return Status();
}

Status Execution::shared(Status status) {
  if (status.ok())
    return status;
  broken = true;
  rank.report(status.message());
  return place.ranks == 1 ? status
                          : status.in("rank " + std::to_string(place.rank));
}

Status Execution::create(const StepGraph &stepGraph, const StepCode &code,
                         const ExecutionOptions &options) {
  graph = &stepGraph;
  threads = options.threads;
  place = options.place;
  for (const MeshAxis &axis : graph->mesh)
    if (axis.name == "shard")
      shards = axis.size;
  unsigned cores =
      options.threads ? options.threads : std::thread::hardware_concurrency();
  RankOptions made;
  made.rank = place.rank;
  made.cuda = options.cuda;
  // A launcher may show each rank only its own.
  if (options.cuda && dfa_rt_cuda_device_count() > 1)
    made.ordinal = static_cast<int>(place.localRank);
  if (place.ranks > 1 || options.threads)
    made.threads = std::max<int>(1, static_cast<int>(cores / place.localRanks));
  made.replay = options.replay;
  made.agreement = options.agreement;
  return shared(rank.create(stepGraph, code, made));
}

Status Execution::load(const Source &source) {
  return shared(rank.load(source));
}

Status Execution::setGradients(const Source &source, int64_t number) {
  return shared(rank.setGradients(source, number));
}

Status Execution::step() {
  Status status = rank.step();
  return shared(status.ok() ? rank.synchronize() : status);
}

size_t Execution::storedBytes(const std::string &role, int param) const {
  for (const StoredArray &array :
       storedArrays(graph->classes[graph->params[param].cls]))
    if (array.role == role)
      return formatBytes(array.format);
  return 2; // the remainder's, which is no stored array
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
  size_t width = storedBytes(role, param);
  std::memset(target, 0, static_cast<size_t>(spec.elements) * width);
  ElementOrder order;
  Status status = ElementOrder::create(spec.shape, spec.order, order);
  if (!status.ok())
    return status;
  std::lock_guard<std::recursive_mutex> lock(exchange);
  status = request(Ask::Read, replica, param, role);
  if (!status.ok())
    return status;
  return shared(exchangeParts(role, replica, param,
                              [&](const Fragment &part, const char *bytes) {
                                if (width == 8)
                                  scatter<uint64_t>(order, part, bytes, target);
                                else if (width == 4)
                                  scatter<uint32_t>(order, part, bytes, target);
                                else
                                  scatter<uint16_t>(order, part, bytes, target);
                                return Status();
                              }));
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
  std::lock_guard<std::recursive_mutex> lock(exchange);
  return shared(rank.readControl(controlFieldName(field), value));
}

Status Execution::readSteps(int param, int64_t &steps) {
  std::lock_guard<std::recursive_mutex> lock(exchange);
  return shared(rank.readSteps(param, steps));
}

std::string Execution::describe() const {
  std::string text =
      "rank " + std::to_string(place.rank) + ": " + rank.deviceName() + "\n";
  text += rank.describeGroup();
  if (text.back() != '\n')
    text += "\n";
  return text;
}
