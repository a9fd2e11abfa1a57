// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often things are measured, and which of the results count.
#include "execution/Timing.h"
#include "execution/Execution.h"

#include <algorithm>
#include <cmath>

using namespace dfa::run;

constexpr int64_t batches = 5;
constexpr int64_t profiles = 5;

double dfa::run::median(std::vector<double> &values) {
  if (values.empty())
    return 0;
  std::vector<double>::iterator middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Timing::kernelMilliseconds() const {
  double sum = 0;
  for (const CommandSum &command : commands)
    sum += command.isKernel() ? command.milliseconds : 0;
  return sum;
}

/// One batch on all ranks; the slowest counts.
Status Execution::timeBatch(int64_t count, double &milliseconds,
                            std::vector<double> &hostMicroseconds) {
  Status status = request(Ask::Time, count);
  if (status.ok())
    status = rank.timeBatch(count, milliseconds, hostMicroseconds);
  return shared(status.ok() ? exchangeSlowest(milliseconds) : status);
}

Status Execution::timeSteps(StepTime &time) {
  std::vector<double> times, host;
  double estimate = 0;
  // The first step is not like the others.
  Status status = timeBatch(1, estimate, host);
  if (status.ok())
    status = timeBatch(1, estimate, host);
  host.clear();
  // Long enough for a clock, short enough for a person.
  estimate = std::max(estimate, 1e-3);
  time.batches = batches;
  time.stepsPerBatch =
      estimate > 50
          ? std::max<int64_t>(1, std::llround(1000 / estimate))
          : std::clamp<int64_t>(std::llround(20 / estimate), 20, 1000);
  for (int64_t i = 0; i < batches && status.ok(); ++i) {
    double taken = 0;
    status = timeBatch(time.stepsPerBatch, taken, host);
    times.push_back(taken);
  }
  time.milliseconds = median(times);
  time.hostMicroseconds = median(host);
  return status;
}

Status Execution::timeCommands(std::vector<CommandSum> &commands) {
  std::vector<std::vector<double>> times;
  Status status;
  for (int64_t round = 0; round <= profiles && status.ok(); ++round) {
    status = request(Ask::Profile);
    if (status.ok())
      status = shared(rank.profile(commands));
    times.resize(commands.size());
    // The first round warms up.
    for (size_t i = 0; i < commands.size() && round > 0; ++i)
      times[i].push_back(commands[i].milliseconds);
  }
  for (size_t i = 0; i < commands.size(); ++i)
    commands[i].milliseconds = median(times[i]);
  return status;
}

Status Execution::timeAll(const std::vector<KernelTraffic> &traffic,
                          Timing &timing) {
  Status status = shared(rank.timeCopy(timing.copy));
  if (status.ok())
    status = timeSteps(timing.step);
  if (status.ok())
    status = timeCommands(timing.commands);
  timing.bytes = 0;
  for (const KernelTraffic &kernel : traffic) {
    timing.bytes += kernel.bytes;
    for (CommandSum &command : timing.commands)
      if (command.isKernel() && command.name == kernel.name) {
        command.bytesPerElement = kernel.bytesPerElement;
        command.bytes = kernel.bytes;
      }
  }
  return status;
}
