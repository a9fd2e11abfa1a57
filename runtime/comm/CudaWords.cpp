// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two driver functions, by their ABI. Pinned memory has the same address on
// host and device (unified addressing), so a word's address serves as it is.

#include "comm/CudaWords.h"

#include <dlfcn.h>

namespace dfa::rt {

namespace {

/// CUstreamBatchMemOpParams, as a write of 64 bits.
struct MemoryOperation {
  static constexpr int writeValue64 = 5;
  int operation = writeValue64;
  uint64_t address = 0;
  uint64_t value = 0;
  unsigned flags = 0; // what came before is visible first
  uint64_t alias = 0;
  uint64_t unused = 0;
};
static_assert(sizeof(MemoryOperation) == 48, "the driver's union");

} // namespace

static uint64_t addressOf(const std::atomic<uint64_t> &word) {
  return uint64_t(reinterpret_cast<uintptr_t>(&word));
}

static Status written(const char *call, int code) {
  if (code == 0)
    return Status();
  return DFA_RT_ERROR(DeviceError, "%s failed with driver code %d", call, code);
}

template <typename Function>
static Status find(void *driver, const char *name, Function &function) {
  function = reinterpret_cast<Function>(::dlsym(driver, name));
  if (function)
    return Status();
  return DFA_RT_ERROR(
      NotFound, "the CUDA driver lacks %s (12.0 or later is expected)", name);
}

Status makeCudaWordWriters(
    std::function<Status(std::atomic<uint64_t> *, uint64_t, Stream)> &one,
    std::function<Status(SequenceWords *, uint64_t, uint64_t, Stream)> &both) {
  using WriteValue64 =
      int (*)(void *stream, uint64_t address, uint64_t value, unsigned flags);
  using BatchMemOp = int (*)(void *stream, unsigned count,
                             MemoryOperation *operations, unsigned flags);
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver)
    return DFA_RT_ERROR(NotFound, "the CUDA driver cannot be loaded: %s",
                        ::dlerror());
  // The driver stays loaded for the life of the process anyway.
  WriteValue64 write = nullptr;
  BatchMemOp batch = nullptr;
  DFA_RT_TRY(find(driver, "cuStreamWriteValue64_v2", write));
  DFA_RT_TRY(find(driver, "cuStreamBatchMemOp_v2", batch));
  one = [write](std::atomic<uint64_t> *word, uint64_t value, Stream stream) {
    return written("cuStreamWriteValue64",
                   write(stream.handle, addressOf(*word), value, 0));
  };
  both = [batch](SequenceWords *words, uint64_t begun, uint64_t ended,
                 Stream stream) {
    MemoryOperation operations[2];
    operations[0].address = addressOf(words->ended);
    operations[0].value = ended;
    operations[1].address = addressOf(words->begun);
    operations[1].value = begun;
    return written("cuStreamBatchMemOp",
                   batch(stream.handle, 2, operations, 0));
  };
  return Status();
}

} // namespace dfa::rt
