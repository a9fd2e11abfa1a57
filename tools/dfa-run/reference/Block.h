// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The unit of elementwise evaluation: a few hundred neighbouring elements of
// one parameter, small enough for a step's values to stay in cache.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_BLOCK_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_BLOCK_H

#include "reference/Bounded.h"

#include <cstdint>

namespace dfa::run {

constexpr int64_t blockElements = 256;

struct Block {
  double value[blockElements];
  double terms[blockElements];

  DFA_RUN_INLINE Bounded get(int64_t i) const { return {value[i], terms[i]}; }
  DFA_RUN_INLINE void set(int64_t i, Bounded x) {
    value[i] = x.value;
    terms[i] = x.terms;
  }
};

// Loops over blocks are compiled for wider vectors too; the loader picks. No
// contraction is allowed anywhere, so the values are the same.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DFA_RUN_VECTOR_CLONES                                                  \
  __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define DFA_RUN_VECTOR_CLONES
#endif

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_BLOCK_H
