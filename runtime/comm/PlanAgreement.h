// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Agreement on a text: the first rank publishes its plan, the others compare
// hashes and, if they differ, lines.

#ifndef DFA_COMM_PLANAGREEMENT_H
#define DFA_COMM_PLANAGREEMENT_H

#include "comm/Transport.h"

#include <string>

namespace dfa::rt {

/// Length and two independent 64-bit hashes, printable.
std::string planHash(const std::string &text);

/// Describes the first line in which two plans differ, or returns an empty
/// string if they are equal.
std::string firstDifference(const std::string &expected, int expectedRank,
                            const std::string &found, int foundRank);

/// Runs one agreement; `round` is equal on all ranks and never reused.
Status agreeOnPlan(const CommContext &context, int round,
                   const std::string &plan);

} // namespace dfa::rt

#endif // DFA_COMM_PLANAGREEMENT_H
