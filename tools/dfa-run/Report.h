// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What dfa-run prints about a run, for people or as JSON.
#ifndef DFA_TOOLS_DFA_RUN_REPORT_H
#define DFA_TOOLS_DFA_RUN_REPORT_H

#include "Options.h"
#include "execution/Timing.h"
#include "support/Comparison.h"

#include <optional>
#include <string>

namespace dfa::run {

struct Report {
  std::string target;
  int64_t ranks = 1;
  int64_t steps = 0;
  uint64_t seed = 0;
  int64_t elements = 0;
  int64_t parameters = 0;
  // Control, behind the last step.
  int64_t controlStep = 0, skipped = 0, foundInf = 0;
  double norm = 0, scale = 1;
  std::optional<Comparison> verified;
  std::optional<Timing> timing;
};

/// Prints to stdout.
void printReport(const Report &report, bool json);

/// Says on stderr how far a long run is: nothing in its first two seconds, and
/// at most one line a second.
class Progress {
public:
  Progress(std::string what, int64_t total);
  void advance(int64_t done);

private:
  std::string what;
  int64_t total;
  double next;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REPORT_H
