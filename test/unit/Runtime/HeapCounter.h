// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts what the test program takes from the heap through operator new.

#ifndef DFA_TEST_RUNTIME_HEAPCOUNTER_H
#define DFA_TEST_RUNTIME_HEAPCOUNTER_H

#include <cstdint>

namespace dfa::rt::test {

/// Calls of operator new so far, on all threads.
int64_t heapAllocations();

} // namespace dfa::rt::test

#endif // DFA_TEST_RUNTIME_HEAPCOUNTER_H
