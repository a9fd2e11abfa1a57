// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces operator new; in a file of its own, so that the compiler does not
// see through it.

#include "HeapCounter.h"

#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<int64_t> count{0};

void *operator new(size_t bytes) {
  ++count;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}

void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  ++count;
  return std::malloc(bytes ? bytes : 1);
}

void operator delete(void *memory) noexcept { std::free(memory); }

void operator delete(void *memory, size_t) noexcept { std::free(memory); }

int64_t dfa::rt::test::heapAllocations() { return count.load(); }
