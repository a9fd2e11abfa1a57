// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets a CUDA stream write the sequence words in mapped host memory, in
// recordings too. The driver is found at run time.

#ifndef DFA_COMM_CUDAWORDS_H
#define DFA_COMM_CUDAWORDS_H

#include "base/Device.h"

#include <atomic>
#include <functional>

namespace dfa::rt {

/// Makes the writer; fails if the driver or its function is not there.
Status makeCudaWordWriter(
    std::function<Status(std::atomic<uint64_t> *word, uint64_t value,
                         Stream stream)> &writer);

} // namespace dfa::rt

#endif // DFA_COMM_CUDAWORDS_H
