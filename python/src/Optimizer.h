// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's optimizer as the module's files share it.

#ifndef DFA_PYTHON_OPTIMIZER_H
#define DFA_PYTHON_OPTIMIZER_H

#include "Core.h"

namespace dfa::python {

/// Copies share the handle. Members go in reverse order: the optimizer first,
/// then what it uses.
class Optimizer {
public:
  Optimizer(const Device &device, const Program &program, const Layout &layout,
            const Artifact &artifact, int64_t rank, int64_t tileElements,
            const Group *group, bool replay);

  /// The handle; throws if it was closed.
  dfa_rt_optimizer_t *get() const;
  void check(dfa_rt_status_t status) const {
    if (status != DFA_RT_OK)
      throwRuntime(status, group.get());
  }
  void close() {
    unlocked([&] { handle.reset(); });
  }

private:
  std::shared_ptr<dfa_artifact_t> artifact; // its kernels
  std::shared_ptr<dfa_rt_group_t> group;
  std::shared_ptr<dfa_rt_optimizer_t> handle;
};

} // namespace dfa::python

#endif // DFA_PYTHON_OPTIMIZER_H
