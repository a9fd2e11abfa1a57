// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU device: host memory, a thread pool, kernels from a callback.

#ifndef DFA_CPU_CPUDEVICE_H
#define DFA_CPU_CPUDEVICE_H

#include "base/Device.h"

#include <memory>

namespace dfa::rt {

/// Makes a CPU device with `threads` threads (0: DFA_NUM_THREADS, or all
/// cores).
std::unique_ptr<Device> createCpuDevice(int threads = 0);

} // namespace dfa::rt

#endif // DFA_CPU_CPUDEVICE_H
