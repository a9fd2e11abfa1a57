// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa_rt.h: groups of ranks and their communicators, over runtime/comm.

#include "capi/Handles.h"
#include "comm/Bootstrap.h"
#include "comm/CommSet.h"
#include "comm/Store.h"

#include <cmath>
#include <cstdio>
#include <cstring>

using namespace dfa::rt;
using namespace dfa::rt::capi;

namespace {
// Shared by the group's handle and those of its communicators.
struct GroupState {
  std::shared_ptr<Device> device;
  std::unique_ptr<CommSet> set; // goes before the device
};
} // namespace

struct dfa_rt_group {
  std::shared_ptr<GroupState> state;
  std::string description;
  std::mutex mutex; // guards the failure
  bool failed = false;
  CollectiveFailure failure;
};

static Status readLaunch(const dfa_rt_group_options_t &options,
                         const Environment &environment, Launch &launch) {
  LaunchFlags flags;
  if (options.rank >= 0) {
    flags.rank = options.rank;
    flags.worldSize = options.world_size;
    flags.localRank = options.local_rank;
    flags.localWorldSize = options.local_world_size;
  }
  // With a store of the caller no address is needed; this one is never opened.
  if (options.store)
    flags.store = "file:/callbacks";
  if (options.run_id)
    flags.runId = options.run_id;
  return resolveLaunch(flags, environment, launch);
}

static Status readTransport(const char *word, CommSetOptions &options) {
  if (std::strcmp(word, "gloo") == 0)
    options.transport = TransportKind::Gloo;
  else if (std::strcmp(word, "nccl") == 0)
    options.transport = TransportKind::Nccl;
  else
    return DFA_RT_ERROR(InvalidArgument,
                        "expects transport 'gloo' or 'nccl', but got '%s'",
                        word);
  return Status();
}

static Status readMesh(const dfa_rt_group_options_t &given,
                       CommSetOptions &options) {
  if (given.axis_count < 0 || given.rank_count < 0)
    return DFA_RT_ERROR(InvalidArgument, "expects counts of at least 0");
  if (given.axis_count > 0) {
    DFA_RT_TRY(required(given.axis_names, "options.axis_names"));
    DFA_RT_TRY(required(given.axis_sizes, "options.axis_sizes"));
  }
  for (int32_t axis = 0; axis < given.axis_count; ++axis) {
    DFA_RT_TRY(required(given.axis_names[axis], "options.axis_names[]"));
    options.axes.push_back({given.axis_names[axis], given.axis_sizes[axis]});
  }
  if (given.ranks)
    options.ranks.assign(given.ranks, given.ranks + given.rank_count);
  return Status();
}

dfa_rt_status_t dfa_rt_launch_read(dfa_rt_launch_t *launch) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(launch, "launch"));
    if (launch->struct_size < sizeof(*launch))
      return DFA_RT_ERROR(InvalidArgument,
                          "expects a launch of %zu bytes, but got %zu",
                          sizeof(*launch), launch->struct_size);
    Launch found;
    DFA_RT_TRY(resolveLaunch(LaunchFlags(), processEnvironment(), found));
    launch->rank = found.rank;
    launch->world_size = found.worldSize;
    launch->local_rank = found.localRank;
    launch->local_world_size = found.localWorldSize;
    std::snprintf(launch->source, sizeof(launch->source), "%s",
                  found.source.c_str());
    return Status();
  });
}

dfa_rt_status_t dfa_rt_group_create(const dfa_rt_group_options_t *options,
                                    dfa_rt_group_t **group) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(options, "options"));
    DFA_RT_TRY(required(group, "group"));
    if (options->struct_size < sizeof(*options))
      return DFA_RT_ERROR(InvalidArgument,
                          "expects options of %zu bytes, but got %zu",
                          sizeof(*options), options->struct_size);
    DFA_RT_TRY(required(options->device, "options.device"));
    DFA_RT_TRY(required(options->transport, "options.transport"));
    std::shared_ptr<GroupState> state = std::make_shared<GroupState>();
    state->device = options->device->device;
    CommSetOptions made;
    DFA_RT_TRY(readTransport(options->transport, made));
    DFA_RT_TRY(readMesh(*options, made));
    DFA_RT_TRY(readLaunch(*options, made.env, made.launch));
    double seconds = options->timeout_s;
    if (seconds == 0)
      DFA_RT_TRY(timeoutFromEnvironment(made.env, seconds));
    if (!(seconds > 0) || seconds > 1e9)
      return DFA_RT_ERROR(InvalidArgument,
                          "expects a timeout of up to 1e9 seconds, but got %g",
                          seconds);
    made.timeout =
        Milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
    made.instance = options->instance;
    made.device = state->device.get();
    // Threads that nobody joins keep the device alive through it.
    made.enterDevice = [device = state->device] {
      return device->makeCurrent();
    };
    std::unique_ptr<Store> store;
    if (const dfa_rt_store_t *given = options->store) {
      StoreCallbacks callbacks;
      callbacks.set = given->set;
      callbacks.get = given->get;
      callbacks.add = given->add;
      callbacks.context = given->context;
      DFA_RT_TRY(makeCallbackStore(callbacks, store));
    } else {
      DFA_RT_TRY(openStore(made.launch, made.timeout, store));
    }
    DFA_RT_TRY(CommSet::create(made, std::move(store), state->set));
    std::unique_ptr<dfa_rt_group> handle = std::make_unique<dfa_rt_group>();
    handle->state = std::move(state);
    handle->description = handle->state->set->describe();
    *group = handle.release();
    return Status();
  });
}

void dfa_rt_group_release(dfa_rt_group_t *group) {
  guard([&] {
    delete group;
    return Status();
  });
}

dfa_rt_status_t dfa_rt_group_close(dfa_rt_group_t *group) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(group, "group"));
    return group->state->set->close();
  });
}

dfa_rt_status_t dfa_rt_group_axis(dfa_rt_group_t *group, const char *name,
                                  dfa_rt_communicator_t **communicator) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(group, "group"));
    DFA_RT_TRY(required(name, "name"));
    DFA_RT_TRY(required(communicator, "communicator"));
    Communicator *axis = group->state->set->axis(name);
    if (!axis)
      return DFA_RT_ERROR(NotFound, "the mesh has no axis '%s'", name);
    *communicator = new dfa_rt_communicator{
        std::shared_ptr<Communicator>(group->state, axis)};
    return Status();
  });
}

dfa_rt_status_t dfa_rt_group_agree(dfa_rt_group_t *group, const char *text) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(group, "group"));
    DFA_RT_TRY(required(text, "text"));
    return group->state->set->agreePlan(text);
  });
}

dfa_rt_status_t dfa_rt_group_broadcast(dfa_rt_group_t *group, void *memory,
                                       int64_t bytes, int32_t root,
                                       dfa_rt_stream_t stream) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(group, "group"));
    Communicator *mesh = group->state->set->mesh();
    if (!mesh)
      return DFA_RT_ERROR(FailedPrecondition, "the communicators are closed");
    if (bytes > 0)
      DFA_RT_TRY(required(memory, "memory"));
    return mesh->broadcast(memory, memory, bytes, DataType::I8, root,
                           Stream{stream});
  });
}

void dfa_rt_group_report(dfa_rt_group_t *group, const char *reason) {
  guard([&] {
    if (group)
      group->state->set->reportLocalFailure(reason ? reason : "unknown");
    return Status();
  });
}

const char *dfa_rt_group_describe(dfa_rt_group_t *group) {
  return group ? group->description.c_str() : "";
}

bool dfa_rt_group_failure(dfa_rt_group_t *group, dfa_rt_failure_t *failure) {
  bool failed = false;
  guard([&]() -> Status {
    DFA_RT_TRY(required(group, "group"));
    std::lock_guard<std::mutex> lock(group->mutex);
    // The first failure stays, so that its strings do.
    if (!group->failed)
      group->failed = group->state->set->failure(group->failure);
    failed = group->failed;
    if (failed && failure)
      *failure = {group->failure.rank, group->failure.bucket,
                  group->failure.collective.c_str(),
                  group->failure.reason.c_str()};
    return Status();
  });
  return failed;
}
