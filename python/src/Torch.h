// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fast looks at torch's tensors. torch is neither linked nor included: what is
// not a stable interface of it is found, and tried, when it is first needed.

#ifndef DFA_PYTHON_TORCH_H
#define DFA_PYTHON_TORCH_H

#include "Core.h"

namespace dfa::python {

/// A tensor of torch as torch's C interface takes it: the place of one word,
/// the C++ object. It is in a Python object, or in another tensor.
using TensorHandle = const void *;

/// What a tensor looks like. The lists are torch's, and valid as long as the
/// tensor is not changed.
struct TensorLook {
  void *address = nullptr;
  int64_t dims = 0;
  const int64_t *shape = nullptr, *strides = nullptr;
  int32_t dtype = 0, deviceType = 0, deviceIndex = 0; // torch's numbers
};

/// Reading `.grad` of a tensor in Python makes an object and costs some 100 ns,
/// too much for ten thousand parameters a step. A tensor's C++ object is one
/// word of the Python object, two functions that torch exports read its
/// gradient and count a write to it, and torch's C interface says the rest.
/// Where the word is, and whether the functions do what they should, is tried
/// on tensors whose answers Python knows; if any answer differs, `works` is
/// false and nothing here may be used.
class Torch {
public:
  /// The one of the process. Throws if torch cannot be imported.
  static const Torch &get();

  bool works = false;

  TensorHandle handleOf(PyObject *object) const {
    return reinterpret_cast<void *const *>(object) + implAt;
  }
  void *implOf(PyObject *object) const { return load(object, implAt); }
  void *storageOf(void *impl) const { return load(impl, storageAt); }
  /// The gradient of a tensor, by its C++ object; its object may be `none`.
  TensorHandle gradOf(void *impl) const { return gradient(impl); }
  static void *implOf(TensorHandle handle) {
    return *static_cast<void *const *>(handle);
  }
  /// Counts a write to a tensor, for autograd.
  void bump(void *impl) const { count(&impl); }
  /// How often autograd saw a write to a tensor.
  int64_t versionOf(PyObject *object) const {
    return version(handleOf(object));
  }
  /// Where its first element is; null if that cannot be said.
  void *addressOf(PyObject *object) const {
    void *address = nullptr;
    return dataOf(handleOf(object), &address) == 0 ? address : nullptr;
  }
  /// False if the tensor is not dense.
  bool look(TensorHandle handle, TensorLook &result) const;

  /// Asks for what the calls above will read of a tensor. Any address will do.
  void prefetch(const void *impl) const { __builtin_prefetch(impl); }
  /// The same for what the object, by now near, points to.
  void prefetchParts(void *impl) const {
    for (size_t word = 1; word <= 3; ++word)
      __builtin_prefetch(load(impl, storageAt + word));
  }

  void *none = nullptr;

private:
  Torch();
  bool findFunctions();
  bool tryRound(nb::module_ &torch, int round);
  static void *load(const void *object, size_t word) {
    return static_cast<void *const *>(object)[word];
  }

  using Get32 = int32_t (*)(TensorHandle, int32_t *);
  using Get64 = int32_t (*)(TensorHandle, int64_t *);
  using GetList = int32_t (*)(TensorHandle, const int64_t **);
  Get32 dtypeOf = nullptr, deviceTypeOf = nullptr, deviceIndexOf = nullptr,
        layoutOf = nullptr;
  Get64 dimsOf = nullptr;
  GetList shapeOf = nullptr, stridesOf = nullptr;
  int32_t (*dataOf)(TensorHandle, void **) = nullptr;
  TensorHandle (*gradient)(const void *) = nullptr; // TensorImpl::grad
  void (*count)(void *const *) = nullptr;     // autograd::impl::bump_version
  int64_t (*version)(TensorHandle) = nullptr; // TensorBase::_version
  size_t implAt = 0, storageAt = 0;           // words
};

} // namespace dfa::python

#endif // DFA_PYTHON_TORCH_H
