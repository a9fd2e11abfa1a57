// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotating upload slots.

#include "program/Uploader.h"

#include <cstring>

namespace dfa::rt {

Status Uploader::prepare(Device &onDevice, size_t bytes) {
  device = &onDevice;
  capacity = bytes;
  for (Slot &slot : slots) {
    DFA_RT_TRY(allocateHost(onDevice, bytes, slot.memory));
    DFA_RT_TRY(createEvent(onDevice, slot.event));
    slot.used = false;
  }
  return Status();
}

Status Uploader::upload(void *target, const void *source, size_t bytes,
                        Stream stream) {
  if (bytes == 0)
    return Status();
  if (bytes > capacity)
    return DFA_RT_ERROR(Internal, "expects at most %zu bytes, but got %zu",
                        capacity, bytes);
  Slot &slot = slots[next];
  next = (next + 1) % slots.size();
  if (slot.used)
    DFA_RT_TRY(device->synchronizeEvent(slot.event.get()));
  std::memcpy(slot.memory.get().handle, source, bytes);
  DFA_RT_TRY(device->copy(target, slot.memory.get().handle, bytes, stream));
  slot.used = true;
  return device->record(slot.event.get(), stream);
}

} // namespace dfa::rt
