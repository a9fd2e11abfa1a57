// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank of a compiled step: an optimizer of the runtime and the data that
// goes in and out of it. Speaks the runtime's C interface only.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_RANK_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_RANK_H

#include "data/Source.h"
#include "dfa-rt/dfa_rt.h"
#include "execution/FailureGuard.h"
#include "execution/Timing.h"
#include "step/StepGraph.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dfa::run {

/// What the compiler made of a step.
struct StepCode {
  std::string program;                        // text
  std::function<void *(const char *)> kernel; // CPU: finds a function
  std::string image;                          // CUDA
};

struct RankOptions {
  int64_t rank = 0;
  bool cuda = false;
  int ordinal = 0; // of the GPU
  int threads = 0; // of a CPU device
  bool replay = false;
  std::string agreement; // what is the same on all ranks, beside the layout
};

/// A run of elements of a parameter, in memory order.
struct Fragment {
  int64_t begin = 0;
  int64_t count = 0;
};

class Rank {
public:
  Rank() = default;
  Rank(const Rank &) = delete;
  ~Rank();

  /// Makes device, layout, communicators and optimizer.
  Status create(const StepGraph &graph, const StepCode &code,
                const RankOptions &options);
  /// Puts initial values, hyper-parameters and control fields in place.
  Status load(const Source &source);
  /// Puts the gradients of a step (from 1) in place; where the step accumulates
  /// them, one contribution after the other.
  Status setGradients(const Source &source, int64_t step);
  /// Queues a step.
  Status step();
  /// Waits for everything queued.
  Status synchronize();

  /// The part of a parameter that this rank has of an array.
  Fragment fragment(const std::string &role, int param) const {
    return fragmentOf(role, param, shardIndex);
  }
  /// The same of the ranks with another shard.
  Fragment fragmentOf(const std::string &role, int param, int64_t shard) const;
  /// Copies this rank's part, as stored, in memory order.
  Status read(const std::string &role, int param, void *target);
  /// Copies host memory of a rank to that of all others, collectively.
  Status broadcast(void *memory, size_t bytes, int64_t root);
  /// Tells the other ranks that this one cannot go on.
  void report(const std::string &reason);
  Status readControl(const char *field, double &value);
  Status readSteps(int param, int64_t &steps);

  // RankTiming.cpp.
  /// Times a copy on the device, the best of a few.
  Status timeCopy(CopyTime &time);
  /// Queues steps and times them: milliseconds a step, and what the host needs
  /// to queue each of the first.
  Status timeBatch(int64_t count, double &milliseconds,
                   std::vector<double> &hostMicroseconds);
  /// Times of a step's entries, and of its commands, summed by kind and name.
  Status profile(std::vector<CommandSum> &sums);
  std::string deviceName() const;
  /// Lines about transport and groups; empty for one rank.
  std::string describeGroup() const;
  const dfa_rt_layout_t *layout() const { return planned; }

private:
  Status timeEntries(std::vector<CommandSum> &sums);
  Status createLayout();
  Status connect();
  Status contribute(const Source &source, int64_t number);
  Status setPresence(const Source &source, int64_t first, int64_t count);
  Status write(const std::string &role, int param, const double *logical);
  Status loadControl(const Source &source);
  Status loadParam(const Source &source, int param);
  Status forEachParam(const std::function<Status(int)> &body);
  Status address(const std::string &role, int param, void *&result,
                 Fragment &part) const;

  const StepGraph *graph = nullptr;
  const StepCode *code = nullptr;
  RankOptions options;
  int64_t shardIndex = 0;
  std::vector<dfa_rt_placement_t> places; // by parameter
  std::vector<dfa_rt_bucket_t> buckets;
  std::vector<int64_t> classIndices; // in the program, by class

  dfa_rt_device_t *device = nullptr;
  dfa_rt_stream_t stream = nullptr;
  dfa_rt_layout_t *planned = nullptr;
  dfa_rt_program_t *program = nullptr;
  dfa_rt_group_t *group = nullptr;
  std::unique_ptr<FailureGuard> guard; // of the group
  std::vector<dfa_rt_communicator_t *> communicators;
  dfa_rt_optimizer_t *optimizer = nullptr;
  void *staging = nullptr; // device memory of broadcasts
  int64_t fillEntry = -1, reduceEntry = -1, finishEntry = -1;
};

/// A failure of the runtime as a status that names the call.
Status checkRuntime(dfa_rt_status_t status, const std::string &what);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_RANK_H
