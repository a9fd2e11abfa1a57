// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The handler of `collective`: arrays a bucket at a time, the sums of norms and
// flags, and the presence words. Along an axis of one rank they are copies, or
// nothing.

#include "program/Executor.h"

#include <algorithm>

namespace dfa::rt {

static CollectiveKind kindOf(const Command &command) {
  return CollectiveKind(command.get(Field::collective_kind));
}

static const char *wordOf(const Command &command) {
  int field = static_cast<int>(Field::collective_kind);
  return enumWords(field)[command.get(Field::collective_kind)].data();
}

static ReduceOp reduceOf(const Command &command) {
  return ReduceOp(command.get(Field::collective_reduce));
}

Status Executor::checkCollective(const Command &command) const {
  int64_t axisIndex = command.get(Field::collective_axis);
  const Communicator *axis = communicator(axisIndex);
  if (!axis)
    return Status();
  bool reduces = kindOf(command) == CollectiveKind::ReduceScatter ||
                 kindOf(command) == CollectiveKind::AllReduce;
  if (reduces && !axis->ordersByRank() &&
      CollectiveOrder(command.get(Field::collective_order)) ==
          CollectiveOrder::Rank)
    return DFA_RT_ERROR(Unsupported,
                        "line %d: axis '%s' expects sums in rank order, which "
                        "transport '%s' cannot promise",
                        command.line, program.axes[axisIndex].name.c_str(),
                        axis->name());
  int64_t classIndex = command.get(Field::collective_class);
  int64_t source = command.get(Field::collective_source);
  int64_t target = command.get(Field::collective_target);
  if (source < 0)
    return Status();
  const ClassState &own = state.classes[classIndex];
  const ClassInfo &info = state.tables.classes[classIndex];
  bool scatters = kindOf(command) == CollectiveKind::ReduceScatter ||
                  kindOf(command) == CollectiveKind::AllGather;
  for (int64_t bucket = 0; bucket < info.buckets.size(); ++bucket) {
    const BucketInfo &rows = state.tables.buckets[info.buckets.begin + bucket];
    if (rows.fullElements == 0)
      continue;
    if (!own.arrays[source].bucketAddress(bucket) ||
        !own.arrays[target].bucketAddress(bucket))
      return DFA_RT_ERROR(InvalidArgument,
                          "line %d: bucket %lld of class '%s' expects source "
                          "and target to be contiguous, but a segment is "
                          "bound on its own",
                          command.line, static_cast<long long>(bucket),
                          program.classes[classIndex].name.c_str());
    if (scatters && rows.shardElements * axis->size() != rows.fullElements)
      return DFA_RT_ERROR(
          InvalidArgument,
          "line %d: bucket %lld of class '%s' has %lld elements, which are not "
          "%d shards of %lld",
          command.line, static_cast<long long>(bucket),
          program.classes[classIndex].name.c_str(),
          static_cast<long long>(rows.fullElements), axis->size(),
          static_cast<long long>(rows.shardElements));
  }
  return Status();
}

template <>
Status Executor::execute<CommandKind::collective>(const Command &command,
                                                  Frame &frame) {
  Stream on = stream(command.get(Field::collective_stream), frame);
  int64_t classIndex = command.get(Field::collective_class);
  if (classIndex != noClass && skips(classIndex, frame))
    return Status();
  int64_t source = command.get(Field::collective_source);
  if (source == sumsArray)
    return collectSums(command, frame, on);
  if (source == presenceArray)
    return collectPresence(command, frame, on);
  if (source == statsArray)
    return collectStats(command, on);
  const ClassInfo &info = state.tables.classes[classIndex];
  if (frame.bucket >= 0)
    return collectArray(command, frame.bucket, on);
  for (int64_t bucket : info.order)
    DFA_RT_TRY(collectArray(command, bucket - info.buckets.begin, on));
  return Status();
}

Transfer Executor::arrayTransfer(const Command &command, int64_t bucket) const {
  int64_t classIndex = command.get(Field::collective_class);
  int64_t source = command.get(Field::collective_source);
  const ClassInfo &info = state.tables.classes[classIndex];
  Transfer what;
  what.axis = command.get(Field::collective_axis);
  what.kind = kindOf(command);
  what.type = program.classes[classIndex].arrays[source].element;
  what.count = state.classes[classIndex].arrays[source].bucketElements(bucket);
  bool scatters = what.kind == CollectiveKind::ReduceScatter ||
                  what.kind == CollectiveKind::AllGather;
  if (scatters && what.count > 0)
    what.count =
        state.tables.buckets[info.buckets.begin + bucket].shardElements;
  if (what.kind == CollectiveKind::ReduceScatter ||
      what.kind == CollectiveKind::AllReduce)
    what.reduce = reduceOf(command);
  return what;
}

Status Executor::transfer(const Transfer &what, const void *send, void *recv,
                          Stream on) {
  Communicator *axis = communicator(what.axis);
  switch (what.kind) {
  case CollectiveKind::ReduceScatter:
    return axis->reduceScatter(send, recv, what.count, what.type, what.reduce,
                               on);
  case CollectiveKind::AllGather:
    return axis->allGather(send, recv, what.count, what.type, on);
  case CollectiveKind::AllReduce:
    return axis->allReduce(send, recv, what.count, what.type, what.reduce, on);
  case CollectiveKind::Broadcast:
    return axis->broadcast(send, recv, what.count, what.type, /*root=*/0, on);
  }
  return Status();
}

Status Executor::collectArray(const Command &command, int64_t bucket,
                              Stream on) {
  int64_t classIndex = command.get(Field::collective_class);
  int64_t source = command.get(Field::collective_source);
  int64_t target = command.get(Field::collective_target);
  const ProgramClass &record = program.classes[classIndex];
  const ArrayStorage &from = state.classes[classIndex].arrays[source];
  const ArrayStorage &to = state.classes[classIndex].arrays[target];
  size_t width = sizeOf(record.arrays[source].element);
  Communicator *axis = communicator(command.get(Field::collective_axis));
  if (!axis)
    return source == target
               ? Status()
               : copyBucket(classIndex, from, to, bucket, width, on);

  Transfer what = arrayTransfer(command, bucket);
  if (what.count == 0)
    return Status();
  // A full array at the sharded end of a collective stands for this rank's
  // part of it.
  size_t ownPart = axis->rank() * what.count * width;
  char *send = static_cast<char *>(from.bucketAddress(bucket));
  char *recv = static_cast<char *>(to.bucketAddress(bucket));
  if (what.kind == CollectiveKind::ReduceScatter && record.arrays[target].full)
    recv += ownPart;
  if (what.kind == CollectiveKind::AllGather && record.arrays[source].full)
    send += ownPart;
  axis->label(wordOf(command),
              state.tables.classes[classIndex].buckets.begin + bucket);
  return transfer(what, send, recv, on);
}

// One rank: full and shard are the same elements.
Status Executor::copyBucket(int64_t classIndex, const ArrayStorage &from,
                            const ArrayStorage &to, int64_t bucket,
                            size_t width, Stream on) {
  const void *source = from.bucketAddress(bucket);
  void *target = to.bucketAddress(bucket);
  if (source && target) {
    if (source == target)
      return Status();
    int64_t count =
        std::min(from.bucketElements(bucket), to.bucketElements(bucket));
    return device.copy(target, source, count * width, on);
  }
  const ClassInfo &info = state.tables.classes[classIndex];
  RowRange rows =
      state.tables.buckets[info.buckets.begin + bucket].rows.segments;
  for (int64_t segment = rows.begin; segment < rows.end; ++segment) {
    const void *part = from.segmentAddress(segment);
    if (part == to.segmentAddress(segment))
      continue;
    int64_t count =
        std::min(from.segmentElements(segment), to.segmentElements(segment));
    DFA_RT_TRY(
        device.copy(to.segmentAddress(segment), part, count * width, on));
  }
  return Status();
}

// Rows of the sums are numbered so that the first axis gathered varies fastest;
// gathering the fastest mesh axis first therefore gives rank order. With `upTo`
// the rows are those that exist just before that command, and `base` is their
// first.
Executor::SumsRows Executor::sumsRows(const ProgramEntry &entry, int64_t acc,
                                      const Command *upTo) const {
  SumsRows sums;
  sums.base = state.sums + acc * state.ranks;
  int64_t all = 1;
  int64_t outer = 0;
  bool reached = false;
  for (const Command &command : entry.commands) {
    reached |= &command == upTo;
    if (command.kind != CommandKind::collective ||
        command.get(Field::collective_source) != sumsArray ||
        command.get(Field::collective_acc) != acc ||
        kindOf(command) != CollectiveKind::AllGather)
      continue;
    const Communicator *axis =
        communicator(command.get(Field::collective_axis));
    if (!axis)
      continue;
    sums.length = rowLength(command);
    int64_t offset = axis->rank() * all;
    sums.local += offset;
    all *= axis->size();
    if (!upTo || !reached)
      sums.rows = all;
    else
      outer += offset;
  }
  if (upTo)
    sums.base += outer * sums.length;
  return sums;
}

// Accumulators of a rank in an exchange of sums; some there are for each group.
int64_t Executor::rowLength(const Command &command) const {
  int64_t groupAccs = command.get(Field::collective_group_accs);
  return command.get(Field::collective_accs) +
         groupAccs * (state.tables.groups - 1);
}

Transfer Executor::statsTransfer(const Command &command) const {
  Transfer what;
  what.axis = command.get(Field::collective_axis);
  what.kind = CollectiveKind::AllGather;
  what.type = DataType::F64;
  what.count = statsCount(command.get(Field::collective_class),
                          command.get(Field::collective_accs));
  return what;
}

int64_t Executor::statsCount(int64_t classIndex, int64_t accs) const {
  return state.tables.classes[classIndex].rows.segments.size() * accs;
}

// The axis over which statistics of a class's segments are exchanged; null if
// they are not, or have no other rank.
Communicator *Executor::statsAxis(const ProgramEntry &entry,
                                  int64_t classIndex) const {
  for (const Command &command : entry.commands)
    if (command.kind == CommandKind::collective &&
        command.get(Field::collective_source) == statsArray &&
        command.get(Field::collective_class) == classIndex)
      return communicator(command.get(Field::collective_axis));
  return nullptr;
}

Status Executor::collectStats(const Command &command, Stream on) {
  Communicator *axis = communicator(command.get(Field::collective_axis));
  Transfer what = statsTransfer(command);
  if (!axis || what.count == 0)
    return Status();
  double *all = state.classes[command.get(Field::collective_class)].stats;
  axis->label(wordOf(command), -1);
  return transfer(what, all + axis->rank() * what.count, all, on);
}

Transfer Executor::sumsTransfer(const ProgramEntry &entry,
                                const Command &command) const {
  SumsRows sums = sumsRows(entry, command.get(Field::collective_acc), &command);
  Transfer what;
  what.axis = command.get(Field::collective_axis);
  what.kind = kindOf(command);
  what.type = DataType::F64;
  what.count = sums.rows * rowLength(command);
  if (what.kind == CollectiveKind::AllReduce)
    what.reduce = reduceOf(command);
  return what;
}

Status Executor::collectSums(const Command &command, const Frame &frame,
                             Stream on) {
  Communicator *axis = communicator(command.get(Field::collective_axis));
  if (!axis)
    return Status();
  const ProgramEntry &entry = program.entries[frame.entry];
  double *own =
      sumsRows(entry, command.get(Field::collective_acc), &command).base;
  Transfer what = sumsTransfer(entry, command);
  // `own` is this rank's block; the gathered blocks start where rank 0's is.
  double *all = what.kind == CollectiveKind::AllGather
                    ? own - axis->rank() * what.count
                    : own;
  axis->label(wordOf(command), -1);
  return transfer(what, own, all, on);
}

Transfer Executor::presenceTransfer(const Command &command,
                                    size_t classIndex) const {
  Transfer what;
  what.axis = command.get(Field::collective_axis);
  what.kind = CollectiveKind::AllReduce;
  what.type = DataType::U32;
  // Words are 0 or 1, so the maximum is the union on every transport.
  what.reduce = ReduceOp::Max;
  what.count =
      static_cast<int64_t>(state.classes[classIndex].hostPresence.size());
  return what;
}

Status Executor::collectPresence(const Command &command, const Frame &frame,
                                 Stream on) {
  Communicator *axis = communicator(command.get(Field::collective_axis));
  if (!axis)
    return Status();
  // The first exchange of an entry starts from what this rank saw.
  int64_t only = command.get(Field::collective_class);
  bool first = true;
  for (const Command &other : program.entries[frame.entry].commands) {
    if (&other == &command)
      break;
    if (other.kind == CommandKind::collective &&
        other.get(Field::collective_source) == presenceArray &&
        other.get(Field::collective_class) == only &&
        communicator(other.get(Field::collective_axis)))
      first = false;
  }
  axis->label(wordOf(command), -1);
  for (size_t index = 0; index < state.classes.size(); ++index) {
    if (only != noClass && only != static_cast<int64_t>(index))
      continue;
    ClassState &own = state.classes[index];
    if (own.hostPresence.empty())
      continue;
    DFA_RT_TRY(transfer(presenceTransfer(command, index),
                        first ? own.presence : own.united, own.united, on));
    DFA_RT_TRY(state.spreadPresence(index, own.united, on));
  }
  return Status();
}

} // namespace dfa::rt
