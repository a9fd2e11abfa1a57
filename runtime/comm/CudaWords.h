// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets a CUDA stream write the sequence words in mapped host memory, in
// recordings too. The driver is found at run time.

#ifndef DFA_COMM_CUDAWORDS_H
#define DFA_COMM_CUDAWORDS_H

#include "base/Device.h"
#include "comm/SequenceLog.h"

#include <atomic>
#include <functional>

namespace dfa::rt {

/// Makes the writers; fails if the driver or a function of it is not there.
/// `both` launches a kernel: as a node of a recording that costs the host a
/// quarter of what a memory operation does.
Status
makeCudaWordWriters(Device &device,
                    std::function<Status(std::atomic<uint64_t> *word,
                                         uint64_t value, Stream stream)> &one,
                    std::function<Status(SequenceWords *words, uint64_t begun,
                                         uint64_t ended, Stream stream)> &both);

} // namespace dfa::rt

#endif // DFA_COMM_CUDAWORDS_H
