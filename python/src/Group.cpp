// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of ranks, and key-value stores that are Python objects.

#include "Core.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstring>
#include <thread>

using namespace dfa::python;

namespace {

struct Failure {
  int32_t rank;
  int64_t bucket;
  std::string collective, reason;
};

/// A store of Python's; lives as long as the group.
struct Store {
  nb::object object;
  bool hasCheck;
};

} // namespace

/// Runs a callback with the interpreter lock. A Python exception is printed
/// as one that nobody can catch, and becomes a failure.
template <typename Body> static int callPython(Body body) {
  if (!interpreterRuns())
    return -1;
  nb::gil_scoped_acquire lock;
  try {
    return body();
  } catch (nb::python_error &error) {
    error.discard_as_unraisable("a store of dfa");
  } catch (const std::exception &) {
    // A value of the wrong type.
  }
  return -1;
}

static int storeSet(void *context, const char *key, const void *data,
                    size_t bytes) {
  return callPython([&] {
    static_cast<Store *>(context)->object.attr("set")(key,
                                                      nb::bytes(data, bytes));
    return 0;
  });
}

static int storeAdd(void *context, const char *key, int64_t delta,
                    int64_t *sum) {
  return callPython([&] {
    *sum = nb::cast<int64_t>(
        static_cast<Store *>(context)->object.attr("add")(key, delta));
    return 0;
  });
}

/// 0: found, 1: absent, -1: failed.
static int tryGet(Store &store, const char *key, void *data, size_t capacity,
                  size_t *bytes) {
  return callPython([&] {
    if (store.hasCheck) {
      nb::list keys;
      keys.append(key);
      if (!nb::cast<bool>(store.object.attr("check")(keys)))
        return 1;
    }
    try {
      nb::bytes value = nb::cast<nb::bytes>(store.object.attr("get")(key));
      *bytes = value.size();
      std::memcpy(data, value.c_str(), std::min(capacity, value.size()));
      return 0;
    } catch (nb::python_error &error) {
      if (!error.matches(PyExc_LookupError))
        throw;
      return 1;
    }
  });
}

static int storeGet(void *context, const char *key, void *data, size_t capacity,
                    size_t *bytes, int64_t timeoutMs) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeoutMs);
  for (;;) {
    int result =
        tryGet(*static_cast<Store *>(context), key, data, capacity, bytes);
    if (result != 1 || Clock::now() >= end)
      return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

static void releaseStore(Store *store) {
  if (!store)
    return;
  if (!interpreterRuns()) {
    // The object goes with the process.
    store->object.release();
  } else {
    nb::gil_scoped_acquire lock;
    store->object.reset();
  }
  delete store;
}

static Group
createGroup(const Device &device, const std::string &transport,
            const std::vector<std::pair<std::string, int32_t>> &axes,
            const std::optional<std::vector<int32_t>> &ranks, int32_t rank,
            int32_t worldSize, int32_t localRank, int32_t localWorldSize,
            const std::optional<std::string> &runId, int32_t instance,
            double timeout, nb::object storeObject) {
  std::vector<const char *> names;
  std::vector<int32_t> sizes;
  for (const std::pair<std::string, int32_t> &axis : axes) {
    names.push_back(axis.first.c_str());
    sizes.push_back(axis.second);
  }
  dfa_rt_group_options_t options = {};
  options.struct_size = sizeof(options);
  options.device = device.handle.get();
  options.transport = transport.c_str();
  options.axis_names = names.data();
  options.axis_sizes = sizes.data();
  options.axis_count = static_cast<int32_t>(names.size());
  if (ranks) {
    options.ranks = ranks->data();
    options.rank_count = static_cast<int32_t>(ranks->size());
  }
  options.rank = rank;
  options.world_size = worldSize;
  options.local_rank = localRank;
  options.local_world_size = localWorldSize;
  options.run_id = runId ? runId->c_str() : nullptr;
  options.instance = instance;
  options.timeout_s = timeout;
  Store *store = nullptr;
  dfa_rt_store_t callbacks = {storeSet, storeGet, storeAdd, nullptr};
  if (!storeObject.is_none()) {
    bool hasCheck = nb::hasattr(storeObject, "check");
    store = new Store{std::move(storeObject), hasCheck};
    callbacks.context = store;
    options.store = &callbacks;
  }
  dfa_rt_group_t *handle = nullptr;
  dfa_rt_status_t status =
      unlocked([&] { return dfa_rt_group_create(&options, &handle); });
  if (status != DFA_RT_OK) {
    // Nothing of the runtime is called here, so its message stays.
    releaseStore(store);
    throwRuntime(status);
  }
  auto release = [store](dfa_rt_group_t *group) {
    unlocked([&] { dfa_rt_group_release(group); });
    releaseStore(store);
  };
  return {std::shared_ptr<dfa_rt_group_t>(handle, release)};
}

/// A number that a communicator tells about itself.
template <int32_t (*Read)(const dfa_rt_communicator_t *)>
static int32_t readAxis(const Group &group, const std::string &name) {
  dfa_rt_communicator_t *axis = nullptr;
  check(dfa_rt_group_axis(group.handle.get(), name.c_str(), &axis));
  int32_t value = Read(axis);
  dfa_rt_communicator_release(axis);
  return value;
}

static std::optional<Failure> getFailure(const Group &group) {
  dfa_rt_failure_t failure = {-1, -1, nullptr, nullptr};
  if (!dfa_rt_group_failure(group.handle.get(), &failure))
    return std::nullopt;
  return Failure{failure.rank, failure.bucket,
                 failure.collective ? failure.collective : "",
                 failure.reason ? failure.reason : ""};
}

void dfa::python::addGroups(nb::module_ &module) {
  nb::class_<Failure>(module, "Failure")
      .def_ro("rank", &Failure::rank)
      .def_ro("bucket", &Failure::bucket)
      .def_ro("collective", &Failure::collective)
      .def_ro("reason", &Failure::reason);
  nb::class_<Group>(module, "Group")
      .def(
          "__init__",
          [](Group *self, const Device &device, const std::string &transport,
             const std::vector<std::pair<std::string, int32_t>> &axes,
             const std::optional<std::vector<int32_t>> &ranks, int32_t rank,
             int32_t worldSize, int32_t localRank, int32_t localWorldSize,
             const std::optional<std::string> &runId, int32_t instance,
             double timeout, nb::object store) {
            new (self) Group(createGroup(
                device, transport, axes, ranks, rank, worldSize, localRank,
                localWorldSize, runId, instance, timeout, std::move(store)));
          },
          "device"_a, "transport"_a, "axes"_a, nb::kw_only(),
          "ranks"_a = nb::none(), "rank"_a = -1, "world_size"_a = 0,
          "local_rank"_a = 0, "local_world_size"_a = 0, "run_id"_a = nb::none(),
          "instance"_a = 0, "timeout_s"_a = 0.0, "store"_a = nb::none())
      .def("axis_rank", readAxis<dfa_rt_communicator_rank>, "name"_a,
           Unlocked())
      .def("axis_size", readAxis<dfa_rt_communicator_size>, "name"_a,
           Unlocked())
      .def(
          "agree",
          [](const Group &self, const std::string &text) {
            check(dfa_rt_group_agree(self.handle.get(), text.c_str()),
                  self.handle.get());
          },
          "text"_a, Unlocked())
      .def(
          "report",
          [](const Group &self, const std::string &reason) {
            dfa_rt_group_report(self.handle.get(), reason.c_str());
          },
          "reason"_a, Unlocked())
      .def("describe",
           [](const Group &self) {
             return dfa_rt_group_describe(self.handle.get());
           })
      .def("failure", getFailure, Unlocked())
      .def(
          "close",
          [](const Group &self) {
            check(dfa_rt_group_close(self.handle.get()), self.handle.get());
          },
          Unlocked());
}
