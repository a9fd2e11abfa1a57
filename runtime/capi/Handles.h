// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the opaque handles of dfa_rt.h hold, and the guard around every
// function: exceptions become statuses, statuses become codes and a message.

#ifndef DFA_CAPI_HANDLES_H
#define DFA_CAPI_HANDLES_H

#include "base/Device.h"
#include "base/Status.h"
#include "comm/Communicator.h"
#include "dfa-rt/dfa_rt.h"
#include "layout/Plan.h"
#include "program/Optimizer.h"
#include "program/Program.h"

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>

struct dfa_rt_device {
  std::shared_ptr<dfa::rt::Device> device;
  std::string name;
};

struct dfa_rt_program {
  dfa::rt::Program program;
  std::string text;
};

struct dfa_rt_layout {
  dfa::layout::PlanInput input;
  std::unique_ptr<dfa::layout::Plan> plan;
  std::string text;
};

struct dfa_rt_communicator {
  std::shared_ptr<dfa::rt::Communicator> communicator;
};

struct dfa_rt_optimizer {
  std::mutex mutex;
  // Recordings may outlive the handle; the communicators they use are kept by
  // the process that made them.
  std::vector<std::shared_ptr<dfa::rt::Communicator>> communicators;
  std::unique_ptr<dfa::rt::Optimizer> optimizer;
};

namespace dfa::rt::capi {

/// Remembers the failure for dfa_rt_last_error and returns its code.
dfa_rt_status_t report(const Status &status);

/// Runs `body`, which returns a Status, for a function of the C interface.
template <typename Body> dfa_rt_status_t guard(Body body) noexcept {
  try {
    Status status = body();
    return status.ok() ? DFA_RT_OK : report(status);
  } catch (const std::bad_alloc &) {
    return report(DFA_RT_ERROR(OutOfMemory, "out of host memory"));
  } catch (const std::exception &error) {
    return report(DFA_RT_ERROR(Internal, "%s", error.what()));
  }
}

/// Fails if a pointer argument is null.
inline Status required(const void *argument, const char *name) {
  if (argument)
    return Status();
  return DFA_RT_ERROR(InvalidArgument, "expects '%s' not to be null", name);
}

} // namespace dfa::rt::capi

#endif // DFA_CAPI_HANDLES_H
