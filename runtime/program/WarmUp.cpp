// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first collective of a kind and size connects channels, which cannot be
// recorded: what a program will do is done once on memory that nobody reads.

#include "program/Executor.h"

#include <algorithm>
#include <set>

namespace dfa::rt {

static const char *labelOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::ReduceScatter:
    return "warm-up reduce_scatter";
  case CollectiveKind::AllGather:
    return "warm-up all_gather";
  case CollectiveKind::AllReduce:
    return "warm-up all_reduce";
  case CollectiveKind::Broadcast:
    return "warm-up broadcast";
  }
  return "warm-up";
}

// In the order of the program, which is the same on all ranks.
std::vector<Transfer> Executor::lazyTransfers() const {
  std::vector<Transfer> found;
  std::set<Transfer> seen;
  auto add = [&](const Transfer &what) {
    if (what.count > 0 && seen.insert(what).second)
      found.push_back(what);
  };
  for (const ProgramEntry &entry : program.entries) {
    for (const Command &command : entry.commands) {
      if (command.kind != CommandKind::collective)
        continue;
      const Communicator *axis =
          communicator(command.get(Field::collective_axis));
      if (!axis || !axis->connectsLazily())
        continue;
      int64_t source = command.get(Field::collective_source);
      int64_t classIndex = command.get(Field::collective_class);
      if (source == sumsArray) {
        add(sumsTransfer(entry, command));
      } else if (source == statsArray) {
        add(statsTransfer(command));
      } else if (source == presenceArray) {
        for (size_t index = 0; index < state.classes.size(); ++index)
          if (classIndex == noClass ||
              classIndex == static_cast<int64_t>(index))
            add(presenceTransfer(command, index));
      } else {
        const ClassInfo &info = state.tables.classes[classIndex];
        for (int64_t bucket : info.order)
          add(arrayTransfer(command, bucket - info.buckets.begin));
      }
    }
  }
  return found;
}

Status Executor::warmUp(Stream stream) {
  std::vector<Transfer> transfers = lazyTransfers();
  auto bytesOf = [this](const Transfer &what) {
    bool scatters = what.kind == CollectiveKind::ReduceScatter ||
                    what.kind == CollectiveKind::AllGather;
    int64_t parts = scatters ? communicator(what.axis)->size() : 1;
    return static_cast<size_t>(what.count * parts) * sizeOf(what.type);
  };
  size_t bytes = 0;
  for (const Transfer &what : transfers)
    bytes = std::max(bytes, bytesOf(what));
  DeviceMemory scratch;
  DFA_RT_TRY(allocate(device, bytes, scratch));
  char *whole = static_cast<char *>(scratch.get().handle);

  auto issue = [&]() -> Status {
    DFA_RT_TRY(device.zero(whole, bytes, stream));
    for (const Transfer &what : transfers) {
      Communicator *axis = communicator(what.axis);
      char *part = whole + axis->rank() * what.count * sizeOf(what.type);
      axis->label(labelOf(what.kind), -1);
      bool gathers = what.kind == CollectiveKind::AllGather;
      bool reduces = what.kind == CollectiveKind::ReduceScatter;
      DFA_RT_TRY(transfer(what, gathers ? part : whole, reduces ? part : whole,
                          stream));
    }
    DFA_RT_TRY(gatherShared(stream));
    // After a barrier along every axis no rank is connecting any more: that
    // would also fail beside a recording of another rank of this process.
    for (Communicator *axis : axes) {
      if (!axis || !axis->connectsLazily())
        continue;
      axis->label("warm-up barrier", -1);
      DFA_RT_TRY(axis->barrier(stream));
    }
    return Status();
  };
  Status status = issue();
  // Also after a failure: what was issued before it uses the memory.
  Status done = device.synchronize(stream);
  return status.ok() ? done : status;
}

} // namespace dfa::rt
