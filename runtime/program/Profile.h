// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The times of the commands of one walk through an entry. Nothing here runs
// unless a profile is asked for.

#ifndef DFA_PROGRAM_PROFILE_H
#define DFA_PROGRAM_PROFILE_H

#include "base/Owned.h"
#include "program/Program.h"
#include "program/Tables.h"

#include <string>
#include <vector>

namespace dfa::rt {

/// One command as it was issued: inside of for_each_bucket, once a bucket.
struct CommandTime {
  int64_t command = 0; // its index in the entry
  std::string kind;    // the command's word
  std::string name;    // kernel, kind of collective, event, array, table, axis
  int64_t classIndex = noClass;
  int64_t bucket = -1; // counted within the class; -1: all
  StreamChoice stream = StreamChoice::Compute;
  int64_t launches = 0; // kernels that it launched
  double milliseconds = 0;
};

class Profile {
public:
  Profile(const Program &program, const Tables &tables, Device &device,
          int64_t entry);

  /// Makes all timers, so that the walk does not wait for that.
  Status prepare();
  /// Starts the time of a command, which is issued to `stream` next.
  Status begin(const Command &command, int64_t bucket, Stream stream);
  Status end(Stream stream);
  /// Waits for the walk and returns the times, in the order of issue.
  Result<std::vector<CommandTime>> read();

  /// The stream that a command works on.
  static StreamChoice streamOf(const Command &command);

private:
  size_t issues() const;
  std::string nameOf(const Command &command) const;

  const Program &program;
  const Tables &tables;
  Device &device;
  const ProgramEntry &entry;
  std::vector<OwnedEvent> timers; // two a row
  std::vector<CommandTime> rows;
  int64_t launchesBefore = 0;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_PROFILE_H
