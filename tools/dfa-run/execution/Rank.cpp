// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Set-up, steps and tear-down. Data goes in and out in RankData.cpp.
#include "execution/Rank.h"

#include <algorithm>

using namespace dfa::run;

Status dfa::run::checkRuntime(dfa_rt_status_t status, const std::string &what) {
  if (status == DFA_RT_OK)
    return Status();
  return Status::failure(what + ": " + dfa_rt_last_error());
}

/// Of a broadcast; longer ones go in parts.
constexpr size_t stagingBytes = size_t(64) << 20;

Rank::~Rank() {
  if (optimizer)
    dfa_rt_optimizer_release(optimizer);
  for (dfa_rt_communicator_t *communicator : communicators)
    dfa_rt_communicator_release(communicator);
  if (staging)
    dfa_rt_device_free(device, staging, stagingBytes);
  if (group) {
    // Nobody is left to tell of a failure: recordings went with the optimizer.
    (void)dfa_rt_group_close(group);
    guard.reset();
    dfa_rt_group_release(group);
  }
  if (program)
    dfa_rt_program_release(program);
  if (planned)
    dfa_rt_layout_release(planned);
  if (stream)
    dfa_rt_stream_destroy(device, stream);
  if (device)
    dfa_rt_device_release(device);
}

Status Rank::createLayout() {
  dfa_rt_layout_options_t sizes = {};
  sizes.struct_size = sizeof(sizes);
  sizes.replicate = sizes.shard = 1;
  sizes.bucket_bytes = graph->bucketBytes;
  for (const MeshAxis &axis : graph->mesh)
    (axis.name == "shard" ? sizes.shard : sizes.replicate) = axis.size;
  shardIndex = options.rank % sizes.shard;
  Status status = checkRuntime(dfa_rt_layout_create(&sizes, &planned),
                               "starting the layout");
  auto add = [&](dfa_rt_status_t result, const std::string &what) {
    if (status.ok())
      status = checkRuntime(result, what);
  };
  for (const ClassSpec &cls : graph->classes) {
    add(dfa_rt_layout_add_class(planned, cls.name.c_str(), formatName(cls.grad),
                                1),
        "class @" + cls.name);
    add(dfa_rt_layout_add_array(planned, "param", formatName(cls.param)),
        "class @" + cls.name);
    add(dfa_rt_layout_add_array(planned, "grad", formatName(cls.grad)),
        "class @" + cls.name);
    if (cls.master != Format::None)
      add(dfa_rt_layout_add_array(
              planned, cls.master == Format::Remainder ? "remainder" : "master",
              formatName(cls.master)),
          "class @" + cls.name);
    for (const StateSpec &state : cls.states)
      add(dfa_rt_layout_add_array(planned, state.name.c_str(),
                                  formatName(state.format)),
          "class @" + cls.name);
  }
  for (const ParamSpec &param : graph->params) {
    std::vector<int64_t> strides(param.shape.size());
    int64_t next = 1;
    for (size_t i = param.shape.size(); i-- > 0;) {
      size_t dim = param.order.empty() ? i : size_t(param.order[i]);
      strides[dim] = next;
      next *= std::max<int64_t>(1, param.shape[dim]);
    }
    dfa_rt_param_t row = {};
    row.struct_size = sizeof(row);
    row.name = param.name.c_str();
    row.dims = static_cast<int32_t>(param.shape.size());
    row.shape = param.shape.data();
    row.strides = strides.data();
    row.class_index = param.cls;
    row.group = param.group;
    row.shared_with = row.unit = -1;
    add(dfa_rt_layout_add_param(planned, &row), quoted(param.name));
  }
  add(dfa_rt_layout_plan(planned), "planning the layout");
  if (!status.ok())
    return status;
  places.resize(graph->params.size());
  for (size_t i = 0; i < places.size(); ++i)
    add(dfa_rt_layout_placement(planned, static_cast<int64_t>(i), &places[i]),
        quoted(graph->params[i].name));
  buckets.resize(static_cast<size_t>(dfa_rt_layout_bucket_count(planned)));
  for (size_t i = 0; i < buckets.size(); ++i)
    add(dfa_rt_layout_bucket(planned, static_cast<int64_t>(i), &buckets[i]),
        "a bucket");
  return status;
}

Status Rank::connect() {
  if (graph->ranks() == 1)
    return Status();
  std::vector<const char *> names;
  std::vector<int32_t> sizes;
  for (const MeshAxis &axis : graph->mesh) {
    names.push_back(axis.name.c_str());
    sizes.push_back(static_cast<int32_t>(axis.size));
  }
  dfa_rt_group_options_t wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.device = device;
  wanted.transport = options.cuda ? "nccl" : "gloo";
  wanted.axis_names = names.data();
  wanted.axis_sizes = sizes.data();
  wanted.axis_count = static_cast<int32_t>(names.size());
  wanted.rank = -1; // the launcher's variables say it, and where to meet
  Status status =
      checkRuntime(dfa_rt_group_create(&wanted, &group), "connecting");
  if (status.ok())
    guard = std::make_unique<FailureGuard>(group, std::to_string(options.rank));
  if (status.ok())
    status = checkRuntime(dfa_rt_group_agree(group, options.agreement.c_str()),
                          "comparing what to run");
  if (status.ok())
    status =
        checkRuntime(dfa_rt_group_agree(group, dfa_rt_layout_text(planned)),
                     "comparing layouts");
  for (const char *name : names) {
    if (!status.ok())
      return status;
    communicators.push_back(nullptr);
    status = checkRuntime(dfa_rt_group_axis(group, name, &communicators.back()),
                          "axis " + quoted(name));
  }
  return status;
}

Status Rank::create(const StepGraph &stepGraph, const StepCode &stepCode,
                    const RankOptions &rankOptions) {
  graph = &stepGraph;
  code = &stepCode;
  options = rankOptions;
  dfa_rt_status_t made =
      options.cuda ? dfa_rt_device_create_cuda(options.ordinal, &device)
                   : dfa_rt_device_create_cpu(options.threads, &device);
  Status status = checkRuntime(made, "opening the device");
  if (status.ok())
    status =
        checkRuntime(dfa_rt_stream_create(device, &stream), "making a stream");
  if (status.ok())
    status = createLayout();
  if (status.ok())
    status = connect();
  if (status.ok())
    status = checkRuntime(dfa_rt_program_parse(code->program.data(),
                                               code->program.size(), "program",
                                               &program),
                          "reading the program");
  if (!status.ok())
    return status;
  for (const ClassSpec &cls : graph->classes)
    classIndices.push_back(dfa_rt_program_class(program, cls.name.c_str()));
  fillEntry = dfa_rt_program_entry(program, "fill");
  reduceEntry = dfa_rt_program_entry(program, "reduce");
  finishEntry = dfa_rt_program_entry(program, "finish");

  dfa_rt_optimizer_options_t wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.device = device;
  wanted.program = program;
  wanted.layout = planned;
  wanted.rank = options.rank;
  wanted.image = code->image.data();
  wanted.image_bytes = code->image.size();
  if (!options.cuda) {
    wanted.resolve = [](void *context, const char *name) {
      return static_cast<const StepCode *>(context)->kernel(name);
    };
    wanted.resolve_context = const_cast<StepCode *>(code);
  }
  if (!communicators.empty()) {
    wanted.communicators = communicators.data();
    wanted.communicator_count = static_cast<int64_t>(communicators.size());
  }
  wanted.replay = options.replay;
  return checkRuntime(dfa_rt_optimizer_create(&wanted, &optimizer),
                      "making the optimizer");
}

Status Rank::step() {
  Status status;
  if (reduceEntry >= 0)
    status = checkRuntime(dfa_rt_optimizer_run(optimizer, reduceEntry, stream),
                          "reducing gradients");
  if (status.ok())
    status = checkRuntime(dfa_rt_optimizer_run(optimizer, finishEntry, stream),
                          "running the step");
  return status;
}

Status Rank::synchronize() {
  return checkRuntime(dfa_rt_stream_synchronize(device, stream),
                      "waiting for the device");
}

Status Rank::broadcast(void *memory, size_t bytes, int64_t root) {
  Status status;
  if (!staging)
    status =
        checkRuntime(dfa_rt_device_allocate(device, stagingBytes, &staging),
                     "making room for broadcasts");
  bool sends = root == options.rank;
  for (size_t done = 0; done < bytes && status.ok(); done += stagingBytes) {
    size_t now = std::min(stagingBytes, bytes - done);
    char *part = static_cast<char *>(memory) + done;
    if (sends)
      status = checkRuntime(
          dfa_rt_device_copy(device, staging, part, now, stream), "copying");
    if (status.ok())
      status = checkRuntime(
          dfa_rt_group_broadcast(group, staging, static_cast<int64_t>(now),
                                 static_cast<int32_t>(root), stream),
          "exchanging results");
    if (status.ok() && !sends)
      status = checkRuntime(
          dfa_rt_device_copy(device, part, staging, now, stream), "copying");
    if (status.ok())
      status = synchronize();
  }
  return status;
}

void Rank::report(const std::string &reason) {
  // Who calls this says the reason.
  if (guard)
    guard->leaveMessage();
  // A failure that all know of already needs no second word.
  if (group && !dfa_rt_group_failure(group, nullptr))
    dfa_rt_group_report(group, reason.c_str());
}

std::string Rank::deviceName() const { return dfa_rt_device_name(device); }

std::string Rank::describeGroup() const {
  return group ? dfa_rt_group_describe(group) : "";
}
