// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotating upload slots.

#include "program/Uploader.h"

#include <cstring>

namespace dfa::rt {

namespace {
// Host memory of a recording, which may outlive every optimizer.
struct RecordedUpload {
  std::shared_ptr<Device> device;
  HostMemory memory; // goes first
};
} // namespace

Status Uploader::prepare(std::shared_ptr<Device> onDevice, size_t bytes) {
  device = std::move(onDevice);
  capacity = bytes;
  for (Slot &slot : slots) {
    DFA_RT_TRY(allocateHost(*device, bytes, slot.memory));
    DFA_RT_TRY(createEvent(*device, slot.event));
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
  uint64_t capture = 0;
  DFA_RT_TRY(device->captureId(stream, capture));
  if (capture) {
    std::shared_ptr<RecordedUpload> owned = std::make_shared<RecordedUpload>();
    owned->device = device;
    DFA_RT_TRY(allocateHost(*device, bytes, owned->memory));
    void *copied = owned->memory.get().handle;
    std::memcpy(copied, source, bytes);
    DFA_RT_TRY(device->retainInCapture(stream, owned));
    return device->copy(target, copied, bytes, stream);
  }
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
