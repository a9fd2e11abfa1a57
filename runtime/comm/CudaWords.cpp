// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the driver, by their ABI. Pinned memory has the same address on
// host and device (unified addressing), so a word's address serves as it is.

#include "comm/CudaWords.h"

#include "base/Owned.h"

#include <cstddef>
#include <dlfcn.h>
#include <memory>

namespace dfa::rt {

namespace {

/// One thread writes `ended`, then `begun`. The driver compiles it for the
/// device.
constexpr char wordsKernel[] = R"(
.version 6.0
.target sm_70
.address_size 64
.visible .entry dfa_rt_words(
    .param .u64 words, .param .u64 begun, .param .u64 ended)
{
  .reg .b64 %r<4>;
  ld.param.u64 %r1, [words];
  ld.param.u64 %r2, [begun];
  ld.param.u64 %r3, [ended];
  st.volatile.u64 [%r1 + 8], %r3;
  membar.sys;
  st.volatile.u64 [%r1], %r2;
  ret;
}
)";
static_assert(offsetof(SequenceWords, begun) == 0 &&
                  offsetof(SequenceWords, ended) == 8,
              "offsets in the kernel");

/// The functions of the driver that are called here.
struct Driver {
  int (*write)(void *stream, uint64_t address, uint64_t value, unsigned flags);
  int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned,
                unsigned, unsigned, unsigned shared, void *stream,
                void **parameters, void **extra);
  int (*contextOf)(void *stream, void **context);
  int (*push)(void *context);
  int (*pop)(void **context);
};

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

static Status findAll(Driver &driver) {
  void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return DFA_RT_ERROR(NotFound, "the CUDA driver cannot be loaded: %s",
                        ::dlerror());
  // The driver stays loaded for the life of the process anyway.
  DFA_RT_TRY(find(library, "cuStreamWriteValue64_v2", driver.write));
  DFA_RT_TRY(find(library, "cuLaunchKernel", driver.launch));
  DFA_RT_TRY(find(library, "cuStreamGetCtx", driver.contextOf));
  DFA_RT_TRY(find(library, "cuCtxPushCurrent_v2", driver.push));
  return find(library, "cuCtxPopCurrent_v2", driver.pop);
}

static Status launchWords(const Driver &driver, Function kernel,
                          SequenceWords *words, uint64_t begun, uint64_t ended,
                          Stream stream) {
  void *context = nullptr;
  DFA_RT_TRY(
      written("cuStreamGetCtx", driver.contextOf(stream.handle, &context)));
  DFA_RT_TRY(written("cuCtxPushCurrent", driver.push(context)));
  void *parameters[] = {&words, &begun, &ended};
  int code = driver.launch(kernel.handle, 1, 1, 1, 1, 1, 1, 0, stream.handle,
                           parameters, nullptr);
  (void)driver.pop(&context);
  return written("cuLaunchKernel", code);
}

Status makeCudaWordWriters(
    Device &device,
    std::function<Status(std::atomic<uint64_t> *, uint64_t, Stream)> &one,
    std::function<Status(SequenceWords *, uint64_t, uint64_t, Stream)> &both) {
  Driver driver = {};
  DFA_RT_TRY(findAll(driver));
  KernelSource source;
  source.image = wordsKernel;
  source.imageBytes = sizeof(wordsKernel);
  Module module;
  DFA_RT_TRY(device.loadModule(source, module));
  std::shared_ptr<OwnedModule> owned =
      std::make_shared<OwnedModule>(device, module);
  Function kernel;
  DFA_RT_TRY(device.getFunction(module, "dfa_rt_words", kernel));
  one = [driver](std::atomic<uint64_t> *word, uint64_t value, Stream stream) {
    return written("cuStreamWriteValue64",
                   driver.write(stream.handle, addressOf(*word), value, 0));
  };
  both = [driver, kernel, owned](SequenceWords *words, uint64_t begun,
                                 uint64_t ended, Stream stream) {
    return launchWords(driver, kernel, words, begun, ended, stream);
  };
  return Status();
}

} // namespace dfa::rt
