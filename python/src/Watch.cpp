// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Questions about thousands of tensors in one native call: which were written
// to or moved, which have a gradient.

#include "Torch.h"

#include <nanobind/stl/vector.h>

using namespace dfa::python;

namespace {

class TensorWatch {
public:
  explicit TensorWatch(nb::list tensors);

  /// Which were written to, or moved, since they were marked last.
  std::vector<size_t> changed() const;
  std::vector<size_t> withGradient() const;
  void mark(size_t index);
  /// Counts a write to each, for autograd, and marks them.
  void written();

private:
  struct Seen {
    PyObject *tensor; // kept by the list
    void *impl, *address;
    int64_t version;
  };

  const Torch &torch;
  nb::list tensors;
  std::vector<Seen> seen;
};

} // namespace

TensorWatch::TensorWatch(nb::list list) : torch(Torch::get()), tensors(list) {
  if (!torch.works)
    throw std::runtime_error("this torch cannot be read fast");
  seen.resize(list.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    seen[i].tensor = nb::object(list[i]).ptr();
    mark(i);
  }
}

void TensorWatch::mark(size_t index) {
  Seen &row = seen.at(index);
  row.impl = torch.implOf(row.tensor);
  row.address = torch.addressOf(row.tensor);
  row.version = torch.versionOf(row.tensor);
}

std::vector<size_t> TensorWatch::changed() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (i + 12 < seen.size())
      torch.prefetchParts(seen[i + 12].impl);
    const Seen &row = seen[i];
    void *impl = torch.implOf(row.tensor);
    if (impl != row.impl || torch.addressOf(row.tensor) != row.address ||
        torch.versionOf(row.tensor) != row.version)
      found.push_back(i);
  }
  return found;
}

std::vector<size_t> TensorWatch::withGradient() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < seen.size(); ++i) {
    void *impl = torch.implOf(seen[i].tensor);
    if (Torch::implOf(torch.gradOf(impl)) != torch.none)
      found.push_back(i);
  }
  return found;
}

void TensorWatch::written() {
  for (size_t i = 0; i < seen.size(); ++i) {
    if (i + 12 < seen.size())
      torch.prefetchParts(seen[i + 12].impl);
    torch.bump(torch.implOf(seen[i].tensor));
    mark(i);
  }
}

void dfa::python::addWatches(nb::module_ &module) {
  nb::class_<TensorWatch>(module, "TensorWatch")
      .def(nb::init<nb::list>(), "tensors"_a)
      .def("changed", &TensorWatch::changed)
      .def("with_gradient", &TensorWatch::withGradient)
      .def("mark", &TensorWatch::mark, "index"_a)
      .def("written", &TensorWatch::written);
}
