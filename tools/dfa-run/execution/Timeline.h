// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program puts on which stream, and what waits for what, on a scale of
// nominal costs. Times of a run are in --trace and --time.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_TIMELINE_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_TIMELINE_H

#include "layout/Plan.h"
#include "program/Program.h"

#include <string>
#include <vector>

namespace dfa::run {

/// One command on a stream.
struct Span {
  int stream = 0; // compute, comm, side
  double begin = 0, end = 0;
  std::string what;
  int64_t bucket = -1; // in the plan; -1: none in particular
  bool collective = false;
};

/// One entry, from its start to where its streams join.
struct EntrySpans {
  std::string entry;
  double begin = 0, end = 0;
  std::vector<Span> spans;
};

/// The entries of a step one after the other. A command begins when its stream
/// and the events that the stream waits for allow.
std::vector<EntrySpans> schedule(const rt::Program &program,
                                 const layout::Plan &plan);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_TIMELINE_H
