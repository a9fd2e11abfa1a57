// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA device, through the driver interface.

#ifndef DFA_CUDA_CUDADEVICE_H
#define DFA_CUDA_CUDADEVICE_H

#include "base/Device.h"
#include "cuda/DriverApi.h"

#include <memory>

namespace dfa::rt {

/// Opens a CUDA device by its ordinal; an error if there is no driver or no
/// such device.
Result<std::unique_ptr<Device>> createCudaDevice(int ordinal);

/// The same with a given driver, which must outlive the device.
Result<std::unique_ptr<Device>> createCudaDevice(const cuda::DriverApi &api,
                                                 int ordinal);

/// Counts the CUDA devices; 0 if there is no driver.
int countCudaDevices();

} // namespace dfa::rt

#endif // DFA_CUDA_CUDADEVICE_H
