// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stream-ordered copies of small host tables to the device.

#ifndef DFA_PROGRAM_UPLOADER_H
#define DFA_PROGRAM_UPLOADER_H

#include "base/Owned.h"

#include <array>
#include <cstddef>

namespace dfa::rt {

/// Copies through pinned slots that rotate: the caller may change its table at
/// once, and a slot is reused only after the copy from it was done. Never used
/// on a stream that is recorded: a recorded upload would bring old values back
/// at every replay.
class Uploader {
public:
  /// Allocates slots for tables of up to `bytes`.
  Status prepare(Device &device, size_t bytes);
  /// Copies `bytes` from `source` to device memory.
  Status upload(void *target, const void *source, size_t bytes, Stream stream);

private:
  struct Slot {
    HostMemory memory;
    OwnedEvent event;
    bool used = false;
  };

  Device *device = nullptr;
  size_t capacity = 0;
  std::array<Slot, 4> slots;
  size_t next = 0;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_UPLOADER_H
