// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Owners of what a Device hands out. Each frees its handle when it goes; the
// device must outlive it.

#ifndef DFA_BASE_OWNED_H
#define DFA_BASE_OWNED_H

#include "base/Device.h"

namespace dfa::rt {

/// Owns a handle of type `Handle`, given back by `Release`.
template <typename Handle, void (*Release)(Device &, Handle)> class Owned {
public:
  Owned() = default;
  Owned(Device &device, Handle handle) : device(&device), handle(handle) {}
  Owned(Owned &&other) noexcept { swap(other); }
  Owned &operator=(Owned &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Owned() {
    if (device && handle.handle)
      Release(*device, handle);
  }

  Handle get() const { return handle; }
  explicit operator bool() const { return handle.handle != nullptr; }

private:
  void swap(Owned &other) {
    std::swap(device, other.device);
    std::swap(handle, other.handle);
  }

  Device *device = nullptr;
  Handle handle;
};

/// Memory with its size, as a handle.
struct Memory {
  void *handle = nullptr;
  size_t bytes = 0;
};

namespace detail {
inline void release(Device &device, Stream it) { device.destroyStream(it); }
inline void release(Device &device, Event it) { device.destroyEvent(it); }
inline void release(Device &device, Module it) { device.unloadModule(it); }
inline void release(Device &device, Graph it) { device.destroyGraph(it); }
inline void release(Device &device, Memory it) {
  device.free(it.handle, it.bytes);
}
inline void releaseHost(Device &device, Memory it) {
  device.freeHost(it.handle);
}
} // namespace detail

using OwnedStream = Owned<Stream, detail::release>;
using OwnedEvent = Owned<Event, detail::release>;
using OwnedModule = Owned<Module, detail::release>;
using OwnedGraph = Owned<Graph, detail::release>;
using DeviceMemory = Owned<Memory, detail::release>;
using HostMemory = Owned<Memory, detail::releaseHost>;

/// Allocates device memory; zero bytes give an empty owner.
inline Status allocate(Device &device, size_t bytes, DeviceMemory &memory) {
  memory = DeviceMemory();
  if (bytes == 0)
    return Status();
  void *address = nullptr;
  DFA_RT_TRY(device.allocate(bytes, &address));
  memory = DeviceMemory(device, Memory{address, bytes});
  return Status();
}

/// Allocates pinned host memory; zero bytes give an empty owner.
inline Status allocateHost(Device &device, size_t bytes, HostMemory &memory) {
  memory = HostMemory();
  if (bytes == 0)
    return Status();
  void *address = nullptr;
  DFA_RT_TRY(device.allocateHost(bytes, &address));
  memory = HostMemory(device, Memory{address, bytes});
  return Status();
}

inline Status createStream(Device &device, OwnedStream &stream) {
  Stream handle;
  DFA_RT_TRY(device.createStream(handle));
  stream = OwnedStream(device, handle);
  return Status();
}

inline Status createUrgentStream(Device &device, OwnedStream &stream) {
  Stream handle;
  DFA_RT_TRY(device.createUrgentStream(handle));
  stream = OwnedStream(device, handle);
  return Status();
}

inline Status createEvent(Device &device, OwnedEvent &event) {
  Event handle;
  DFA_RT_TRY(device.createEvent(handle));
  event = OwnedEvent(device, handle);
  return Status();
}

inline Status createTimer(Device &device, OwnedEvent &event) {
  Event handle;
  DFA_RT_TRY(device.createTimer(handle));
  event = OwnedEvent(device, handle);
  return Status();
}

} // namespace dfa::rt

#endif // DFA_BASE_OWNED_H
