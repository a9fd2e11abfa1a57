// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Failures of the runtime as Python exceptions. The classes are in
// dfa/errors.py; here is which failure becomes which.

#include "Core.h"

#include <nanobind/stl/string.h>

using namespace dfa::python;

static void raise(PyObject *type, const std::string &message) {
  PyErr_SetString(type, message.c_str());
}

static nb::object findError(const char *name) {
  return nb::module_::import_("dfa.errors").attr(name);
}

static void raiseCollective(const std::string &message, dfa_rt_group_t *group) {
  dfa_rt_failure_t failure = {-1, -1, "", ""};
  bool known = group && dfa_rt_group_failure(group, &failure);
  std::string text = message;
  // The reason may be in the message already.
  if (known && failure.reason && *failure.reason &&
      text.find(failure.reason) == std::string::npos)
    text += std::string(" (") + failure.reason + ")";
  nb::object type = findError("CollectiveError");
  nb::object error =
      type(text, "rank"_a = failure.rank,
           "collective"_a = failure.collective ? failure.collective : "",
           "bucket"_a = failure.bucket);
  PyErr_SetObject(type.ptr(), error.ptr());
}

void dfa::python::throwRuntime(dfa_rt_status_t status, dfa_rt_group_t *group) {
  // The message is this thread's: before anything else may run on it.
  std::string message = dfa_rt_last_error();
  if (message.empty())
    message = dfa_rt_status_name(status);
  nb::gil_scoped_acquire lock;
  switch (status) {
  case DFA_RT_INVALID_ARGUMENT:
  case DFA_RT_PARSE_ERROR:
  case DFA_RT_NOT_FOUND:
    raise(PyExc_ValueError, message);
    break;
  case DFA_RT_OUT_OF_MEMORY:
    raise(PyExc_MemoryError, message);
    break;
  case DFA_RT_DEVICE_ERROR:
    raise(findError("DeviceError").ptr(), message);
    break;
  case DFA_RT_COLLECTIVE_ERROR:
    raiseCollective(message, group);
    break;
  default:
    raise(PyExc_RuntimeError, message);
    break;
  }
  throw nb::python_error();
}
