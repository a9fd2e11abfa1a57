// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Optimizers. One native call each, also for thousands of segments.

#include "Optimizer.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

using namespace dfa::python;

namespace {

/// 64-bit integers of a sequence or a buffer.
class Addresses {
public:
  explicit Addresses(nb::handle object);
  Addresses(const Addresses &) = delete;
  ~Addresses() {
    if (buffer.obj)
      PyBuffer_Release(&buffer);
  }
  void *const *data() const { return pointers; }
  int64_t size() const { return count; }

private:
  Py_buffer buffer = {};
  std::vector<void *> list;
  void *const *pointers = nullptr;
  int64_t count = 0;
};

} // namespace

static void *resolve(void *artifact, const char *name) {
  return dfa_artifact_kernel(static_cast<dfa_artifact_t *>(artifact), name);
}

Optimizer::Optimizer(const Device &device, const Program &program,
                     const Layout &layout, const Artifact &code, int64_t rank,
                     int64_t tileElements, const Group *ranks, bool replay)
    : artifact(code.handle), group(ranks ? ranks->handle : nullptr) {
  bool isCuda = std::string(dfa_artifact_target(artifact.get())) == "cuda";
  if (isCuda != device.cuda) {
    nb::gil_scoped_acquire lock;
    throw nb::value_error("expects an artifact for the device's target");
  }
  dfa_rt_optimizer_options_t options = {};
  options.struct_size = sizeof(options);
  options.device = device.handle.get();
  options.program = program.handle.get();
  options.layout = layout.handle.get();
  options.rank = rank;
  options.tile_elements = tileElements;
  options.replay = replay;
  if (isCuda) {
    options.image = dfa_artifact_code(artifact.get(), &options.image_bytes);
  } else {
    options.resolve = resolve;
    options.resolve_context = artifact.get();
  }
  std::vector<dfa_rt_communicator_t *> axes;
  dfa_rt_status_t status = DFA_RT_OK;
  if (group) {
    for (const std::string &name : program.axes) {
      axes.push_back(nullptr);
      status = dfa_rt_group_axis(group.get(), name.c_str(), &axes.back());
      if (status != DFA_RT_OK)
        break;
    }
    options.communicators = axes.data();
    options.communicator_count = static_cast<int64_t>(axes.size());
  }
  dfa_rt_optimizer_t *made = nullptr;
  if (status == DFA_RT_OK)
    status = dfa_rt_optimizer_create(&options, &made);
  for (dfa_rt_communicator_t *axis : axes)
    dfa_rt_communicator_release(axis);
  check(status);
  handle.reset(made, [](dfa_rt_optimizer_t *optimizer) {
    unlocked([&] { dfa_rt_optimizer_release(optimizer); });
  });
}

dfa_rt_optimizer_t *Optimizer::get() const {
  if (handle)
    return handle.get();
  nb::gil_scoped_acquire lock;
  PyErr_SetString(PyExc_RuntimeError, "the optimizer is closed");
  throw nb::python_error();
}

Addresses::Addresses(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr())) {
    if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_ND | PyBUF_FORMAT) < 0)
      throw nb::python_error();
    std::string format = buffer.format ? buffer.format : "B";
    bool isInteger = format.size() == 1 &&
                     std::string("qQlLnN").find(format) != std::string::npos;
    if (buffer.ndim != 1 || buffer.itemsize != 8 || !isInteger) {
      PyBuffer_Release(&buffer);
      throw nb::type_error("expects addresses as a 1-D buffer of 64-bit "
                           "integers");
    }
    pointers = static_cast<void *const *>(buffer.buf);
    count = static_cast<int64_t>(buffer.len / 8);
    return;
  }
  for (nb::handle item : object)
    list.push_back(toPointer(nb::cast<uint64_t>(item)));
  pointers = list.data();
  count = static_cast<int64_t>(list.size());
}

static void addArrays(nb::class_<Optimizer> &cls) {
  cls.def(
         "bind_segment",
         [](const Optimizer &self, int64_t classIndex, int64_t array,
            int64_t segment, uint64_t address) {
           self.check(dfa_rt_optimizer_bind_segment(
               self.get(), classIndex, array, segment, toPointer(address)));
         },
         "class_index"_a, "array"_a, "segment"_a, "address"_a, Unlocked())
      .def(
          "bind_segments",
          [](const Optimizer &self, int64_t classIndex, int64_t array,
             nb::handle object) {
            Addresses addresses(object);
            if (addresses.size() == 0)
              return;
            self.check(unlocked([&] {
              return dfa_rt_optimizer_bind_segments(self.get(), classIndex,
                                                    array, addresses.data(),
                                                    addresses.size());
            }));
          },
          "class_index"_a, "array"_a, "addresses"_a)
      .def(
          "bind_bucket",
          [](const Optimizer &self, int64_t classIndex, int64_t array,
             int64_t bucket, uint64_t address) {
            self.check(dfa_rt_optimizer_bind_bucket(
                self.get(), classIndex, array, bucket, toPointer(address)));
          },
          "class_index"_a, "array"_a, "bucket"_a, "address"_a, Unlocked())
      .def(
          "segment_address",
          [](const Optimizer &self, int64_t classIndex, int64_t array,
             int64_t segment) {
            void *address = nullptr;
            self.check(dfa_rt_optimizer_segment_address(
                self.get(), classIndex, array, segment, &address));
            return toAddress(address);
          },
          "class_index"_a, "array"_a, "segment"_a, Unlocked())
      .def(
          "segment_addresses",
          [](const Optimizer &self, int64_t classIndex, int64_t array,
             int64_t count) {
            std::vector<uint64_t> addresses;
            for (int64_t segment = 0; segment < count; ++segment) {
              void *address = nullptr;
              self.check(dfa_rt_optimizer_segment_address(
                  self.get(), classIndex, array, segment, &address));
              addresses.push_back(toAddress(address));
            }
            return addresses;
          },
          "class_index"_a, "array"_a, "count"_a, Unlocked());
}

static void addHypers(nb::class_<Optimizer> &cls) {
  cls.def(
         "set_hyper",
         [](const Optimizer &self, int64_t group, int64_t column,
            double value) {
           self.check(
               dfa_rt_optimizer_set_hyper(self.get(), group, column, value));
         },
         "group"_a, "column"_a, "value"_a, Unlocked())
      .def(
          "set_hypers",
          [](const Optimizer &self, int64_t group,
             const std::vector<double> &values) {
            for (size_t column = 0; column < values.size(); ++column)
              self.check(dfa_rt_optimizer_set_hyper(
                  self.get(), group, static_cast<int64_t>(column),
                  values[column]));
          },
          "group"_a, "values"_a, Unlocked())
      .def(
          "get_hyper",
          [](const Optimizer &self, int64_t group, int64_t column) {
            double value = 0;
            self.check(
                dfa_rt_optimizer_get_hyper(self.get(), group, column, &value));
            return value;
          },
          "group"_a, "column"_a, Unlocked())
      .def(
          "set_present",
          [](const Optimizer &self, int64_t classIndex, int64_t segment,
             bool present) {
            self.check(dfa_rt_optimizer_set_present(self.get(), classIndex,
                                                    segment, present));
          },
          "class_index"_a, "segment"_a, "present"_a, Unlocked())
      .def(
          "set_presents",
          [](const Optimizer &self, int64_t classIndex, nb::bytes present) {
            const char *bytes = present.c_str();
            size_t count = present.size();
            nb::gil_scoped_release release;
            for (size_t segment = 0; segment < count; ++segment)
              self.check(dfa_rt_optimizer_set_present(
                  self.get(), classIndex, static_cast<int64_t>(segment),
                  bytes[segment] != 0));
          },
          "class_index"_a, "present"_a)
      .def(
          "push",
          [](const Optimizer &self, uint64_t stream) {
            self.check(dfa_rt_optimizer_push(self.get(), toPointer(stream)));
          },
          "stream"_a = 0, Unlocked());
}

static void addRuns(nb::class_<Optimizer> &cls) {
  cls.def(
         "prepare",
         [](const Optimizer &self, uint64_t stream) {
           self.check(dfa_rt_optimizer_prepare(self.get(), toPointer(stream)));
         },
         "stream"_a = 0, Unlocked())
      .def(
          "run",
          [](const Optimizer &self, int64_t entry, uint64_t stream) {
            self.check(
                dfa_rt_optimizer_run(self.get(), entry, toPointer(stream)));
          },
          "entry"_a, "stream"_a = 0, Unlocked())
      .def(
          "run_bucket",
          [](const Optimizer &self, int64_t entry, int64_t classIndex,
             int64_t bucket, uint64_t stream) {
            self.check(dfa_rt_optimizer_run_bucket(
                self.get(), entry, classIndex, bucket, toPointer(stream)));
          },
          "entry"_a, "class_index"_a, "bucket"_a, "stream"_a = 0, Unlocked())
      .def(
          "join",
          [](const Optimizer &self, uint64_t stream) {
            self.check(dfa_rt_optimizer_join(self.get(), toPointer(stream)));
          },
          "stream"_a = 0, Unlocked());
}

static void addControl(nb::class_<Optimizer> &cls) {
  cls.def(
         "set_control",
         [](const Optimizer &self, const std::string &field, double value,
            uint64_t stream) {
           self.check(dfa_rt_optimizer_set_control(self.get(), field.c_str(),
                                                   value, toPointer(stream)));
         },
         "field"_a, "value"_a, "stream"_a = 0, Unlocked())
      .def(
          "mirror_control",
          [](const Optimizer &self, const std::string &field) {
            double value = 0;
            self.check(dfa_rt_optimizer_mirror_control(self.get(),
                                                       field.c_str(), &value));
            return value;
          },
          "field"_a, Unlocked())
      .def(
          "fetch_control",
          [](const Optimizer &self, const std::string &field, uint64_t stream) {
            double value = 0;
            self.check(dfa_rt_optimizer_fetch_control(
                self.get(), field.c_str(), &value, toPointer(stream)));
            return value;
          },
          "field"_a, "stream"_a = 0, Unlocked())
      .def(
          "control_address",
          [](const Optimizer &self, const std::string &field) {
            void *address = nullptr;
            self.check(dfa_rt_optimizer_control_address(
                self.get(), field.c_str(), &address));
            return toAddress(address);
          },
          "field"_a, Unlocked())
      .def(
          "hyper_address",
          [](const Optimizer &self, int64_t group, int64_t column) {
            void *address = nullptr;
            self.check(dfa_rt_optimizer_hyper_address(self.get(), group, column,
                                                      &address));
            return toAddress(address);
          },
          "group"_a, "column"_a, Unlocked())
      .def(
          "step_address",
          [](const Optimizer &self, int64_t classIndex, int64_t segment) {
            void *address = nullptr;
            self.check(dfa_rt_optimizer_step_address(self.get(), classIndex,
                                                     segment, &address));
            return toAddress(address);
          },
          "class_index"_a, "segment"_a, Unlocked())
      .def(
          "fetch_step",
          [](const Optimizer &self, int64_t classIndex, int64_t segment,
             uint64_t stream) {
            int64_t step = 0;
            self.check(dfa_rt_optimizer_fetch_step(
                self.get(), classIndex, segment, &step, toPointer(stream)));
            return step;
          },
          "class_index"_a, "segment"_a, "stream"_a = 0, Unlocked())
      .def(
          "set_step",
          [](const Optimizer &self, int64_t classIndex, int64_t segment,
             int64_t step, uint64_t stream) {
            self.check(dfa_rt_optimizer_set_step(
                self.get(), classIndex, segment, step, toPointer(stream)));
          },
          "class_index"_a, "segment"_a, "step"_a, "stream"_a = 0, Unlocked());
}

void dfa::python::addOptimizers(nb::module_ &module) {
  nb::class_<Optimizer> cls(module, "Optimizer");
  cls.def(nb::init<const Device &, const Program &, const Layout &,
                   const Artifact &, int64_t, int64_t, const Group *, bool>(),
          "device"_a, "program"_a, "layout"_a, "artifact"_a, nb::kw_only(),
          "rank"_a = 0, "tile_elements"_a = 0, "group"_a = nb::none(),
          "replay"_a = false)
      .def("close", &Optimizer::close);
  addArrays(cls);
  addHypers(cls);
  addRuns(cls);
  addControl(cls);
}
