// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fast looks at torch's tensors. torch is neither linked nor included: what is
// not a stable interface of it is found, and tried, when it is first needed.

#ifndef DFA_PYTHON_TORCH_H
#define DFA_PYTHON_TORCH_H

#include "Core.h"

#include <nanobind/ndarray.h>

namespace dfa::python {

/// Reading `.grad` of a tensor in Python costs some 60 ns, too much for ten
/// thousand parameters a step. A tensor's C++ object is one word of the Python
/// object, and two functions that torch exports read its gradient and count a
/// write to it. Where those are, is tried on tensors whose answers Python
/// knows; if any answer differs, `probes` is false and nothing of it is used.
class Torch {
public:
  /// The one of the process. Throws if torch cannot be imported.
  static const Torch &get();

  /// Whether `look` works: DLPack's exchange table, torch 2.10 or later.
  bool looks = false;
  /// Whether the functions below `look` work.
  bool probes = false;

  /// Address, shape, strides and dtype; false for what DLPack cannot say. The
  /// pointers in `tensor` are valid as long as the object is not changed.
  bool look(PyObject *object, nb::dlpack::dltensor &tensor) const {
    if (fromObject(object, &tensor) == 0)
      return true;
    PyErr_Clear();
    return false;
  }

  void *implOf(PyObject *object) const { return load(object, implAt); }
  void *storageOf(void *impl) const { return load(impl, storageAt); }
  /// The C++ object of a gradient, or `none`.
  void *gradOf(void *impl) const { return *gradient(impl); }
  /// Counts a write to a tensor, for autograd.
  void bump(void *impl) const { count(&impl); }

  void *none = nullptr;

private:
  Torch();
  void findTable(nb::module_ &torch);
  void tryProbes(nb::module_ &torch);
  static void *load(const void *object, size_t word) {
    return static_cast<void *const *>(object)[word];
  }

  int (*fromObject)(void *, nb::dlpack::dltensor *) = nullptr;
  void *const *(*gradient)(const void *) = nullptr; // TensorImpl::grad
  void (*count)(void *const *) = nullptr; // autograd::impl::bump_version
  size_t implAt = 0, storageAt = 0;       // words
};

} // namespace dfa::python

#endif // DFA_PYTHON_TORCH_H
