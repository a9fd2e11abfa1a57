// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Timers around commands, and what a command is called in a table of times.

#include "program/Profile.h"

namespace dfa::rt {

// The place of a field among a command's values; -1 if it has none.
static int findField(const Command &command, std::string_view name) {
  const CommandInfo &info = commandInfo(command.kind);
  for (int index = 0; index < info.fieldCount; ++index)
    if (fieldInfo(info.firstField + index).name == name)
      return index;
  return -1;
}

static int64_t valueOf(const Command &command, std::string_view name,
                       int64_t otherwise) {
  int index = findField(command, name);
  return index < 0 ? otherwise : command.values[index];
}

static std::string wordOf(const Command &command, std::string_view name) {
  int index = findField(command, name);
  int field = commandInfo(command.kind).firstField + index;
  return std::string(enumWords(field)[command.values[index]]);
}

Profile::Profile(const Program &program, const Tables &tables, Device &device,
                 int64_t entry)
    : program(program), tables(tables), device(device),
      entry(program.entries[entry]) {}

StreamChoice Profile::streamOf(const Command &command) {
  StreamChoice choice =
      StreamChoice(valueOf(command, "stream", int64_t(StreamChoice::Compute)));
  // Outside of recordings, which have no times, `side` is the step's stream.
  return choice == StreamChoice::Side ? StreamChoice::Compute : choice;
}

// The most commands that one walk issues.
size_t Profile::issues() const {
  size_t count = 0;
  size_t repeats = 1;
  for (const Command &command : entry.commands) {
    if (command.kind == CommandKind::for_each_bucket)
      repeats = tables.classes[command.get(Field::for_each_bucket_class)]
                    .order.size();
    else if (command.kind == CommandKind::end_bucket)
      repeats = 1;
    else
      count += repeats;
  }
  return count;
}

Status Profile::prepare() {
  size_t count = issues();
  rows.reserve(count);
  timers.resize(2 * count);
  for (OwnedEvent &timer : timers)
    DFA_RT_TRY(createTimer(device, timer));
  return Status();
}

std::string Profile::nameOf(const Command &command) const {
  switch (command.kind) {
  case CommandKind::launch_elements:
  case CommandKind::launch_control:
  case CommandKind::launch_segments:
    return program.kernels[valueOf(command, "kernel", 0)].name;
  case CommandKind::collective:
    return wordOf(command, "kind");
  case CommandKind::record:
  case CommandKind::wait:
    return program.events[valueOf(command, "event", 0)];
  case CommandKind::memset:
    return program.classes[command.get(Field::memset_class)]
        .arrays[command.get(Field::memset_array)]
        .name;
  case CommandKind::upload:
    return wordOf(command, "table");
  case CommandKind::barrier:
    return program.axes[command.get(Field::barrier_axis)].name;
  case CommandKind::read_back:
    return "control";
  case CommandKind::for_each_bucket:
  case CommandKind::end_bucket:
    break; // walked, never issued
  }
  return "";
}

Status Profile::begin(const Command &command, int64_t bucket, Stream stream) {
  CommandTime row;
  row.command = &command - entry.commands.data();
  row.classIndex = valueOf(command, "class", noClass);
  row.bucket = bucket;
  row.stream = streamOf(command);
  launchesBefore = device.counters().launches;
  rows.push_back(row);
  return device.record(timers[2 * rows.size() - 2].get(), stream);
}

Status Profile::end(Stream stream) {
  rows.back().launches = device.counters().launches - launchesBefore;
  return device.record(timers[2 * rows.size() - 1].get(), stream);
}

Result<std::vector<CommandTime>> Profile::read() {
  for (size_t index = 0; index < rows.size(); ++index) {
    CommandTime &row = rows[index];
    const Command &command = entry.commands[row.command];
    row.kind = commandInfo(command.kind).name;
    row.name = nameOf(command);
    DFA_RT_TRY(device.elapsed(timers[2 * index].get(),
                              timers[2 * index + 1].get(), row.milliseconds));
  }
  return std::move(rows);
}

} // namespace dfa::rt
