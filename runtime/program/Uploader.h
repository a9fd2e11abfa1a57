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
/// once, and a slot is reused only after the copy from it was done. While a
/// graph is recorded, the copy reads memory that the recording owns instead,
/// so replays see what was current at the recording.
class Uploader {
public:
  /// Allocates slots for tables of up to `bytes`.
  Status prepare(std::shared_ptr<Device> device, size_t bytes);
  /// Copies `bytes` from `source` to device memory.
  Status upload(void *target, const void *source, size_t bytes, Stream stream);

private:
  struct Slot {
    HostMemory memory;
    OwnedEvent event;
    bool used = false;
  };

  std::shared_ptr<Device> device;
  size_t capacity = 0;
  std::array<Slot, 4> slots;
  size_t next = 0;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_UPLOADER_H
