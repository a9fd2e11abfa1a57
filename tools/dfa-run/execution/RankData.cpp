// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values into a rank's arrays and out of them: from logical order to that of
// memory, from f64 to stored formats, and only the part that the rank owns.
#include "data/Results.h"
#include "execution/Rank.h"
#include "support/ElementOrder.h"
#include "support/Parallel.h"

#include <algorithm>
#include <mutex>

using namespace dfa::run;

/// Whether an array holds whole buckets: it does if any use of it does.
static bool isFull(const StepGraph &graph, const std::string &role, int cls) {
  int argument = graph.findArgument(role, cls);
  int result = graph.findResult(role, cls);
  return (argument >= 0 && !graph.arguments[argument].shard) ||
         (result >= 0 && !graph.results[result].shard);
}

Fragment Rank::fragmentOf(const std::string &role, int param,
                          int64_t shardNumber) const {
  const dfa_rt_placement_t &place = places[param];
  if (place.bucket < 0)
    return {};
  if (isFull(*graph, role, graph->params[param].cls))
    return {0, place.elements};
  int64_t shard = buckets[place.bucket].shard_elements;
  int64_t begin = std::max(place.start, shardNumber * shard);
  int64_t end =
      std::min(place.start + place.elements, (shardNumber + 1) * shard);
  return {begin - place.start, std::max<int64_t>(0, end - begin)};
}

Status Rank::address(const std::string &role, int param, void *&result,
                     Fragment &part) const {
  result = nullptr;
  part = {};
  int64_t cls = classIndices[graph->params[param].cls];
  int64_t array =
      cls < 0 ? -1 : dfa_rt_program_array(program, cls, role.c_str());
  if (array < 0)
    return Status(); // the step does not touch it
  Status status =
      checkRuntime(dfa_rt_optimizer_segment_address(
                       optimizer, cls, array, places[param].segment, &result),
                   role + "/" + graph->params[param].name);
  if (status.ok() && result)
    part = fragment(role, param);
  return status;
}

/// The stored format of a role.
static Format formatOf(const ClassSpec &cls, const std::string &role) {
  if (role == "param")
    return cls.param;
  if (role == "grad")
    return cls.grad;
  if (role == "remainder")
    return Format::Remainder;
  for (const StoredArray &array : storedArrays(cls))
    if (array.role == role)
      return array.format;
  return Format::F32;
}

/// The half of a value that a parameter with a remainder, or its remainder,
/// holds.
static uint16_t halfOf(bool isRemainder, double value) {
  RemainderParts parts = splitRemainder(static_cast<float>(value));
  return isRemainder ? parts.remainder : parts.param;
}

Status Rank::write(const std::string &role, int param, const double *logical) {
  void *target = nullptr;
  Fragment part;
  Status status = address(role, param, target, part);
  if (!status.ok() || part.count == 0)
    return status;
  const ParamSpec &spec = graph->params[param];
  const ClassSpec &cls = graph->classes[spec.cls];
  ElementOrder order;
  status = ElementOrder::create(spec.shape, spec.order, order);
  if (!status.ok())
    return status;
  Format format = formatOf(cls, role);
  bool isRemainder = role == "remainder";
  bool isHalf =
      cls.master == Format::Remainder && (role == "param" || isRemainder);
  std::vector<char> bytes(static_cast<size_t>(part.count) *
                          formatBytes(format));
  uint16_t *halves = reinterpret_cast<uint16_t *>(bytes.data());
  int64_t indices[256];
  for (int64_t done = 0; done < part.count; done += 256) {
    int64_t now = std::min<int64_t>(256, part.count - done);
    order.indices(part.begin + done, now, indices);
    for (int64_t i = 0; i < now; ++i) {
      double value = logical[indices[i]];
      if (isHalf)
        halves[done + i] = halfOf(isRemainder, value);
      else
        storeValue(format, value, done + i, bytes.data());
    }
  }
  status = checkRuntime(
      dfa_rt_device_copy(device, target, bytes.data(), bytes.size(), stream),
      "copying " + role + "/" + spec.name);
  // The bytes are gone when this returns.
  return status.ok() ? synchronize() : status;
}

Status Rank::loadControl(const Source &source) {
  std::map<std::string, double> fields = graph->control;
  for (const std::pair<const std::string, double> &field : source.control())
    fields[field.first] = field.second;
  for (const std::pair<const std::string, double> &field : fields) {
    Status status =
        checkRuntime(dfa_rt_optimizer_set_control(
                         optimizer, field.first.c_str(), field.second, stream),
                     "control/" + field.first);
    if (!status.ok())
      return status;
  }
  return Status();
}

Status Rank::load(const Source &source) {
  for (size_t i = 0; i < graph->groups.size(); ++i)
    for (const std::pair<const std::string, double> &hyper :
         graph->groups[i].hyper) {
      int64_t column = dfa_rt_program_hyper(program, hyper.first.c_str());
      if (column < 0)
        continue; // no rule reads it
      Status status = checkRuntime(
          dfa_rt_optimizer_set_hyper(optimizer, static_cast<int64_t>(i), column,
                                     hyper.second),
          "hyper-parameter " + hyper.first);
      if (!status.ok())
        return status;
    }
  // Fields set before prepare are initial values, also of recordings.
  Status status = loadControl(source);
  if (status.ok())
    status = checkRuntime(dfa_rt_optimizer_prepare(optimizer, stream),
                          "preparing the step");
  if (!status.ok())
    return status;
  return forEachParam([&](int param) { return loadParam(source, param); });
}

Status Rank::loadParam(const Source &source, int param) {
  const ParamSpec &spec = graph->params[param];
  const ClassSpec &cls = graph->classes[spec.cls];
  std::vector<double> values(static_cast<size_t>(spec.elements));
  std::vector<std::string> roles = {"param"};
  if (cls.master != Format::None)
    roles.push_back(cls.master == Format::Remainder ? "remainder" : "master");
  Status status = source.initial("master", param, values.data());
  for (const std::string &role : roles)
    if (status.ok())
      status = write(role, param, values.data());
  for (const StateSpec &state : cls.states) {
    if (status.ok())
      status = source.initial(state.name, param, values.data());
    if (status.ok())
      status = write(state.name, param, values.data());
  }
  int64_t steps = source.initialStep(param);
  if (!status.ok() || steps == 0)
    return status;
  return checkRuntime(
      dfa_rt_optimizer_set_step(optimizer, classIndices[spec.cls],
                                places[param].segment, steps, stream),
      "step/" + spec.name);
}

Status Rank::forEachParam(const std::function<Status(int)> &body) {
  Status first;
  std::mutex mutex;
  parallelFor(static_cast<int64_t>(graph->params.size()), 1,
              static_cast<unsigned>(options.threads),
              [&](int64_t begin, int64_t) {
                Status status = body(static_cast<int>(begin));
                std::lock_guard<std::mutex> lock(mutex);
                if (first.ok() && !status.ok())
                  first = status;
              });
  return first;
}

Status Rank::setGradients(const Source &source, int64_t step) {
  int64_t first = graph->gradientNumber(step, 0);
  if (fillEntry < 0)
    return contribute(source, first);
  for (int64_t i = 0; i < graph->microBatches; ++i) {
    Status status = contribute(source, first + i);
    if (status.ok())
      status = checkRuntime(dfa_rt_optimizer_run(optimizer, fillEntry, stream),
                            "accumulating gradients");
    if (!status.ok())
      return status;
  }
  return setPresence(source, first, graph->microBatches);
}

/// A parameter that has any of some gradients is updated.
Status Rank::setPresence(const Source &source, int64_t first, int64_t count) {
  return forEachParam([&](int param) {
    bool present = false;
    for (int64_t i = 0; i < count; ++i)
      present |= source.hasGradient(param, first + i, options.rank);
    const ParamSpec &spec = graph->params[param];
    return checkRuntime(
        dfa_rt_optimizer_set_present(optimizer, classIndices[spec.cls],
                                     places[param].segment, present),
        quoted(spec.name));
  });
}

Status Rank::contribute(const Source &source, int64_t number) {
  double scale = 1;
  Status read = readControl("scale", scale);
  if (!read.ok())
    return read;
  Status status = setPresence(source, number, 1);
  if (!status.ok())
    return status;
  return forEachParam([&](int param) {
    const ParamSpec &spec = graph->params[param];
    std::vector<double> values(static_cast<size_t>(spec.elements));
    source.gradient(param, number, options.rank, static_cast<float>(scale), 0,
                    spec.elements, values.data());
    return write("grad", param, values.data());
  });
}

Status Rank::read(const std::string &role, int param, void *target) {
  void *source = nullptr;
  Fragment part;
  Status status = address(role, param, source, part);
  if (!status.ok() || part.count == 0)
    return status;
  const ClassSpec &cls = graph->classes[graph->params[param].cls];
  size_t bytes =
      static_cast<size_t>(part.count) * formatBytes(formatOf(cls, role));
  status =
      checkRuntime(dfa_rt_device_copy(device, target, source, bytes, stream),
                   "copying " + role + "/" + graph->params[param].name);
  return status.ok() ? synchronize() : status;
}

Status Rank::readControl(const char *field, double &value) {
  return checkRuntime(
      dfa_rt_optimizer_fetch_control(optimizer, field, &value, stream),
      std::string("control/") + field);
}

Status Rank::readSteps(int param, int64_t &steps) {
  return checkRuntime(dfa_rt_optimizer_fetch_step(
                          optimizer, classIndices[graph->params[param].cls],
                          places[param].segment, &steps, stream),
                      "step/" + graph->params[param].name);
}
