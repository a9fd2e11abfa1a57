// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One driver function, by its ABI. Pinned memory has the same address on host
// and device (unified addressing), so the word's address serves as it is.

#include "comm/CudaWords.h"

#include <dlfcn.h>

namespace dfa::rt {

Status makeCudaWordWriter(
    std::function<Status(std::atomic<uint64_t> *, uint64_t, Stream)> &writer) {
  using WriteValue64 =
      int (*)(void *stream, uint64_t address, uint64_t value, unsigned flags);
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver)
    return DFA_RT_ERROR(NotFound, "the CUDA driver cannot be loaded: %s",
                        ::dlerror());
  // The driver stays loaded for the life of the process anyway.
  WriteValue64 write = reinterpret_cast<WriteValue64>(
      ::dlsym(driver, "cuStreamWriteValue64_v2"));
  if (!write)
    return DFA_RT_ERROR(NotFound, "the CUDA driver lacks "
                                  "cuStreamWriteValue64_v2 (12.0 or later is "
                                  "expected)");
  writer = [write](std::atomic<uint64_t> *word, uint64_t value,
                   Stream stream) -> Status {
    int code = write(stream.handle, uint64_t(reinterpret_cast<uintptr_t>(word)),
                     value, 0);
    if (code == 0)
      return Status();
    return DFA_RT_ERROR(
        DeviceError, "cuStreamWriteValue64 failed with driver code %d", code);
  };
  return Status();
}

} // namespace dfa::rt
