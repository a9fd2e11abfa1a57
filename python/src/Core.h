// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of the module share: owned handles, errors, and the classes
// that more than one of them sees. Only the two C interfaces are used.

#ifndef DFA_PYTHON_CORE_H
#define DFA_PYTHON_CORE_H

#include "dfa-c/dfa.h"
#include "dfa-rt/dfa_rt.h"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dfa::python {

namespace nb = nanobind;
using namespace nb::literals;

/// Runs without the interpreter lock. Nearly every call does: handles have a
/// lock of their own, and callbacks into Python may run under it.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

struct Device {
  std::shared_ptr<dfa_rt_device_t> handle;
  bool cuda = false;
  int32_t ordinal = 0;
};

struct Artifact {
  std::shared_ptr<dfa_artifact_t> handle;
};

struct Program {
  std::shared_ptr<dfa_rt_program_t> handle;
  std::vector<std::string> axes;
};

struct Layout {
  std::shared_ptr<dfa_rt_layout_t> handle;
  int64_t params = 0;
  int32_t classes = 0;
};

/// A group's handle keeps Python's store and device alive. Its last owner may
/// be a thread without the interpreter lock.
struct Group {
  std::shared_ptr<dfa_rt_group_t> handle;
};

inline void *toPointer(uint64_t address) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}
inline uint64_t toAddress(const void *pointer) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

/// Throws the Python exception for a failure of the runtime. Works with and
/// without the interpreter lock. `group` tells who is to blame for a
/// collective.
[[noreturn]] void throwRuntime(dfa_rt_status_t status,
                               dfa_rt_group_t *group = nullptr);
inline void check(dfa_rt_status_t status, dfa_rt_group_t *group = nullptr) {
  if (status != DFA_RT_OK)
    throwRuntime(status, group);
}

/// Calls `body` without the interpreter lock, whether it is held or not.
template <typename Body> auto unlocked(Body body) {
  if (!PyGILState_Check())
    return body();
  nb::gil_scoped_release release;
  return body();
}

/// Whether threads of the runtime may still call into Python.
bool interpreterRuns();

void addCompiler(nb::module_ &module);
void addDevices(nb::module_ &module);
void addLayouts(nb::module_ &module);
void addGroups(nb::module_ &module);
void addOptimizers(nb::module_ &module);
void addSteppers(nb::module_ &module);
void addTensors(nb::module_ &module);
void addWatches(nb::module_ &module);

} // namespace dfa::python

#endif // DFA_PYTHON_CORE_H
