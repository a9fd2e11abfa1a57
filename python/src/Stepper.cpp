// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One native call a step for optimizers that update tensors in place: looks at
// what may have changed since the last step, binds gradients, runs, and counts
// the writes. What is out of the ordinary is left to Python.

#include "Optimizer.h"
#include "Torch.h"

#include <nanobind/stl/vector.h>

#include <algorithm>

using namespace dfa::python;

namespace {

/// What a parameter looked like when it was bound.
struct Row {
  size_t cls = 0, segment = 0; // of the stepper's classes
  TensorLook look;
  std::vector<int64_t> shape, strides;
  nb::object held;       // the gradient, while gradients are kept
  bool resolved = false; // by Python, for this step
};

/// What a steady step compares, close together in memory.
struct Seen {
  PyObject *param; // kept by the stepper
  void *impl, *storage;
  void *grad = nullptr;       // its C++ object in the last step
  void *gradMemory = nullptr; // its storage
  const uint8_t *present = nullptr;
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
  void scanAll(std::vector<size_t> &moved, std::vector<size_t> &odd);
  bool isMoved(const Seen &seen) const;
  bool isInPlace(size_t index) const;
  bool fits(const Row &row, const TensorLook &grad) const;
  void fetchAhead(size_t index) const;
  void fetchGradient(size_t index) const;
  void mark(Row &row, void *address, bool present);
  void keepGradients();
  void dropGradients();
  void upload();

  const Torch &torch;
  Optimizer optimizer; // shares the handle
  int64_t entry;
  nb::list params;
  std::vector<Row> rows;
  std::vector<Seen> seen; // a row each
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
    : torch(Torch::get()), optimizer(target), entry(entry), params(params) {
  size_t count = params.size();
  if (!torch.works)
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
    row.cls = static_cast<size_t>(rowClasses[i]);
    row.segment = static_cast<size_t>(segments[i]);
    PyObject *param = nb::object(params[i]).ptr();
    if (!torch.look(torch.handleOf(param), row.look))
      throw nb::type_error("expects parameters that are plain tensors");
    void *impl = torch.implOf(param);
    seen.push_back({param, impl, torch.storageOf(impl)});
    row.shape.assign(row.look.shape, row.look.shape + row.look.dims);
    row.strides.assign(row.look.strides, row.look.strides + row.look.dims);
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
    cls.grads[row.segment] = row.look.address;
  }
  for (size_t i = 0; i < count; ++i)
    seen[i].present = &classes[rows[i].cls].present[rows[i].segment];
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

bool Stepper::isMoved(const Seen &seen) const {
  void *impl = torch.implOf(seen.param);
  return impl != seen.impl || torch.storageOf(impl) != seen.storage;
}

/// Looks closer than `isMoved`: also at strides and offset.
bool Stepper::isInPlace(size_t index) const {
  TensorLook look;
  return torch.look(torch.handleOf(seen[index].param), look) &&
         look.address == rows[index].look.address && fits(rows[index], look);
}

bool Stepper::fits(const Row &row, const TensorLook &grad) const {
  if (grad.dtype != row.look.dtype || grad.deviceType != row.look.deviceType ||
      grad.deviceIndex != row.look.deviceIndex ||
      static_cast<size_t>(grad.dims) != row.shape.size())
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

/// Objects of tensors lie apart: what the next rows need is asked for early.
void Stepper::fetchAhead(size_t index) const {
  constexpr size_t far = 24, near = 12;
  if (index + far < seen.size()) {
    const Seen &next = seen[index + far];
    torch.prefetch(next.param + 1);
    torch.prefetch(next.impl);
    torch.prefetch(next.grad);
  }
  if (index + near < seen.size())
    torch.prefetchParts(seen[index + near].impl);
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

/// The same for a gradient that may be another one than in the last step.
void Stepper::fetchGradient(size_t index) const {
  constexpr size_t near = 6, line = 64;
  if (index + near >= seen.size())
    return;
  void *impl = torch.implOf(seen[index + near].param);
  const char *grad =
      static_cast<const char *>(Torch::implOf(torch.gradOf(impl)));
  for (size_t at = 0; at < 3; ++at)
    torch.prefetch(grad + at * line);
}

/// Gradients that are kept cannot have been replaced by others at the same
/// place, so comparing pointers is exact. True if all are as they were.
bool Stepper::scanKept() {
  for (size_t i = 0; i < seen.size(); ++i) {
    fetchAhead(i);
    const Seen &row = seen[i];
    if (isMoved(row))
      return false;
    void *grad = Torch::implOf(torch.gradOf(row.impl));
    if (grad != row.grad ||
        (grad != torch.none && torch.storageOf(grad) != row.gradMemory))
      return false;
  }
  // Strides and offsets within the same storage hardly ever change: a few
  // parameters are looked at in turn.
  for (int i = 0; i < 2 && !rows.empty(); ++i)
    if (!isInPlace(turn++ % rows.size()))
      return false;
  return true;
}

/// Looks at everything, and lists what Python must deal with.
void Stepper::scanAll(std::vector<size_t> &moved, std::vector<size_t> &odd) {
  for (size_t i = 0; i < rows.size(); ++i) {
    fetchAhead(i);
    fetchGradient(i);
    Row &row = rows[i];
    Seen &now = seen[i];
    if (isMoved(now)) {
      moved.push_back(i);
      continue;
    }
    if (row.resolved)
      continue;
    TensorHandle grad = torch.gradOf(now.impl);
    now.grad = Torch::implOf(grad);
    if (now.grad == torch.none) {
      mark(row, nullptr, false);
      continue;
    }
    TensorLook look;
    if (!torch.look(grad, look) || !fits(row, look)) {
      odd.push_back(i);
      continue;
    }
    now.gradMemory = torch.storageOf(now.grad);
    mark(row, look.address, true);
  }
  for (const nb::object &param : idle)
    if (Torch::implOf(torch.gradOf(torch.implOf(param.ptr()))) != torch.none) {
      moved.push_back(rows.size()); // somebody is missing
      break;
    }
  for (int i = 0; i < 4 && moved.empty() && !rows.empty(); ++i)
    if (size_t at = turn++ % rows.size(); !isInPlace(at))
      moved.push_back(at);
}

void Stepper::keepGradients() {
  for (size_t i = 0; i < rows.size(); ++i)
    if (seen[i].grad != torch.none)
      rows[i].held = nb::steal(PyObject_GetAttr(seen[i].param, gradName.ptr()));
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
    std::copy(cls.wanted.begin(), cls.wanted.end(), cls.present.begin());
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
  for (size_t i = 0; i < seen.size(); ++i) {
    if (i + 12 < seen.size())
      torch.prefetchParts(seen[i + 12].impl);
    if (*seen[i].present)
      torch.bump(seen[i].impl);
  }
  if (same || rows.empty())
    return nb::none();
  bool plain = true;
  for (Row &row : rows) {
    plain &= !row.resolved;
    row.resolved = false;
  }
  // Who finds the very gradient of the step before in place keeps them all:
  // it is a loop that writes gradients where they are.
  nb::object grad = nb::none();
  if (seen[smallest].grad != torch.none)
    grad = nb::steal(PyObject_GetAttr(seen[smallest].param, gradName.ptr()));
  if (plain && !grad.is_none() && grad.is(sample))
    keepGradients();
  sample = grad;
  return nb::none();
}

void dfa::python::addSteppers(nb::module_ &module) {
  module.def("can_read_fast", [] { return Torch::get().works; });
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
