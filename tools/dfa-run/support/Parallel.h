// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over several threads, for preparing and checking data. Kernels run on
// the runtime's thread pool, not here.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_PARALLEL_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_PARALLEL_H

#include <cstdint>
#include <functional>

namespace dfa::run {

/// Calls `body(begin, end)` for pieces that cover [0, count). Every piece but
/// the last has `grain` elements, whatever the number of threads, which is the
/// machine's if `threads` is 0. Pieces run in any order.
void parallelFor(int64_t count, int64_t grain, unsigned threads,
                 const std::function<void(int64_t, int64_t)> &body);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_PARALLEL_H
