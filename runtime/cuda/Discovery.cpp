// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices of the driver that this machine has, if it has one.

#include "cuda/CudaDevice.h"

namespace dfa::rt {

using namespace cuda;

Result<std::unique_ptr<Device>> createCudaDevice(int ordinal) {
  Result<const DriverApi *> api = loadDriver();
  if (!api.ok())
    return api.status();
  return createCudaDevice(**api, ordinal);
}

int countCudaDevices() {
  Result<const DriverApi *> api = loadDriver();
  int count = 0;
  if (!api.ok() || (*api)->deviceGetCount(&count) != CUDA_SUCCESS)
    return 0;
  return count;
}

} // namespace dfa::rt
