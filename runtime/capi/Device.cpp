// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa_rt.h: versions, errors, devices, streams and communicator handles.

#include "base/Log.h"
#include "base/Owned.h"
#include "capi/Handles.h"
#include "cpu/CpuDevice.h"
#include "cuda/CudaDevice.h"

using namespace dfa::rt;
using namespace dfa::rt::capi;

#define DFA_RT_SAME_CODE(c, cpp)                                               \
  static_assert(int(c) == int(Code::cpp), "codes differ")
DFA_RT_SAME_CODE(DFA_RT_OK, Ok);
DFA_RT_SAME_CODE(DFA_RT_INVALID_ARGUMENT, InvalidArgument);
DFA_RT_SAME_CODE(DFA_RT_PARSE_ERROR, ParseError);
DFA_RT_SAME_CODE(DFA_RT_NOT_FOUND, NotFound);
DFA_RT_SAME_CODE(DFA_RT_UNSUPPORTED, Unsupported);
DFA_RT_SAME_CODE(DFA_RT_OUT_OF_MEMORY, OutOfMemory);
DFA_RT_SAME_CODE(DFA_RT_FAILED_PRECONDITION, FailedPrecondition);
DFA_RT_SAME_CODE(DFA_RT_DEVICE_ERROR, DeviceError);
DFA_RT_SAME_CODE(DFA_RT_COLLECTIVE_ERROR, CollectiveError);
DFA_RT_SAME_CODE(DFA_RT_INTERNAL, Internal);

static thread_local std::string lastError;

dfa_rt_status_t dfa::rt::capi::report(const Status &status) {
  try {
    lastError = status.str();
    DFA_RT_LOG(Debug, "%s", lastError.c_str());
  } catch (const std::bad_alloc &) {
    lastError.clear();
  }
  return static_cast<dfa_rt_status_t>(status.code());
}

uint32_t dfa_rt_api_version(void) { return DFA_RT_API_VERSION; }
uint32_t dfa_rt_abi_version(void) { return DFA_RT_ABI_VERSION; }
uint32_t dfa_rt_program_version(void) { return DFA_RT_PROGRAM_VERSION; }

const char *dfa_rt_status_name(dfa_rt_status_t status) {
  return codeName(static_cast<Code>(status));
}

const char *dfa_rt_last_error(void) { return lastError.c_str(); }

dfa_rt_status_t dfa_rt_set_log_level(int32_t level) {
  return guard([&]() -> Status {
    if (level < 0 || level > 4)
      return DFA_RT_ERROR(InvalidArgument,
                          "expects a log level from 0 to 4, but got %d", level);
    setLogLevel(static_cast<LogLevel>(level));
    return Status();
  });
}

// === Devices ================================================================

static Status wrap(std::shared_ptr<Device> device, dfa_rt_device_t **handle) {
  std::string name = device->name();
  *handle = new dfa_rt_device{std::move(device), std::move(name)};
  return Status();
}

dfa_rt_status_t dfa_rt_device_create_cpu(int32_t threads,
                                         dfa_rt_device_t **device) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    if (threads < 0 || threads > 4096)
      return DFA_RT_ERROR(InvalidArgument,
                          "expects 0 to 4096 threads, but got %d", threads);
    return wrap(createCpuDevice(threads), device);
  });
}

dfa_rt_status_t dfa_rt_device_create_cuda(int32_t ordinal,
                                          dfa_rt_device_t **device) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    Result<std::unique_ptr<Device>> made = createCudaDevice(ordinal);
    return made.ok() ? wrap(std::move(*made), device) : made.status();
  });
}

void dfa_rt_device_release(dfa_rt_device_t *device) { delete device; }

int32_t dfa_rt_cuda_device_count(void) {
  int32_t count = 0;
  guard([&] {
    count = countCudaDevices();
    return Status();
  });
  return count;
}

const char *dfa_rt_device_name(const dfa_rt_device_t *device) {
  return device ? device->name.c_str() : "";
}

dfa_rt_status_t
dfa_rt_device_set_allocator(dfa_rt_device_t *device,
                            const dfa_rt_allocator_t *allocator) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    DFA_RT_TRY(required(allocator, "allocator"));
    if (!allocator->allocate || !allocator->free)
      return DFA_RT_ERROR(InvalidArgument,
                          "expects both callbacks of an allocator");
    device->device->setAllocator(
        {allocator->allocate, allocator->free, allocator->context});
    return Status();
  });
}

dfa_rt_status_t dfa_rt_device_get_counters(const dfa_rt_device_t *device,
                                           dfa_rt_device_counters_t *counters) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    DFA_RT_TRY(required(counters, "counters"));
    DeviceCounters now = device->device->counters();
    *counters = {now.allocations, now.moduleLoads, now.graphsInstantiated,
                 now.launches};
    return Status();
  });
}

dfa_rt_status_t dfa_rt_device_allocate(dfa_rt_device_t *device, size_t bytes,
                                       void **memory) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    DFA_RT_TRY(required(memory, "memory"));
    *memory = nullptr;
    return bytes ? device->device->allocate(bytes, memory) : Status();
  });
}

void dfa_rt_device_free(dfa_rt_device_t *device, void *memory, size_t bytes) {
  if (device && memory)
    device->device->free(memory, bytes);
}

dfa_rt_status_t dfa_rt_device_copy(dfa_rt_device_t *device, void *target,
                                   const void *source, size_t bytes,
                                   dfa_rt_stream_t stream) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    return device->device->copy(target, source, bytes, Stream{stream});
  });
}

dfa_rt_status_t dfa_rt_device_zero(dfa_rt_device_t *device, void *target,
                                   size_t bytes, dfa_rt_stream_t stream) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    return device->device->zero(target, bytes, Stream{stream});
  });
}

dfa_rt_status_t dfa_rt_stream_create(dfa_rt_device_t *device,
                                     dfa_rt_stream_t *stream) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    DFA_RT_TRY(required(stream, "stream"));
    Stream made;
    DFA_RT_TRY(device->device->createStream(made));
    *stream = made.handle;
    return Status();
  });
}

void dfa_rt_stream_destroy(dfa_rt_device_t *device, dfa_rt_stream_t stream) {
  if (device && stream)
    device->device->destroyStream(Stream{stream});
}

dfa_rt_status_t dfa_rt_stream_synchronize(dfa_rt_device_t *device,
                                          dfa_rt_stream_t stream) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    return device->device->synchronize(Stream{stream});
  });
}

// === Timers =================================================================

struct dfa_rt_timer {
  std::shared_ptr<Device> device;
  OwnedEvent event; // goes before the device
};

dfa_rt_status_t dfa_rt_timer_create(dfa_rt_device_t *device,
                                    dfa_rt_timer_t **timer) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(device, "device"));
    DFA_RT_TRY(required(timer, "timer"));
    std::unique_ptr<dfa_rt_timer> made = std::make_unique<dfa_rt_timer>();
    made->device = device->device;
    DFA_RT_TRY(createTimer(*made->device, made->event));
    *timer = made.release();
    return Status();
  });
}

void dfa_rt_timer_release(dfa_rt_timer_t *timer) {
  guard([&] {
    delete timer;
    return Status();
  });
}

dfa_rt_status_t dfa_rt_timer_record(dfa_rt_timer_t *timer,
                                    dfa_rt_stream_t stream) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(timer, "timer"));
    return timer->device->record(timer->event.get(), Stream{stream});
  });
}

dfa_rt_status_t dfa_rt_timer_elapsed(const dfa_rt_timer_t *begin,
                                     const dfa_rt_timer_t *end,
                                     double *milliseconds) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(begin, "begin"));
    DFA_RT_TRY(required(end, "end"));
    DFA_RT_TRY(required(milliseconds, "milliseconds"));
    if (begin->device != end->device)
      return DFA_RT_ERROR(InvalidArgument, "expects two timers of one device");
    return end->device->elapsed(begin->event.get(), end->event.get(),
                                *milliseconds);
  });
}

// === Communicators ==========================================================

void dfa_rt_communicator_release(dfa_rt_communicator_t *communicator) {
  delete communicator;
}

int32_t dfa_rt_communicator_rank(const dfa_rt_communicator_t *communicator) {
  return communicator ? communicator->communicator->rank() : 0;
}

int32_t dfa_rt_communicator_size(const dfa_rt_communicator_t *communicator) {
  return communicator ? communicator->communicator->size() : 1;
}

const char *
dfa_rt_communicator_name(const dfa_rt_communicator_t *communicator) {
  return communicator ? communicator->communicator->name() : "";
}
