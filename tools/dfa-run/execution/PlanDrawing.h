// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step as a picture: a row for each bucket with its parameters and the cuts
// between shards, and a row for each stream with what runs on it.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_PLANDRAWING_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_PLANDRAWING_H

#include "execution/Timeline.h"
#include "layout/Plan.h"

#include <string>

namespace dfa::run {

/// The plan, and below it the entries of a step, as an SVG document.
std::string drawPlan(const layout::Plan &plan,
                     const std::vector<EntrySpans> &entries);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_PLANDRAWING_H
