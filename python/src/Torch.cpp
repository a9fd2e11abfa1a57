// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds out how torch's tensors are read fast, and tries it.

#include "Torch.h"

#include <dlfcn.h>

#include <initializer_list>

using namespace dfa::python;

/// A symbol of a library that is loaded already, by the first name it has.
template <typename Function>
static bool find(Function &function, const char *library,
                 std::initializer_list<const char *> names) {
  function = nullptr;
  void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle)
    return false;
  for (const char *name : names)
    if (!function)
      function = reinterpret_cast<Function>(dlsym(handle, name));
  dlclose(handle); // torch keeps it
  return function != nullptr;
}

/// The only word of an object with this value; 0 if there is not exactly one.
static size_t findWord(const void *object, size_t words, uint64_t value) {
  size_t found = 0;
  for (size_t word = 1; word < words; ++word) {
    if (toAddress(static_cast<void *const *>(object)[word]) != value)
      continue;
    if (found)
      return 0;
    found = word;
  }
  return found;
}

const Torch &Torch::get() {
  static const Torch torch;
  return torch;
}

Torch::Torch() {
  nb::module_ torch = nb::module_::import_("torch");
  try {
    works = findFunctions() && tryRound(torch, 0) && tryRound(torch, 1);
  } catch (nb::python_error &) {
    works = false; // an attribute is missing: another torch than we know
  }
}

bool Torch::findFunctions() {
  const char *library = "libtorch_cpu.so";
  return find(gradient, "libc10.so", {"_ZNK3c1010TensorImpl4gradEv"}) &&
         find(count, library,
              {"_ZN5torch8autograd4impl12bump_versionERKN2at10TensorBaseE",
               "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE"}) &&
         find(version, library, {"_ZNK2at10TensorBase8_versionEv"}) &&
         find(dtypeOf, library, {"aoti_torch_get_dtype"}) &&
         find(deviceTypeOf, library, {"aoti_torch_get_device_type"}) &&
         find(deviceIndexOf, library, {"aoti_torch_get_device_index"}) &&
         find(layoutOf, library, {"aoti_torch_get_layout"}) &&
         find(dimsOf, library, {"aoti_torch_get_dim"}) &&
         find(shapeOf, library, {"aoti_torch_get_sizes"}) &&
         find(stridesOf, library, {"aoti_torch_get_strides"}) &&
         find(dataOf, library, {"aoti_torch_get_data_ptr"});
}

bool Torch::look(TensorHandle handle, TensorLook &result) const {
  int32_t layout = -1;
  // Strided is 0. Of other layouts nothing more is asked.
  return layoutOf(handle, &layout) == 0 && layout == 0 &&
         dtypeOf(handle, &result.dtype) == 0 &&
         deviceTypeOf(handle, &result.deviceType) == 0 &&
         deviceIndexOf(handle, &result.deviceIndex) == 0 &&
         dimsOf(handle, &result.dims) == 0 &&
         shapeOf(handle, &result.shape) == 0 &&
         stridesOf(handle, &result.strides) == 0 &&
         dataOf(handle, &result.address) == 0;
}

/// Reads a new parameter, whose answers are known, in every way there is.
bool Torch::tryRound(nb::module_ &torch, int round) {
  nb::object values = torch.attr("zeros")(nb::make_tuple(3 + round, 2));
  nb::object param = torch.attr("nn").attr("Parameter")(values.attr("t")());
  nb::object grad = torch.attr("ones_like")(param);
  auto numberOf = [](nb::handle object, const char *name) {
    return nb::cast<uint64_t>(object.attr(name));
  };
  size_t words =
      numberOf(torch.attr("Tensor").attr("__base__"), "__basicsize__") /
      sizeof(void *);
  size_t at = findWord(param.ptr(), words, numberOf(param, "_cdata"));
  if (at == 0 || (round && at != implAt))
    return false;
  implAt = at;
  void *impl = implOf(param.ptr());
  // No tensor's object has fewer words than 16.
  at = findWord(impl, 16, numberOf(param.attr("untyped_storage")(), "_cdata"));
  if (at == 0 || (round && at != storageAt))
    return false;
  storageAt = at;

  void *before = implOf(gradOf(impl));
  if (round && before != none)
    return false;
  none = before;
  nb::setattr(param, "grad", grad);
  bool sees = toAddress(implOf(gradOf(impl))) == numberOf(grad, "_cdata");
  TensorLook look;
  sees = sees && this->look(gradOf(impl), look) &&
         toAddress(look.address) == nb::cast<uint64_t>(grad.attr("data_ptr")());
  nb::setattr(param, "grad", nb::none());
  if (!sees || implOf(gradOf(impl)) != none)
    return false;

  int64_t version = nb::cast<int64_t>(param.attr("_version"));
  bump(impl);
  if (nb::cast<int64_t>(param.attr("_version")) != version + 1 ||
      versionOf(param.ptr()) != version + 1)
    return false;
  return this->look(handleOf(param.ptr()), look) && look.dims == 2 &&
         look.shape[0] == 2 && look.shape[1] == 3 + round &&
         look.strides[0] == 1 && look.strides[1] == 2 &&
         toAddress(look.address) ==
             nb::cast<uint64_t>(param.attr("data_ptr")());
}
