// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa._core: the parts, and versions.

#include "Core.h"

#include <atomic>

using namespace dfa::python;

// Set when the interpreter begins to exit, while callbacks still work.
static std::atomic<bool> exiting{false};

bool dfa::python::interpreterRuns() {
  return !exiting.load() && Py_IsInitialized();
}

NB_MODULE(_core, module) {
  // A model and its optimizer that live until the end are a cycle through
  // autograd's hooks, which Python cannot collect: nothing to report to users.
  nb::set_leak_warnings(false);
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function([] { exiting.store(true); }));
  module.doc() = "The compiler's and the runtime's C interfaces.";
  module.attr("version") = dfa_version();
  module.attr("llvm_version") = dfa_llvm_version();
  module.attr("abi_version") = dfa_rt_abi_version();
  module.attr("program_version") = dfa_rt_program_version();
  addCompiler(module);
  addDevices(module);
  addLayouts(module);
  addGroups(module);
  addOptimizers(module);
  addSteppers(module);
  addTensors(module);
  addWatches(module);
}
