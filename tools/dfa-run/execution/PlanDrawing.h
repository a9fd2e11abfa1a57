// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout as a picture: a row for each bucket, its parameters, and the cuts
// between shards.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_PLANDRAWING_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_PLANDRAWING_H

#include "layout/Plan.h"

#include <string>

namespace dfa::run {

/// The plan as an SVG document.
std::string drawPlan(const layout::Plan &plan);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_PLANDRAWING_H
