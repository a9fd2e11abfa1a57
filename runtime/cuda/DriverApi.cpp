// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the CUDA driver. The library is never unloaded: contexts of others may
// live in it.

#include "cuda/DriverApi.h"

#include "base/Log.h"

#include <dlfcn.h>

namespace dfa::rt::cuda {

static Status fill(void *library, DriverApi &api) {
#define DFA_CUDA_LOAD(name, symbol, parameters)                                \
  api.name =                                                                   \
      reinterpret_cast<ResultCode(*) parameters>(dlsym(library, symbol));      \
  if (!api.name)                                                               \
    return DFA_RT_ERROR(Unsupported,                                           \
                        "libcuda.so.1 lacks " symbol                           \
                        "; expects a driver for CUDA 12 or later");
  DFA_CUDA_FUNCTIONS(DFA_CUDA_LOAD)
#undef DFA_CUDA_LOAD
  return Status();
}

static Result<const DriverApi *> load() {
  static DriverApi api;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return DFA_RT_ERROR(NotFound, "no CUDA driver on this machine: %s",
                        why ? why : "libcuda.so.1 did not load");
  }
  DFA_RT_TRY(fill(library, api));
  ResultCode code = api.init(0);
  if (code != CUDA_SUCCESS)
    return driverStatus(api, code, "cuInit", __FILE__, __LINE__);
  int version = 0;
  api.driverGetVersion(&version);
  DFA_RT_LOG(Info, "CUDA driver %d.%d", version / 1000, version % 1000 / 10);
  return &api;
}

Result<const DriverApi *> loadDriver() {
  static const Result<const DriverApi *> loaded = load();
  return loaded;
}

Status driverStatus(const DriverApi &api, ResultCode code, const char *call,
                    const char *file, int line) {
  if (code == CUDA_SUCCESS)
    return Status();
  const char *name = nullptr;
  const char *text = nullptr;
  api.getErrorName(code, &name);
  api.getErrorString(code, &text);
  Code kind = code == CUDA_ERROR_OUT_OF_MEMORY ? Code::OutOfMemory
              : code == CUDA_ERROR_NOT_FOUND   ? Code::NotFound
                                               : Code::DeviceError;
  return Status(kind,
                format("%s: %s (%s)", call, text ? text : "unknown error",
                       name ? name : std::to_string(code).c_str()),
                file, line);
}

} // namespace dfa::rt::cuda
