// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What --time measures: a copy, whole steps in batches, and every command of a
// step. Printing is in Report.cpp.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_TIMING_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_TIMING_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dfa::run {

/// What a kernel moves in a step on one rank.
struct KernelTraffic {
  std::string name;
  double bytesPerElement = 0;
  double bytes = 0;
};

/// A device-to-device copy.
struct CopyTime {
  size_t bytes = 0; // that are copied
  double rate = 0;  // GB/s, reads and writes together
};

/// Whole steps.
struct StepTime {
  int64_t batches = 0, stepsPerBatch = 0;
  double milliseconds = 0; // a step, median of the batches
  double hostMicroseconds = 0;
};

/// All commands of one kind and name in a step.
struct CommandSum {
  std::string kind; // the command's word
  std::string name;
  int64_t launches = 0; // of kernels; other commands: how often it is issued
  double milliseconds = 0;
  double bytesPerElement = 0, bytes = 0; // 0: not known
  bool isKernel() const { return kind.rfind("launch_", 0) == 0; }
  double rate() const { return bytes / milliseconds * 1e-6; }
};

struct Timing {
  CopyTime copy;
  StepTime step;
  double bytes = 0; // a step on one rank
  std::vector<CommandSum> commands;

  double rate() const { return bytes / step.milliseconds * 1e-6; }
  /// At least what memory allows for these bytes; 1 is as fast as a copy.
  double ratioToFloor() const { return copy.rate / rate(); }
  /// Of all kernels in a step.
  double kernelMilliseconds() const;
};

/// The middle of the values, which it reorders; 0 if there are none.
double median(std::vector<double> &values);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_TIMING_H
