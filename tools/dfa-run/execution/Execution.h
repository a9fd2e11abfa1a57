// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All ranks of a compiled step in this process, a thread each, and their
// results as one. Collectives are as real as between processes.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_EXECUTION_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_EXECUTION_H

#include "data/Results.h"
#include "execution/LocalStore.h"
#include "execution/Rank.h"
#include "support/Comparison.h"

#include <functional>
#include <memory>
#include <vector>

namespace dfa::run {

struct ExecutionOptions {
  bool cuda = false;
  unsigned threads = 0; // of CPU devices, all ranks together
  bool replay = false;
};

class Execution : public Results {
public:
  /// Makes all ranks and waits until they have met.
  Status create(const StepGraph &graph, const StepCode &code,
                const ExecutionOptions &options);
  /// Puts initial values in place.
  Status load(const Source &source);
  /// Puts the gradients of a step (from 1) in place.
  Status setGradients(const Source &source, int64_t number);
  /// Runs a step and waits for it.
  Status step();

  /// Times a copy on the first rank, then steps and their commands on the
  /// gradients that are in place.
  Status timeAll(const std::vector<KernelTraffic> &traffic, Timing &timing);

  Status read(const std::string &role, int param, void *target) override;
  Status readControl(int field, double &value) override;
  Status readSteps(int param, int64_t &steps) override;

  /// One line a rank: device and transport.
  std::string describe() const;
  const Rank &first() const { return *ranks.front(); }

  /// Compares with the reference, which has run the same steps.
  Status verify(const Reference &reference, Comparison &comparison);

private:
  Status forAll(const std::function<Status(Rank &, int64_t)> &body);
  Status timeBatch(int64_t count, double &milliseconds,
                   std::vector<double> &hostMicroseconds);
  Status timeSteps(StepTime &time);
  Status timeCommands(std::vector<CommandSum> &commands);
  Status readStored(const std::string &role, int64_t replica, int param,
                    void *target);
  Status verifyParam(const Reference &reference, int param,
                     Comparison &comparison);
  Status verifyStored(const Reference &reference, const StoredArray &array,
                      int param, Comparison &comparison);
  Status verifyEncoding(int param, Comparison &comparison);
  Status verifyReplicas(int param, Comparison &comparison);
  Status verifyControl(const Reference &reference, Comparison &comparison);

  const StepGraph *graph = nullptr;
  unsigned threads = 0;
  LocalStore store;
  std::vector<std::unique_ptr<Rank>> ranks;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_EXECUTION_H
