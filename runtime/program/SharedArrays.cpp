// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays that are gathered lie in memory of their transport, if it has some in
// which that costs less, and if nobody bound them.

#include "program/Executor.h"

namespace dfa::rt {

// In the order of the program, which is the same on all ranks.
Status Executor::bindShared(Stream stream) {
  for (const ProgramEntry &entry : program.entries) {
    for (const Command &command : entry.commands) {
      if (command.kind != CommandKind::collective ||
          command.get(Field::collective_kind) !=
              int64_t(CollectiveKind::AllGather) ||
          command.get(Field::collective_target) < 0)
        continue;
      Communicator *axis = communicator(command.get(Field::collective_axis));
      if (!axis)
        continue;
      DFA_RT_TRY(bindShared(*axis, command, stream));
    }
  }
  return Status();
}

Status Executor::bindShared(Communicator &axis, const Command &gather,
                            Stream stream) {
  int64_t classIndex = gather.get(Field::collective_class);
  int64_t array = gather.get(Field::collective_target);
  ArrayStorage &storage = state.classes[classIndex].arrays[array];
  size_t width = sizeOf(program.classes[classIndex].arrays[array].element);
  int64_t buckets = state.tables.classes[classIndex].buckets.size();
  int64_t elements = 0;
  for (int64_t bucket = 0; bucket < buckets; ++bucket)
    elements += storage.bucketElements(bucket);
  if (elements == 0 || storage.isBound())
    return Status();
  void *memory = nullptr;
  DFA_RT_TRY(axis.allocateShared(elements * width, &memory));
  if (!memory)
    return Status();
  DFA_RT_TRY(device.zero(memory, elements * width, stream));
  char *next = static_cast<char *>(memory);
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    storage.bindBucket(bucket, next);
    next += storage.bucketElements(bucket) * static_cast<int64_t>(width);
  }
  sharedGathers.push_back(&gather);
  return Status();
}

// The first gather in such memory sets up engines, as other collectives set up
// channels. The array is still all zeros, on every rank.
Status Executor::gatherShared(Stream stream) {
  for (const Command *gather : sharedGathers) {
    int64_t classIndex = gather->get(Field::collective_class);
    int64_t buckets = state.tables.classes[classIndex].buckets.size();
    for (int64_t bucket = 0; bucket < buckets; ++bucket)
      DFA_RT_TRY(collectArray(*gather, bucket, stream));
  }
  return Status();
}

Status Executor::settle(Stream stream) {
  for (Communicator *axis : axes)
    if (axis)
      DFA_RT_TRY(axis->settle(stream));
  return Status();
}

} // namespace dfa::rt
