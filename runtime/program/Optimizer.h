// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One optimizer on one rank: a program, its tables, arrays and streams, and
// the decision whether an entry is issued, recorded or replayed.

#ifndef DFA_PROGRAM_OPTIMIZER_H
#define DFA_PROGRAM_OPTIMIZER_H

#include "base/Device.h"
#include "comm/Communicator.h"
#include "program/Profile.h"
#include "program/Program.h"
#include "program/Tables.h"

#include <memory>
#include <string_view>
#include <vector>

namespace dfa::rt {

struct OptimizerOptions {
  std::shared_ptr<Device> device;
  Program program;
  Tables tables;
  KernelSource kernels;
  /// One for each axis of the program, in its order; null: one rank. They must
  /// outlive the optimizer and every recording of it.
  std::vector<Communicator *> axes;
  /// Record each entry once and replay it, instead of issuing its commands.
  bool replay = false;
};

/// Calls on one optimizer must not overlap in time; any thread may make them.
/// Nothing is on the device before `prepare`. Unless a call says that it
/// waits, it returns when its work is queued on the given stream.
class Optimizer {
public:
  static Result<std::unique_ptr<Optimizer>> create(OptimizerOptions options);
  /// Waits for the work it started. Recordings of others that contain its work
  /// keep its memory until they go.
  ~Optimizer();

  const Program &program() const;
  const Tables &tables() const;
  Device &device() const;

  // Arrays. Unbound ones are allocated, zeroed, by prepare.
  /// Puts one segment of an array at `address`; after prepare, the next
  /// `upload table=segments` (or push) makes it known to the device.
  Status bindSegment(int64_t classIndex, int64_t array, int64_t segment,
                     void *address);
  /// Puts one bucket (counted within the class) of an array at `address`;
  /// before prepare only.
  Status bindBucket(int64_t classIndex, int64_t array, int64_t bucket,
                    void *address);
  /// Where a segment of an array lies; null if it has no elements.
  Result<void *> segmentAddress(int64_t classIndex, int64_t array,
                                int64_t segment) const;

  // Hyper-parameters: a row a group, a column for each name of the program.
  Status setHyper(int64_t group, int64_t column, double value);
  Result<double> hyper(int64_t group, int64_t column) const;
  /// Says whether a parameter has a gradient in the coming step.
  Status setPresent(int64_t classIndex, int64_t segment, bool present);
  /// Uploads what changed on the host, in stream order.
  Status push(Stream stream);

  /// Allocates, loads kernels and, with `replay`, records the entries. It
  /// waits until the device is ready. Afterwards nothing is allocated.
  Status prepare(Stream stream);

  /// Runs an entry. Into a stream that somebody records, it is recorded;
  /// uploads are not: values pushed later reach the replays.
  Status run(int64_t entry, Stream stream);
  /// Runs an entry for one bucket, without joining the communication stream:
  /// the next `run` does.
  Status runBucket(int64_t entry, int64_t classIndex, int64_t bucket,
                   Stream stream);
  /// Orders `stream` behind the buckets that runBucket issued.
  Status join(Stream stream);

  /// Issues an entry as `run` does without replay, with timers around every
  /// command, and waits: the times of its commands in the order of issue.
  /// Timers cost time themselves, a few microseconds a command. Refused in a
  /// capture.
  Result<std::vector<CommandTime>> profile(int64_t entry, Stream stream);

  // Control fields by name, as f64 (integers up to 2^53 are exact).
  /// Writes a field; after prepare, in stream order.
  Status setControl(std::string_view field, double value, Stream stream);
  /// Reads what the last finished read-back brought; never waits.
  Result<double> controlMirror(std::string_view field) const;
  /// Reads the device's value; waits for the stream.
  Result<double> fetchControl(std::string_view field, Stream stream);

  // Where values lie on the device, after prepare.
  Result<void *> controlAddress(std::string_view field) const;
  /// An upload of hyper-parameters that changed on the host overwrites what
  /// the caller wrote there.
  Result<void *> hyperAddress(int64_t group, int64_t column) const;
  Result<void *> stepAddress(int64_t classIndex, int64_t segment) const;

  // Step counts of segments, for checkpoints; both wait for the stream.
  Result<int64_t> fetchStep(int64_t classIndex, int64_t segment, Stream stream);
  Status setStep(int64_t classIndex, int64_t segment, int64_t step,
                 Stream stream);

private:
  struct Core;
  explicit Optimizer(std::shared_ptr<Core> core);
  // Shared with recordings that contain its work.
  std::shared_ptr<Core> core;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_OPTIMIZER_H
