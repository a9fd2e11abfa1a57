// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, their memory, and memory from Python's allocators.

#include "Core.h"

#include <nanobind/stl/string.h>

using namespace dfa::python;

namespace {

/// The functions of set_allocator. They live as long as the process: memory
/// may be given back long after the device's handle is gone.
struct Allocator {
  nb::object allocate, free;
};

} // namespace

static void *allocate(void *context, size_t bytes, dfa_rt_stream_t stream) {
  if (!interpreterRuns())
    return nullptr;
  nb::gil_scoped_acquire lock;
  try {
    Allocator *self = static_cast<Allocator *>(context);
    return toPointer(
        nb::cast<uint64_t>(self->allocate(bytes, toAddress(stream))));
  } catch (nb::python_error &error) {
    error.discard_as_unraisable("an allocator of dfa");
  } catch (const std::exception &) {
    // Not an address: no memory, then.
  }
  return nullptr;
}

static void release(void *context, void *memory, size_t bytes) {
  // At exit the process gives the memory back.
  if (!interpreterRuns())
    return;
  nb::gil_scoped_acquire lock;
  try {
    static_cast<Allocator *>(context)->free(toAddress(memory), bytes);
  } catch (nb::python_error &error) {
    error.discard_as_unraisable("an allocator of dfa");
  }
}

static void setAllocator(const Device &device, nb::object allocateWith,
                         nb::object freeWith) {
  if (!PyCallable_Check(allocateWith.ptr()) ||
      !PyCallable_Check(freeWith.ptr()))
    throw nb::type_error("expects two callables as an allocator");
  Allocator *context =
      new Allocator{std::move(allocateWith), std::move(freeWith)};
  dfa_rt_allocator_t allocator = {allocate, release, context};
  check(dfa_rt_device_set_allocator(device.handle.get(), &allocator));
}

static Device own(dfa_rt_device_t *handle, bool cuda, int32_t ordinal) {
  auto release = [](dfa_rt_device_t *device) {
    unlocked([&] { dfa_rt_device_release(device); });
  };
  return {std::shared_ptr<dfa_rt_device_t>(handle, release), cuda, ordinal};
}

static Device createCpu(int32_t threads) {
  dfa_rt_device_t *handle = nullptr;
  check(dfa_rt_device_create_cpu(threads, &handle));
  return own(handle, false, 0);
}

static Device createCuda(int32_t ordinal) {
  dfa_rt_device_t *handle = nullptr;
  dfa_rt_status_t status = dfa_rt_device_create_cuda(ordinal, &handle);
  // No driver, or no such device: not an argument's fault.
  check(status == DFA_RT_NOT_FOUND ? DFA_RT_DEVICE_ERROR : status);
  return own(handle, true, ordinal);
}

/// The runtime says it at the end of the name: "cuda:0 (NAME, sm_90)".
static std::string getChip(const Device &device) {
  std::string name = dfa_rt_device_name(device.handle.get());
  size_t begin = name.rfind("sm_");
  if (!device.cuda || begin == std::string::npos)
    return "";
  return name.substr(begin, name.find(')', begin) - begin);
}

static nb::dict getCounters(const Device &device) {
  dfa_rt_device_counters_t now = {};
  check(dfa_rt_device_get_counters(device.handle.get(), &now));
  nb::dict counters;
  counters["allocations"] = now.allocations;
  counters["module_loads"] = now.module_loads;
  counters["graphs_instantiated"] = now.graphs_instantiated;
  counters["launches"] = now.launches;
  return counters;
}

void dfa::python::addDevices(nb::module_ &module) {
  module.def("cuda_device_count", dfa_rt_cuda_device_count, Unlocked());
  module.def(
      "set_log_level",
      [](int32_t level) { check(dfa_rt_set_log_level(level)); }, "level"_a);
  nb::class_<Device>(module, "Device")
      .def_static("cpu", createCpu, "threads"_a = 0, Unlocked())
      .def_static("cuda", createCuda, "ordinal"_a = 0, Unlocked())
      .def_prop_ro(
          "kind", [](const Device &self) { return self.cuda ? "cuda" : "cpu"; })
      .def_ro("ordinal", &Device::ordinal)
      .def_prop_ro("name",
                   [](const Device &self) {
                     return dfa_rt_device_name(self.handle.get());
                   })
      .def_prop_ro("chip", getChip)
      .def("set_allocator", setAllocator, "allocate"_a, "free"_a)
      .def("counters", getCounters)
      .def(
          "allocate",
          [](const Device &self, size_t bytes) {
            void *memory = nullptr;
            check(dfa_rt_device_allocate(self.handle.get(), bytes, &memory));
            return toAddress(memory);
          },
          "bytes"_a, Unlocked())
      .def(
          "free",
          [](const Device &self, uint64_t address, size_t bytes) {
            dfa_rt_device_free(self.handle.get(), toPointer(address), bytes);
          },
          "address"_a, "bytes"_a, Unlocked())
      .def(
          "copy",
          [](const Device &self, uint64_t target, uint64_t source, size_t bytes,
             uint64_t stream) {
            check(dfa_rt_device_copy(self.handle.get(), toPointer(target),
                                     toPointer(source), bytes,
                                     toPointer(stream)));
          },
          "target"_a, "source"_a, "bytes"_a, "stream"_a = 0, Unlocked())
      .def(
          "zero",
          [](const Device &self, uint64_t target, size_t bytes,
             uint64_t stream) {
            check(dfa_rt_device_zero(self.handle.get(), toPointer(target),
                                     bytes, toPointer(stream)));
          },
          "target"_a, "bytes"_a, "stream"_a = 0, Unlocked())
      .def(
          "create_stream",
          [](const Device &self) {
            dfa_rt_stream_t stream = nullptr;
            check(dfa_rt_stream_create(self.handle.get(), &stream));
            return toAddress(stream);
          },
          Unlocked())
      .def(
          "destroy_stream",
          [](const Device &self, uint64_t stream) {
            dfa_rt_stream_destroy(self.handle.get(), toPointer(stream));
          },
          "stream"_a, Unlocked())
      .def(
          "synchronize",
          [](const Device &self, uint64_t stream) {
            check(dfa_rt_stream_synchronize(self.handle.get(),
                                            toPointer(stream)));
          },
          "stream"_a = 0, Unlocked());
}
