// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One native call a step for optimizers that update tensors in place: looks at
// what may have changed since the last step, binds gradients, runs, and counts
// the writes. What is out of the ordinary is left to Python.

#include "Optimizer.h"
#include "Torch.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

using namespace dfa::python;

namespace {

/// A parameter, what it looked like, and what is bound for it.
struct Row {
  nb::object param;
  size_t cls = 0, segment = 0; // of the stepper's classes
  void *impl = nullptr, *storage = nullptr;
  void *address = nullptr;
  nb::dlpack::dtype dtype = {};
  nb::dlpack::device device = {};
  std::vector<int64_t> shape, strides;
  void *grad = nullptr;       // its C++ object in the last step
  void *gradMemory = nullptr; // its storage
  nb::object held;            // the gradient, while gradients are kept
  bool resolved = false;      // by Python, for this step
};

struct Class {
  int64_t index, gradArray; // of the program
  std::vector<void *> grads;
  std::vector<uint8_t> present, wanted;
  bool moved = true;
};

/// A group's dictionary, and the values last seen in it. Values are told apart
/// by identity: floats never change, and tensors are looked at by Python.
struct Watched {
  nb::dict dict;
  std::vector<nb::object> keys, values;
  nb::object params;
  Py_ssize_t size = 0;
  bool known = false;
};

class Stepper {
public:
  Stepper(const Optimizer &optimizer, int64_t entry, nb::list params,
          nb::list idle, const std::vector<int64_t> &rowClasses,
          const std::vector<int64_t> &segments,
          const std::vector<int64_t> &classes,
          const std::vector<int64_t> &gradArrays);

  void watchGroups(nb::list groups, nb::list keys);
  void acceptGroup(size_t index);
  void put(size_t index, uint64_t address);
  nb::object run(uint64_t stream);

private:
  bool differs(Watched &group) const;
  bool scanKept();
  bool scanAll(std::vector<size_t> &moved, std::vector<size_t> &odd);
  bool isMoved(Row &row) const;
  bool fits(const Row &row, const nb::dlpack::dltensor &grad) const;
  void mark(Row &row, void *address, bool present);
  void keepGradients();
  void dropGradients();
  void upload();

  const Torch &torch;
  Optimizer optimizer; // shares the handle
  int64_t entry;
  std::vector<Row> rows;
  std::vector<nb::object> idle;
  std::vector<Class> classes;
  std::vector<Watched> groups;
  nb::object gradName = nb::steal(PyUnicode_InternFromString("grad"));
  nb::object sample; // the smallest gradient of the last step
  size_t smallest = 0;
  size_t turn = 0;
  bool kept = false;
};

} // namespace

Stepper::Stepper(const Optimizer &target, int64_t entry, nb::list params,
                 nb::list idleParams, const std::vector<int64_t> &rowClasses,
                 const std::vector<int64_t> &segments,
                 const std::vector<int64_t> &classIndices,
                 const std::vector<int64_t> &gradArrays)
    : torch(Torch::get()), optimizer(target), entry(entry) {
  size_t count = params.size();
  if (!torch.looks || !torch.probes)
    throw std::runtime_error("this torch cannot be read fast");
  if (rowClasses.size() != count || segments.size() != count ||
      classIndices.size() != gradArrays.size())
    throw nb::value_error("expects lists of the same length");
  for (size_t i = 0; i < classIndices.size(); ++i)
    classes.push_back({classIndices[i], gradArrays[i], {}, {}, {}});
  rows.resize(count);
  int64_t least = -1;
  for (size_t i = 0; i < count; ++i) {
    Row &row = rows[i];
    row.param = params[i];
    row.cls = static_cast<size_t>(rowClasses[i]);
    row.segment = static_cast<size_t>(segments[i]);
    nb::dlpack::dltensor look;
    if (!torch.look(row.param.ptr(), look))
      throw nb::type_error("expects parameters that are plain tensors");
    row.impl = torch.implOf(row.param.ptr());
    row.storage = torch.storageOf(row.impl);
    row.address = static_cast<char *>(look.data) + look.byte_offset;
    row.dtype = look.dtype;
    row.device = look.device;
    row.shape.assign(look.shape, look.shape + look.ndim);
    row.strides.assign(look.strides, look.strides + look.ndim);
    int64_t elements = 1;
    for (int64_t size : row.shape)
      elements *= size;
    if (least < 0 || elements < least) {
      least = elements;
      smallest = i;
    }
    Class &cls = classes.at(row.cls);
    if (cls.grads.size() <= row.segment) {
      cls.grads.resize(row.segment + 1, nullptr);
      cls.present.resize(row.segment + 1, 1);
      cls.wanted.resize(row.segment + 1, 0);
    }
    // A gradient that never came needs an address all the same.
    cls.grads[row.segment] = row.address;
  }
  for (nb::handle param : idleParams)
    idle.push_back(nb::borrow(param));
}

void Stepper::watchGroups(nb::list dicts, nb::list keys) {
  groups.clear();
  for (nb::handle dict : dicts) {
    Watched group;
    group.dict = nb::cast<nb::dict>(dict);
    group.params = group.dict["params"];
    group.size = PyList_Check(group.params.ptr())
                     ? PyList_GET_SIZE(group.params.ptr())
                     : -1;
    for (nb::handle key : keys)
      group.keys.push_back(nb::borrow(key));
    group.values.resize(group.keys.size());
    groups.push_back(std::move(group));
  }
}

void Stepper::acceptGroup(size_t index) {
  Watched &group = groups.at(index);
  for (size_t i = 0; i < group.keys.size(); ++i)
    group.values[i] = nb::borrow(
        PyDict_GetItemWithError(group.dict.ptr(), group.keys[i].ptr()));
  group.known = true;
}

bool Stepper::differs(Watched &group) const {
  if (!group.known)
    return true;
  for (size_t i = 0; i < group.keys.size(); ++i)
    if (PyDict_GetItemWithError(group.dict.ptr(), group.keys[i].ptr()) !=
        group.values[i].ptr())
      return true;
  return false;
}

bool Stepper::isMoved(Row &row) const {
  void *impl = torch.implOf(row.param.ptr());
  return impl != row.impl || torch.storageOf(impl) != row.storage;
}

bool Stepper::fits(const Row &row, const nb::dlpack::dltensor &grad) const {
  if (grad.dtype.code != row.dtype.code || grad.dtype.bits != row.dtype.bits ||
      grad.device.device_type != row.device.device_type ||
      grad.device.device_id != row.device.device_id ||
      static_cast<size_t>(grad.ndim) != row.shape.size())
    return false;
  int64_t elements = 1;
  bool sameStrides = true;
  for (size_t d = 0; d < row.shape.size(); ++d) {
    if (grad.shape[d] != row.shape[d])
      return false;
    elements *= row.shape[d];
    sameStrides &= row.shape[d] == 1 || grad.strides[d] == row.strides[d];
  }
  return sameStrides || elements <= 1;
}

void Stepper::mark(Row &row, void *address, bool present) {
  Class &cls = classes[row.cls];
  cls.wanted[row.segment] = present;
  if (present && address && cls.grads[row.segment] != address) {
    cls.grads[row.segment] = address;
    cls.moved = true;
  }
}

void Stepper::put(size_t index, uint64_t address) {
  Row &row = rows.at(index);
  mark(row, toPointer(address), true);
  row.resolved = true;
}

/// Gradients that are kept cannot have been replaced by others at the same
/// place, so comparing pointers is exact. True if all are as they were.
bool Stepper::scanKept() {
  for (Row &row : rows) {
    void *impl = torch.implOf(row.param.ptr());
    if (impl != row.impl || torch.storageOf(impl) != row.storage)
      return false;
    void *grad = torch.gradOf(impl);
    if (grad != row.grad ||
        (grad != torch.none && torch.storageOf(grad) != row.gradMemory))
      return false;
  }
  // Strides and offsets within the same storage hardly ever change: a few
  // parameters are looked at in turn.
  for (int i = 0; i < 2 && !rows.empty(); ++i) {
    Row &row = rows[turn++ % rows.size()];
    nb::dlpack::dltensor look;
    if (!torch.look(row.param.ptr(), look) || look.data != row.address ||
        !fits(row, look))
      return false;
  }
  return true;
}

/// Looks at everything. False if Python must act first.
bool Stepper::scanAll(std::vector<size_t> &moved, std::vector<size_t> &odd) {
  for (size_t i = 0; i < rows.size(); ++i) {
    Row &row = rows[i];
    if (isMoved(row)) {
      moved.push_back(i);
      continue;
    }
    if (row.resolved)
      continue;
    row.grad = torch.gradOf(row.impl);
    if (row.grad == torch.none) {
      mark(row, nullptr, false);
      continue;
    }
    nb::object grad =
        nb::steal(PyObject_GetAttr(row.param.ptr(), gradName.ptr()));
    if (!grad.is_valid())
      throw nb::python_error();
    nb::dlpack::dltensor look;
    if (!torch.look(grad.ptr(), look) || !fits(row, look)) {
      odd.push_back(i);
      continue;
    }
    row.gradMemory = torch.storageOf(row.grad);
    mark(row, static_cast<char *>(look.data) + look.byte_offset, true);
  }
  for (const nb::object &param : idle)
    if (torch.gradOf(torch.implOf(param.ptr())) != torch.none) {
      moved.push_back(rows.size()); // somebody is missing
      break;
    }
  for (int i = 0; i < 4 && moved.empty() && !rows.empty(); ++i) {
    size_t at = turn++ % rows.size();
    nb::dlpack::dltensor look;
    if (!torch.look(rows[at].param.ptr(), look) ||
        look.data != rows[at].address || !fits(rows[at], look))
      moved.push_back(at);
  }
  return moved.empty() && odd.empty();
}

void Stepper::keepGradients() {
  for (Row &row : rows)
    if (row.grad != torch.none)
      row.held = nb::steal(PyObject_GetAttr(row.param.ptr(), gradName.ptr()));
  kept = true;
}

void Stepper::dropGradients() {
  for (Row &row : rows)
    row.held.reset();
  kept = false;
}

/// Tells the runtime what changed of addresses and presence.
void Stepper::upload() {
  for (Class &cls : classes) {
    if (cls.moved && !cls.grads.empty())
      optimizer.check(dfa_rt_optimizer_bind_segments(
          optimizer.get(), cls.index, cls.gradArray, cls.grads.data(),
          static_cast<int64_t>(cls.grads.size())));
    cls.moved = false;
    if (cls.wanted == cls.present)
      continue;
    for (size_t i = 0; i < cls.wanted.size(); ++i)
      if (cls.wanted[i] != cls.present[i])
        optimizer.check(dfa_rt_optimizer_set_present(optimizer.get(), cls.index,
                                                     static_cast<int64_t>(i),
                                                     cls.wanted[i] != 0));
    cls.present = cls.wanted;
  }
}

nb::object Stepper::run(uint64_t stream) {
  std::vector<size_t> changed, moved, odd;
  for (size_t i = 0; i < groups.size(); ++i) {
    Watched &group = groups[i];
    if (group.size >= 0 && PyList_GET_SIZE(group.params.ptr()) != group.size)
      moved.push_back(rows.size());
    if (differs(group))
      changed.push_back(i);
  }
  bool same = kept && idle.empty() && scanKept();
  if (!same) {
    if (kept)
      dropGradients();
    scanAll(moved, odd);
  }
  if (!changed.empty() || !moved.empty() || !odd.empty())
    return nb::make_tuple(changed, moved, odd);
  upload();
  optimizer.check(unlocked([&] {
    return dfa_rt_optimizer_run(optimizer.get(), entry, toPointer(stream));
  }));
  bool plain = true;
  for (Row &row : rows) {
    if (classes[row.cls].present[row.segment])
      torch.bump(row.impl);
    plain &= !row.resolved;
    row.resolved = false;
  }
  if (same || rows.empty())
    return nb::none();
  // Who finds the very gradient of the step before in place keeps them all:
  // it is a loop that writes gradients where they are.
  Row &row = rows[smallest];
  nb::object grad =
      row.grad == torch.none
          ? nb::none()
          : nb::steal(PyObject_GetAttr(row.param.ptr(), gradName.ptr()));
  if (plain && !grad.is_none() && grad.is(sample))
    keepGradients();
  sample = grad;
  return nb::none();
}

void dfa::python::addSteppers(nb::module_ &module) {
  module.def("can_read_fast", [] {
    const Torch &torch = Torch::get();
    return torch.looks && torch.probes;
  });
  nb::class_<Stepper>(module, "Stepper")
      .def(nb::init<const Optimizer &, int64_t, nb::list, nb::list,
                    const std::vector<int64_t> &, const std::vector<int64_t> &,
                    const std::vector<int64_t> &,
                    const std::vector<int64_t> &>(),
           "optimizer"_a, "entry"_a, "params"_a, "idle"_a, "row_classes"_a,
           "segments"_a, "classes"_a, "grad_arrays"_a)
      .def("watch_groups", &Stepper::watchGroups, "groups"_a, "keys"_a)
      .def("accept_group", &Stepper::acceptGroup, "index"_a)
      .def("put", &Stepper::put, "index"_a, "address"_a)
      .def("run", &Stepper::run, "stream"_a);
}
