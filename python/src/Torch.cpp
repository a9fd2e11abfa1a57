// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds out how torch's tensors are read fast, and tries it.

#include "Torch.h"

#include <dlfcn.h>

using namespace dfa::python;

namespace {

/// DLPack's exchange table (dlpack.h 1.2), as far as it is used.
struct ExchangeTable {
  struct {
    uint32_t major, minor;
  } version;
  ExchangeTable *previous;
  void *allocate, *fromObject, *toObject;
  int (*lookAt)(void *, nb::dlpack::dltensor *);
};

} // namespace

/// A symbol of a library that is loaded already, by the first name it has.
static void *findSymbol(const char *library,
                        std::initializer_list<const char *> names) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle)
    return nullptr;
  void *found = nullptr;
  for (const char *name : names)
    if (!found)
      found = dlsym(handle, name);
  dlclose(handle); // torch keeps it
  return found;
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
    findTable(torch);
    tryProbes(torch);
  } catch (nb::python_error &) {
    probes = false; // an attribute is missing: another torch than we know
  }
}

void Torch::findTable(nb::module_ &torch) {
  nb::object capsule = nb::getattr(torch.attr("Tensor"),
                                   "__dlpack_c_exchange_api__", nb::none());
  if (capsule.is_none())
    return;
  void *pointer = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  if (!pointer)
    throw nb::python_error();
  const ExchangeTable *table = static_cast<ExchangeTable *>(pointer);
  while (table && table->version.major > 1)
    table = table->previous;
  if (!table || table->version.major != 1)
    return;
  fromObject = table->lookAt;
  looks = fromObject != nullptr;
}

void Torch::tryProbes(nb::module_ &torch) {
  gradient = reinterpret_cast<decltype(gradient)>(
      findSymbol("libc10.so", {"_ZNK3c1010TensorImpl4gradEv"}));
  count = reinterpret_cast<decltype(count)>(
      findSymbol("libtorch_cpu.so",
                 {"_ZN5torch8autograd4impl12bump_versionERKN2at10TensorBaseE",
                  "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE"}));
  if (!gradient || !count)
    return;
  size_t words =
      nb::cast<size_t>(
          torch.attr("Tensor").attr("__base__").attr("__basicsize__")) /
      sizeof(void *);
  size_t implWords = 16; // no tensor's object is smaller
  for (int round = 0; round < 2; ++round) {
    nb::object param =
        torch.attr("nn").attr("Parameter")(torch.attr("zeros")(3 + round));
    nb::object grad = torch.attr("ones")(3 + round);
    auto addressOf = [](nb::handle object) {
      return nb::cast<uint64_t>(object.attr("_cdata"));
    };
    size_t at = findWord(param.ptr(), words, addressOf(param));
    if (at == 0 || (round && at != implAt))
      return;
    implAt = at;
    void *impl = implOf(param.ptr());
    at = findWord(impl, implWords, addressOf(param.attr("untyped_storage")()));
    if (at == 0 || (round && at != storageAt))
      return;
    storageAt = at;
    void *before = gradOf(impl);
    if (round && before != none)
      return;
    none = before;
    nb::setattr(param, "grad", grad);
    bool sees = toAddress(gradOf(impl)) == addressOf(grad);
    nb::setattr(param, "grad", nb::none());
    if (!sees || gradOf(impl) != none)
      return;
    int64_t version = nb::cast<int64_t>(param.attr("_version"));
    bump(impl);
    if (nb::cast<int64_t>(param.attr("_version")) != version + 1)
      return;
  }
  probes = true;
}
