// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Issues the commands of a program's entry to streams: one handler a command.
// When to record, replay or upload is decided by Optimizer.

#ifndef DFA_PROGRAM_EXECUTOR_H
#define DFA_PROGRAM_EXECUTOR_H

#include "comm/Communicator.h"
#include "program/Profile.h"
#include "program/Program.h"
#include "program/State.h"

#include <tuple>
#include <vector>

namespace dfa::rt {

/// What one walk through an entry works on.
struct Frame {
  Stream compute;
  Stream comm;          // equal to compute if no axis has more than one rank
  Stream side;          // equal to compute outside of recordings
  uint64_t capture = 0; // the recording that takes it, or 0
  bool uploads = true;  // false in recordings: they would freeze the tables
  int64_t entry = 0;
  int64_t loopClass = noClass; // of the current bucket
  int64_t bucket = -1;         // counted within the class; -1: all
  Profile *profile = nullptr;  // takes the time of every command; or null
};

/// A collective as a transport sees it, without its memory.
struct Transfer {
  int64_t axis = 0;
  CollectiveKind kind = CollectiveKind::AllReduce;
  DataType type = DataType::F32;
  ReduceOp reduce = ReduceOp::Sum;
  int64_t count = 0; // of the sharded end, if there is one

  bool operator<(const Transfer &other) const {
    return std::tie(axis, kind, type, reduce, count) <
           std::tie(other.axis, other.kind, other.type, other.reduce,
                    other.count);
  }
};

class Executor {
public:
  /// `axes` holds a communicator for each axis of the program; null stands for
  /// an axis of one rank.
  Executor(const Program &program, State &state,
           std::vector<Communicator *> axes);

  /// Finds the kernels, creates the events, and checks that the collectives
  /// fit the tables and transports.
  Status prepare(Module module);
  /// Puts arrays that are gathered into memory of their transports, before any
  /// other memory is given to them. All ranks call it.
  Status bindShared(Stream stream);
  /// Runs every distinct collective of transports that connect lazily once, on
  /// memory of its own, and waits: a recording may not contain the connecting.
  /// All ranks call it; when it returns, all of them are connected.
  Status warmUp(Stream stream);
  /// Issues the whole entry; `frame.bucket` restricts it to one bucket.
  Status run(Frame frame);

  /// Ends what a recording noted of its collectives, behind the last of them.
  Status settle(Stream stream);

  /// True if any axis has more than one rank.
  bool distributed() const { return communicates; }
  /// True if every collective may be recorded.
  bool capturable() const;
  /// Events that eager work recorded are from now on known to be reached.
  void forgetEvents();

private:
  struct KernelState {
    Function function;
    uint32_t chunkLog2 = 0;
    uint32_t fullLog2 = 0;
  };
  // Recordings have events of their own: one that was recorded into a graph
  // may not be waited for outside.
  struct EventState {
    OwnedEvent eager;
    OwnedEvent captured;
    bool pending = false;
    uint64_t capture = 0;
  };
  // Where the rows of one combine lie in `sums`.
  struct SumsRows {
    double *base = nullptr; // row 0
    int64_t local = 0;      // this rank's row
    int64_t rows = 1;
    int64_t length = 0; // f64 a row
  };

  template <CommandKind> Status execute(const Command &command, Frame &frame);
  Status dispatch(const Command &command, Frame &frame);
  Status issue(const Command &command, Frame &frame);

  Stream stream(int64_t choice, const Frame &frame) const {
    switch (StreamChoice(choice)) {
    case StreamChoice::Comm:
      return frame.comm;
    case StreamChoice::Side:
      return frame.side;
    case StreamChoice::Compute:
      break;
    }
    return frame.compute;
  }
  const TableRanges &ranges(int64_t classIndex, const Frame &frame) const;
  bool skips(int64_t classIndex, const Frame &frame) const;
  SumsRows sumsRows(const ProgramEntry &entry, int64_t acc,
                    const Command *upTo) const;
  Status bindShared(Communicator &axis, const Command &gather, Stream stream);
  Status gatherShared(Stream stream);
  Status checkCollective(const Command &command) const;
  Transfer arrayTransfer(const Command &command, int64_t bucket) const;
  Transfer sumsTransfer(const ProgramEntry &entry,
                        const Command &command) const;
  int64_t rowLength(const Command &command) const;
  int64_t statsCount(int64_t classIndex, int64_t accs) const;
  Communicator *statsAxis(const ProgramEntry &entry, int64_t classIndex) const;
  Transfer statsTransfer(const Command &command) const;
  Status collectStats(const Command &command, Stream on);
  Transfer presenceTransfer(const Command &command, size_t classIndex) const;
  Status transfer(const Transfer &what, const void *send, void *recv,
                  Stream on);
  std::vector<Transfer> lazyTransfers() const;
  Status collectArray(const Command &command, int64_t bucket, Stream on);
  Status collectSums(const Command &command, const Frame &frame, Stream on);
  Status collectPresence(const Command &command, const Frame &frame, Stream on);
  Status copyBucket(int64_t classIndex, const ArrayStorage &from,
                    const ArrayStorage &to, int64_t bucket, size_t width,
                    Stream on);
  Communicator *communicator(int64_t axis) const { return axes[axis]; }

  const Program &program;
  State &state;
  Device &device;
  std::vector<Communicator *> axes; // null for axes of one rank
  bool communicates = false;
  // The gathers into memory of their transports, one an array.
  std::vector<const Command *> sharedGathers;
  std::vector<KernelState> kernels;
  std::vector<std::vector<EventState>> events; // by name, then bucket
};

// A command of program.def without a handler does not link.
#define DFA_RT_COMMAND(name, doc)                                              \
  template <>                                                                  \
  Status Executor::execute<CommandKind::name>(const Command &, Frame &);
#include "dfa-rt/program.def"

} // namespace dfa::rt

#endif // DFA_PROGRAM_EXECUTOR_H
