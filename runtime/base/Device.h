// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one interface through which the executor drives a device: memory,
// streams, events, modules, launches and graphs. CPU and CUDA implement it.

#ifndef DFA_BASE_DEVICE_H
#define DFA_BASE_DEVICE_H

#include "base/Status.h"
#include "dfa-rt/abi.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dfa::rt {

/// A queue of ordered work. CUDA: a CUstream, null being the legacy default
/// stream. CPU: null runs work at once on the calling thread; otherwise a queue
/// with a thread of its own. A value, so a user's handle needs no wrapper.
struct Stream {
  void *handle = nullptr;
};

/// A point in a stream that other streams wait for.
struct Event {
  void *handle = nullptr;
};

/// Kernels of one image. CPU: pointers that a callback gave.
struct Module {
  void *handle = nullptr;
};

/// One kernel, by handle (CUfunction, or the address of a host function).
struct Function {
  void *handle = nullptr;
};

/// A recorded step that can be replayed.
struct Graph {
  void *handle = nullptr;
};

/// Arguments of an element kernel, in the order of abi.h.
struct ElementLaunch {
  dfa_rt_control_t *control;
  const void *segments;
  dfa_rt_segment_state_t *state;
  const float *derived;
  const dfa_rt_chunk_t *chunks;
  int64_t chunkBegin;
  int64_t chunkEnd;
  uint32_t partsPerChunkLog2;
  double *partials;
  int64_t partialStride;
  // Not arguments: the launch shape.
  uint32_t block;   // threads a block
  bool accumulates; // a warp handles one atom
};

/// Arguments of a control kernel, in the order of abi.h.
struct ControlLaunch {
  dfa_rt_control_t *control;
  const double *partials;
  int64_t partialStride;
  int64_t atoms;
  const double *groups;
  double *groupStats;
  int64_t groupCount;
  double *localSums;
  const double *gathered;
  int64_t ranks;
  const uint32_t *atomGroups;
};

/// Arguments of a segment kernel, in the order of abi.h.
struct SegmentLaunch {
  dfa_rt_control_t *control;
  const double *groups;
  const void *segments;
  dfa_rt_segment_state_t *state;
  float *derived;
  int64_t segmentBegin;
  int64_t segmentEnd;
  const double *partials;
  int64_t partialStride;
  double *segmentStats;
  int64_t segmentStatsStride;
  const double *groupStats;
};

/// Where kernels come from. CUDA: the bytes of a cubin, fatbin or PTX text.
/// CPU: a callback that finds a function by its name.
struct KernelSource {
  const void *image = nullptr;
  size_t imageBytes = 0;
  std::function<void *(const char *name)> resolve;
};

/// Memory that someone else manages, e.g. a framework's caching allocator.
struct AllocatorCallbacks {
  void *(*allocate)(void *context, size_t bytes, void *stream) = nullptr;
  void (*free)(void *context, void *memory, size_t bytes) = nullptr;
  void *context = nullptr;
};

/// What the device was asked to do so far; a test of "after prepare nothing is
/// allocated and nothing is loaded" compares two of these.
struct DeviceCounters {
  int64_t allocations = 0; // device, pinned memory, streams, events
  int64_t moduleLoads = 0;
  int64_t graphsInstantiated = 0;
  int64_t launches = 0;
};

class Device {
public:
  enum class Kind { Cpu, Cuda };

  virtual ~Device() = default;

  virtual Kind kind() const = 0;
  /// What a person calls it, such as "cpu (16 threads)".
  virtual std::string name() const = 0;
  virtual DeviceCounters counters() const = 0;

  /// Makes the device current on the calling thread for good, and lets that
  /// thread call the driver while others capture. For threads of our own.
  virtual Status makeCurrent() = 0;

  // Memory. Device memory is aligned to 256 bytes; host memory is pinned, and
  // is reachable from every stream.
  virtual Status allocate(size_t bytes, void **memory) = 0;
  virtual void free(void *memory, size_t bytes) = 0;
  virtual Status allocateHost(size_t bytes, void **memory) = 0;
  virtual void freeHost(void *memory) = 0;
  /// Routes `allocate` and `free` through the caller; call it before the first
  /// allocation.
  virtual void setAllocator(const AllocatorCallbacks &callbacks) = 0;

  // Streams and events.
  virtual Status createStream(Stream &stream) = 0;
  /// A stream whose kernels get room on the device before those of others that
  /// wait for it too. For transfers: a kernel of ours fills the whole device.
  virtual Status createUrgentStream(Stream &stream) = 0;
  virtual void destroyStream(Stream stream) = 0;
  virtual Status synchronize(Stream stream) = 0;
  virtual Status createEvent(Event &event) = 0;
  /// An event that also keeps the time at which it is reached. Never used in a
  /// normal run.
  virtual Status createTimer(Event &event) = 0;
  virtual void destroyEvent(Event event) = 0;
  virtual Status record(Event event, Stream stream) = 0;
  virtual Status wait(Stream stream, Event event) = 0;
  /// Blocks the host until the event's last record is reached.
  virtual Status synchronizeEvent(Event event) = 0;
  /// Milliseconds between the last records of two timers; blocks the host until
  /// both are reached.
  virtual Status elapsed(Event begin, Event end, double &milliseconds) = 0;

  // Work on a stream; none of these waits.
  virtual Status copy(void *target, const void *source, size_t bytes,
                      Stream stream) = 0;
  /// Copies `height` rows of `width` bytes between pitched memories.
  virtual Status copy2D(void *target, size_t targetPitch, const void *source,
                        size_t sourcePitch, size_t width, size_t height,
                        Stream stream) = 0;
  virtual Status zero(void *target, size_t bytes, Stream stream) = 0;
  /// Runs `task` on the host in stream order. For CPU transports; refused on
  /// CUDA, where a host call in a stream may not call the driver.
  virtual Status enqueueHost(std::function<Status()> task, Stream stream) = 0;

  // Kernels.
  virtual Status loadModule(const KernelSource &source, Module &module) = 0;
  virtual void unloadModule(Module module) = 0;
  virtual Status getFunction(Module module, const std::string &name,
                             Function &function) = 0;
  virtual Status launch(Function function, const ElementLaunch &arguments,
                        Stream stream) = 0;
  virtual Status launch(Function function, const ControlLaunch &arguments,
                        Stream stream) = 0;
  virtual Status launch(Function function, const SegmentLaunch &arguments,
                        Stream stream) = 0;

  // Graphs.
  /// Starts recording on a stream of the runtime's own.
  virtual Status beginCapture(Stream stream) = 0;
  /// Ends recording and makes the graph ready to launch. On failure nothing is
  /// left recording.
  virtual Status endCapture(Stream stream, Graph &graph) = 0;
  virtual Status launchGraph(Graph graph, Stream stream) = 0;
  virtual void destroyGraph(Graph graph) = 0;
  /// Identifies the recording that takes what is issued on `stream` now; 0 if
  /// there is none. Identifiers are never used twice.
  virtual Status captureId(Stream stream, uint64_t &id) = 0;
  /// Keeps `resource` alive as long as the graph that `stream` records now.
  virtual Status retainInCapture(Stream stream,
                                 std::shared_ptr<void> resource) = 0;
};

} // namespace dfa::rt

#endif // DFA_BASE_DEVICE_H
