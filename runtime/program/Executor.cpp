// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The handlers of all commands but `collective`, which is in Collectives.cpp.

#include "program/Executor.h"

#include <algorithm>

namespace dfa::rt {

Executor::Executor(const Program &program, State &state,
                   std::vector<Communicator *> givenAxes)
    : program(program), state(state), device(*state.device),
      axes(std::move(givenAxes)) {
  axes.resize(program.axes.size());
  for (Communicator *&axis : axes) {
    if (axis && axis->size() == 1)
      axis = nullptr;
    communicates |= axis != nullptr;
  }
}

bool Executor::capturable() const {
  return std::all_of(axes.begin(), axes.end(), [](Communicator *axis) {
    return !axis || axis->capturable();
  });
}

// === Preparation ============================================================

// The smallest l so that 2^l parts of `part` elements cover the longest row.
static uint32_t partsLog2(const std::vector<dfa_rt_chunk_t> &rows,
                          RowRange range, int64_t part) {
  int64_t longest = 0;
  for (int64_t row = range.begin; row < range.end; ++row)
    longest = std::max<int64_t>(longest, rows[row].length);
  uint32_t log2 = 0;
  while ((part << log2) < longest)
    ++log2;
  return log2;
}

Status Executor::prepare(Module module) {
  kernels.clear();
  for (const ProgramKernel &kernel : program.kernels) {
    KernelState prepared;
    DFA_RT_TRY(device.getFunction(module, kernel.name, prepared.function));
    if (kernel.kind == KernelKind::Element) {
      const TableRanges &rows = state.tables.classes[kernel.classIndex].rows;
      int64_t part = DFA_RT_PART_LANES * kernel.vector;
      prepared.chunkLog2 = partsLog2(state.tables.chunks, rows.chunks, part);
      prepared.fullLog2 = partsLog2(state.tables.full, rows.full, part);
    }
    kernels.push_back(prepared);
  }
  events.clear();
  events.resize(program.events.size());
  for (const ProgramEntry &entry : program.entries) {
    int64_t loop = noClass;
    for (const Command &command : entry.commands) {
      if (command.kind == CommandKind::for_each_bucket)
        loop = command.get(Field::for_each_bucket_class);
      if (command.kind == CommandKind::end_bucket)
        loop = noClass;
      // Without other ranks only recordings have more than one stream.
      if (command.kind == CommandKind::record &&
          (communicates || device.kind() == Device::Kind::Cuda)) {
        size_t count =
            loop == noClass ? 1 : state.tables.classes[loop].buckets.size();
        events[command.get(Field::record_event)].resize(count);
      }
      if (command.kind == CommandKind::collective)
        DFA_RT_TRY(checkCollective(command));
    }
  }
  for (std::vector<EventState> &buckets : events) {
    for (EventState &event : buckets) {
      DFA_RT_TRY(createEvent(device, event.eager));
      DFA_RT_TRY(createEvent(device, event.captured));
    }
  }
  return Status();
}

void Executor::forgetEvents() {
  for (std::vector<EventState> &buckets : events)
    for (EventState &event : buckets)
      event.pending = false;
}

// === The walk ===============================================================

const TableRanges &Executor::ranges(int64_t classIndex,
                                    const Frame &frame) const {
  const ClassInfo &info = state.tables.classes[classIndex];
  if (frame.bucket < 0)
    return info.rows;
  return state.tables.buckets[info.buckets.begin + frame.bucket].rows;
}

// True for commands on another class while the walk is about one bucket.
bool Executor::skips(int64_t classIndex, const Frame &frame) const {
  return frame.bucket >= 0 && classIndex != frame.loopClass;
}

Status Executor::dispatch(const Command &command, Frame &frame) {
  switch (command.kind) {
#define DFA_RT_COMMAND(name, doc)                                              \
  case CommandKind::name:                                                      \
    return execute<CommandKind::name>(command, frame);
#include "dfa-rt/program.def"
  }
  return DFA_RT_ERROR(Internal, "unknown command");
}

// A command, between two timers if the walk is profiled.
Status Executor::issue(const Command &command, Frame &frame) {
  if (!frame.profile)
    return dispatch(command, frame);
  Stream on = stream(int64_t(Profile::streamOf(command)), frame);
  DFA_RT_TRY(frame.profile->begin(command, frame.bucket, on));
  DFA_RT_TRY(dispatch(command, frame));
  return frame.profile->end(on);
}

Status Executor::run(Frame frame) {
  const std::vector<Command> &commands = program.entries[frame.entry].commands;
  for (size_t index = 0; index < commands.size(); ++index) {
    if (commands[index].kind != CommandKind::for_each_bucket) {
      DFA_RT_TRY(issue(commands[index], frame));
      continue;
    }
    int64_t classIndex = commands[index].get(Field::for_each_bucket_class);
    size_t end = index + 1;
    while (commands[end].kind != CommandKind::end_bucket)
      ++end;
    const ClassInfo &info = state.tables.classes[classIndex];
    for (int64_t bucket : info.order) {
      Frame inner = frame;
      inner.loopClass = classIndex;
      inner.bucket = bucket - info.buckets.begin;
      if (skips(classIndex, frame) ||
          (frame.bucket >= 0 && frame.bucket != inner.bucket))
        continue;
      for (size_t body = index + 1; body < end; ++body)
        DFA_RT_TRY(issue(commands[body], inner));
    }
    index = end;
  }
  return Status();
}

// === Handlers ===============================================================

template <>
Status Executor::execute<CommandKind::for_each_bucket>(const Command &,
                                                       Frame &) {
  return DFA_RT_ERROR(Internal, "loops are walked by run()");
}

template <>
Status Executor::execute<CommandKind::end_bucket>(const Command &, Frame &) {
  return DFA_RT_ERROR(Internal, "loops are walked by run()");
}

template <>
Status Executor::execute<CommandKind::launch_elements>(const Command &command,
                                                       Frame &frame) {
  int64_t classIndex = command.get(Field::launch_elements_class);
  if (skips(classIndex, frame))
    return Status();
  int64_t index = command.get(Field::launch_elements_kernel);
  const TableRanges &rows = ranges(classIndex, frame);
  const dfa_rt_chunk_t *table = state.chunks;
  RowRange range = rows.chunks;
  uint32_t log2 = kernels[index].chunkLog2;
  switch (ChunkTable(command.get(Field::launch_elements_table))) {
  case ChunkTable::Chunks:
    break;
  case ChunkTable::Atoms:
    table = state.atoms;
    range = rows.atoms;
    log2 = 0;
    break;
  case ChunkTable::Full:
    table = state.full;
    range = rows.full;
    log2 = kernels[index].fullLog2;
    break;
  }
  if (range.size() == 0)
    return Status();
  ClassState &own = state.classes[classIndex];
  ElementLaunch launch;
  launch.control = state.control;
  launch.segments = own.rows;
  launch.state = own.state;
  launch.derived = own.derived;
  launch.chunks = table;
  launch.chunkBegin = range.begin;
  launch.chunkEnd = range.end;
  launch.partsPerChunkLog2 = log2;
  launch.partials = state.partials + command.get(Field::launch_elements_acc) *
                                         state.partialStride;
  launch.partialStride = state.partialStride;
  launch.block = program.kernels[index].block;
  launch.accumulates = program.kernels[index].accs > 0;
  return device.launch(
      kernels[index].function, launch,
      stream(command.get(Field::launch_elements_stream), frame));
}

template <>
Status Executor::execute<CommandKind::launch_control>(const Command &command,
                                                      Frame &frame) {
  int64_t index = command.get(Field::launch_control_kernel);
  int64_t acc = command.get(Field::launch_control_acc);
  ControlLaunch launch;
  launch.control = state.control;
  launch.partials = state.partials + acc * state.partialStride;
  launch.partialStride = state.partialStride;
  launch.atoms = static_cast<int64_t>(state.tables.atoms.size());
  launch.groups = state.groups;
  launch.groupStats = state.groupStats;
  launch.groupCount = state.tables.groups;
  launch.localSums = nullptr;
  launch.gathered = nullptr;
  launch.ranks = 1;
  launch.atomGroups = state.atomGroups;
  ControlMode mode = ControlMode(command.get(Field::launch_control_mode));
  if (mode != ControlMode::Whole) {
    SumsRows sums = sumsRows(program.entries[frame.entry], acc, nullptr);
    if (mode == ControlMode::Local)
      launch.localSums = sums.base + sums.local * sums.length;
    else
      launch.gathered = sums.base;
    launch.ranks = sums.rows;
  }
  return device.launch(
      kernels[index].function, launch,
      stream(command.get(Field::launch_control_stream), frame));
}

template <>
Status Executor::execute<CommandKind::launch_segments>(const Command &command,
                                                       Frame &frame) {
  int64_t classIndex = command.get(Field::launch_segments_class);
  if (skips(classIndex, frame))
    return Status();
  RowRange range = ranges(classIndex, frame).segments;
  if (range.size() == 0)
    return Status();
  ClassState &own = state.classes[classIndex];
  SegmentLaunch launch;
  launch.control = state.control;
  launch.groups = state.groups;
  launch.segments = own.rows;
  launch.state = own.state;
  launch.derived = own.derived;
  launch.segmentBegin = range.begin;
  launch.segmentEnd = range.end;
  launch.partials = state.partials + command.get(Field::launch_segments_acc) *
                                         state.partialStride;
  launch.partialStride = state.partialStride;
  launch.segmentStats = own.stats;
  launch.segmentStatsStride = program.classes[classIndex].stats;
  launch.groupStats = state.groupStats;
  int64_t index = command.get(Field::launch_segments_kernel);
  ControlMode mode = ControlMode(command.get(Field::launch_segments_mode));
  if (mode != ControlMode::Whole) {
    const Communicator *axis =
        statsAxis(program.entries[frame.entry], classIndex);
    int64_t accs = program.kernels[index].accs;
    int64_t count = statsCount(classIndex, accs);
    if (mode == ControlMode::Local) {
      launch.derived = nullptr;
      launch.segmentStats += axis ? axis->rank() * count : 0;
      launch.segmentStatsStride = accs;
    } else {
      launch.partials = nullptr;
      launch.partialStride = axis ? axis->size() : 1;
      launch.segmentStatsStride = count;
    }
  }
  return device.launch(
      kernels[index].function, launch,
      stream(command.get(Field::launch_segments_stream), frame));
}

template <>
Status Executor::execute<CommandKind::record>(const Command &command,
                                              Frame &frame) {
  std::vector<EventState> &buckets = events[command.get(Field::record_event)];
  if (buckets.empty() || (!communicates && !frame.capture))
    return Status(); // one stream: its order is enough
  EventState &event =
      buckets[buckets.size() > 1 && frame.bucket >= 0 ? frame.bucket : 0];
  Stream on = stream(command.get(Field::record_stream), frame);
  if (frame.capture) {
    event.capture = frame.capture;
    return device.record(event.captured.get(), on);
  }
  event.pending = true;
  return device.record(event.eager.get(), on);
}

template <>
Status Executor::execute<CommandKind::wait>(const Command &command,
                                            Frame &frame) {
  int64_t name = command.get(Field::wait_event);
  std::vector<EventState> &buckets = events[name];
  if (!communicates && !frame.capture)
    return Status();
  Stream on = stream(command.get(Field::wait_stream), frame);
  for (size_t index = 0; index < buckets.size(); ++index) {
    if (buckets.size() > 1 && frame.bucket >= 0 &&
        index != static_cast<size_t>(frame.bucket))
      continue;
    EventState &event = buckets[index];
    if (frame.capture && event.capture == frame.capture)
      DFA_RT_TRY(device.wait(on, event.captured.get()));
    else if (frame.capture && event.pending)
      return DFA_RT_ERROR(FailedPrecondition,
                          "event '%s' was recorded before the capture began; "
                          "capture the step from fill to finish, or wait for "
                          "it first",
                          program.events[name].c_str());
    else if (!frame.capture && event.pending)
      DFA_RT_TRY(device.wait(on, event.eager.get()));
  }
  return Status();
}

template <>
Status Executor::execute<CommandKind::memset>(const Command &command,
                                              Frame &frame) {
  int64_t classIndex = command.get(Field::memset_class);
  if (skips(classIndex, frame))
    return Status();
  int64_t index = command.get(Field::memset_array);
  const ArrayStorage &array = state.classes[classIndex].arrays[index];
  size_t width = sizeOf(program.classes[classIndex].arrays[index].element);
  const ClassInfo &info = state.tables.classes[classIndex];
  Stream on = stream(command.get(Field::memset_stream), frame);
  for (int64_t bucket = 0; bucket < info.buckets.size(); ++bucket) {
    if (frame.bucket >= 0 && frame.bucket != bucket)
      continue;
    if (void *base = array.bucketAddress(bucket)) {
      DFA_RT_TRY(device.zero(base, array.bucketElements(bucket) * width, on));
      continue;
    }
    RowRange rows =
        state.tables.buckets[info.buckets.begin + bucket].rows.segments;
    for (int64_t segment = rows.begin; segment < rows.end; ++segment)
      DFA_RT_TRY(device.zero(array.segmentAddress(segment),
                             array.segmentElements(segment) * width, on));
  }
  return Status();
}

template <>
Status Executor::execute<CommandKind::upload>(const Command &command,
                                              Frame &frame) {
  if (!frame.uploads)
    return Status();
  Stream on = stream(command.get(Field::upload_stream), frame);
  switch (UploadTable(command.get(Field::upload_table))) {
  case UploadTable::Segments:
    return state.uploadSegments(on);
  case UploadTable::Groups:
    return state.uploadGroups(on);
  case UploadTable::Chunks:
    return Status(); // chunks never change after prepare
  }
  return Status();
}

template <>
Status Executor::execute<CommandKind::read_back>(const Command &command,
                                                 Frame &frame) {
  return state.readBack(stream(command.get(Field::read_back_stream), frame));
}

template <>
Status Executor::execute<CommandKind::barrier>(const Command &command,
                                               Frame &frame) {
  Communicator *axis = communicator(command.get(Field::barrier_axis));
  if (!axis)
    return Status();
  axis->label("barrier", -1);
  return axis->barrier(stream(command.get(Field::barrier_stream), frame));
}

} // namespace dfa::rt
