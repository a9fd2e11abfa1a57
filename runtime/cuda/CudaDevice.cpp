// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA device. Every entry works in the primary context and in relaxed
// capture mode, and leaves the calling thread as it found it.

#include "cuda/CudaDevice.h"

#include "base/Log.h"
#include "cuda/Reaper.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

namespace dfa::rt {

using namespace cuda;

#define DFA_CUDA(call, ...)                                                    \
  driverStatus(api, api.call(__VA_ARGS__), #call, __FILE__, __LINE__)

namespace {

constexpr int64_t maxGrid = INT32_MAX;
constexpr int mostUrgent = INT32_MIN; // stands for the lowest there is

DevicePointer pointer(const void *memory) {
  return reinterpret_cast<DevicePointer>(memory);
}

class CudaDevice : public Device {
public:
  CudaDevice(const DriverApi &api, DeviceOrdinal ordinal, Handle context,
             std::string label)
      : api(api), ordinal(ordinal), context(context), label(std::move(label)) {}

  ~CudaDevice() override { drop(DFA_CUDA(primaryRelease, ordinal)); }

  Kind kind() const override { return Kind::Cuda; }
  std::string name() const override { return label; }
  DeviceCounters counters() const override {
    return {allocations.load(), moduleLoads.load(), graphs.load(),
            launches.load()};
  }

  Status makeCurrent() override {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    DFA_RT_TRY(DFA_CUDA(ctxSetCurrent, context));
    return DFA_CUDA(exchangeCaptureMode, &mode);
  }

  // === Memory ===============================================================

  Status allocate(size_t bytes, void **memory) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ++allocations;
    *memory = nullptr;
    if (callbacks.allocate) {
      *memory = callbacks.allocate(callbacks.context, bytes, nullptr);
      if (!*memory)
        return DFA_RT_ERROR(OutOfMemory, "the allocator gave no %zu bytes",
                            bytes);
      return Status();
    }
    DevicePointer address = 0;
    DFA_RT_TRY(DFA_CUDA(memAlloc, &address, bytes));
    *memory = reinterpret_cast<void *>(address);
    return Status();
  }

  void free(void *memory, size_t bytes) override {
    Scope scope(*this);
    if (callbacks.free)
      callbacks.free(callbacks.context, memory, bytes);
    else
      drop(DFA_CUDA(memFree, pointer(memory)));
  }

  Status allocateHost(size_t bytes, void **memory) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ++allocations;
    return DFA_CUDA(memHostAlloc, memory, bytes, 0);
  }

  void freeHost(void *memory) override {
    Scope scope(*this);
    drop(DFA_CUDA(memFreeHost, memory));
  }

  void setAllocator(const AllocatorCallbacks &value) override {
    callbacks = value;
  }

  // === Streams and events ===================================================

  Status createStream(Stream &stream) override { return make(stream, 0); }
  Status createUrgentStream(Stream &stream) override {
    return make(stream, mostUrgent);
  }
  void destroyStream(Stream stream) override {
    Scope scope(*this);
    drop(DFA_CUDA(streamDestroy, stream.handle));
  }
  Status synchronize(Stream stream) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    return DFA_CUDA(streamSynchronize, stream.handle);
  }

  Status createEvent(Event &event) override {
    return makeEvent(event, CU_EVENT_DISABLE_TIMING);
  }
  Status createTimer(Event &event) override {
    return makeEvent(event, CU_EVENT_DEFAULT);
  }
  void destroyEvent(Event event) override {
    Scope scope(*this);
    drop(DFA_CUDA(eventDestroy, event.handle));
  }
  Status record(Event event, Stream stream) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    return DFA_CUDA(eventRecord, event.handle, stream.handle);
  }
  Status wait(Stream stream, Event event) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    return DFA_CUDA(streamWaitEvent, stream.handle, event.handle, 0);
  }
  Status synchronizeEvent(Event event) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    return DFA_CUDA(eventSynchronize, event.handle);
  }
  Status elapsed(Event begin, Event end, double &milliseconds) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    for (Event event : {begin, end})
      DFA_RT_TRY(DFA_CUDA(eventSynchronize, event.handle));
    float taken = 0;
    DFA_RT_TRY(DFA_CUDA(eventElapsedTime, &taken, begin.handle, end.handle));
    milliseconds = taken;
    return Status();
  }

  // === Work on a stream =====================================================

  Status copy(void *target, const void *source, size_t bytes,
              Stream stream) override {
    if (bytes == 0)
      return Status();
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    return DFA_CUDA(memcpyAsync, pointer(target), pointer(source), bytes,
                    stream.handle);
  }

  Status copy2D(void *target, size_t targetPitch, const void *source,
                size_t sourcePitch, size_t width, size_t height,
                Stream stream) override {
    if (width == 0 || height == 0)
      return Status();
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    Copy2D copy = {};
    copy.sourceType = CU_MEMORYTYPE_UNIFIED;
    copy.sourceDevice = pointer(source);
    copy.sourcePitch = sourcePitch;
    copy.targetType = CU_MEMORYTYPE_UNIFIED;
    copy.targetDevice = pointer(target);
    copy.targetPitch = targetPitch;
    copy.width = width;
    copy.height = height;
    return DFA_CUDA(memcpy2DAsync, &copy, stream.handle);
  }

  Status zero(void *target, size_t bytes, Stream stream) override {
    if (bytes == 0)
      return Status();
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    if (pointer(target) % 4 == 0 && bytes % 4 == 0)
      return DFA_CUDA(memsetD32Async, pointer(target), 0, bytes / 4,
                      stream.handle);
    return DFA_CUDA(memsetD8Async, pointer(target), 0, bytes, stream.handle);
  }

  Status enqueueHost(std::function<Status()>, Stream) override {
    return DFA_RT_ERROR(Unsupported,
                        "host work in a CUDA stream: use a transport of the "
                        "device, such as nccl");
  }

  // === Kernels ==============================================================

  Status loadModule(const KernelSource &source, Module &module) override {
    if (!source.image || source.imageBytes == 0)
      return DFA_RT_ERROR(InvalidArgument,
                          "a CUDA device expects a cubin, fatbin or PTX image, "
                          "but got none");
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ++moduleLoads;
    // PTX must end with a zero byte, which text from a file does not.
    std::vector<char> image(source.imageBytes + 1);
    std::memcpy(image.data(), source.image, source.imageBytes);
    char messages[4096] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER,
                     CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {messages, reinterpret_cast<void *>(sizeof(messages))};
    Status status = DFA_CUDA(moduleLoadDataEx, &module.handle, image.data(), 2,
                             options, values);
    if (status.ok() || !messages[0])
      return status;
    return Status(status.code(), status.message() + ": " + messages,
                  status.file(), status.line());
  }

  void unloadModule(Module module) override {
    Scope scope(*this);
    drop(DFA_CUDA(moduleUnload, module.handle));
  }

  Status getFunction(Module module, const std::string &name,
                     Function &function) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    Status status = DFA_CUDA(moduleGetFunction, &function.handle, module.handle,
                             name.c_str());
    if (status.code() == Code::NotFound)
      return DFA_RT_ERROR(NotFound, "no kernel named '%s' in the image",
                          name.c_str());
    DFA_RT_TRY(status);
    // With lazy loading the code arrives at the first use, which must not be
    // inside a capture: asking for an attribute is a use.
    int threads = 0;
    return DFA_CUDA(funcGetAttribute, &threads,
                    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function.handle);
  }

  Status launch(Function function, const ElementLaunch &arguments,
                Stream stream) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ElementLaunch a = arguments;
    int64_t end = a.chunkEnd;
    // What one grid may hold; larger tables take several launches.
    int64_t warps = std::max<uint32_t>(1, a.block / 32);
    // A warp handles one atom, or one part of a chunk.
    uint32_t log2 = a.accumulates ? 0 : a.partsPerChunkLog2;
    int64_t most = (maxGrid * warps) >> log2;
    for (; a.chunkBegin < end; a.chunkBegin = a.chunkEnd) {
      a.chunkEnd = std::min(end, a.chunkBegin + most);
      int64_t rows = a.chunkEnd - a.chunkBegin;
      int64_t grid = ((rows << log2) + warps - 1) / warps;
      void *parameters[] = {
          &a.control,  &a.segments,     &a.state,    &a.derived,
          &a.chunks,   &a.chunkBegin,   &a.chunkEnd, &a.partsPerChunkLog2,
          &a.partials, &a.partialStride};
      DFA_RT_TRY(start(function, grid, a.block, parameters, stream));
    }
    return Status();
  }

  Status launch(Function function, const ControlLaunch &arguments,
                Stream stream) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ControlLaunch a = arguments;
    void *parameters[] = {&a.control,    &a.partials,  &a.partialStride,
                          &a.atoms,      &a.groups,    &a.groupStats,
                          &a.groupCount, &a.localSums, &a.gathered,
                          &a.ranks,      &a.atomGroups};
    return start(function, 1, DFA_RT_CONTROL_BLOCK, parameters, stream);
  }

  Status launch(Function function, const SegmentLaunch &arguments,
                Stream stream) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    SegmentLaunch a = arguments;
    int64_t end = a.segmentEnd;
    int64_t most = maxGrid * DFA_RT_SEGMENT_BLOCK;
    for (; a.segmentBegin < end; a.segmentBegin = a.segmentEnd) {
      a.segmentEnd = std::min(end, a.segmentBegin + most);
      int64_t grid =
          (a.segmentEnd - a.segmentBegin + DFA_RT_SEGMENT_BLOCK - 1) /
          DFA_RT_SEGMENT_BLOCK;
      void *parameters[] = {&a.control,
                            &a.groups,
                            &a.segments,
                            &a.state,
                            &a.derived,
                            &a.segmentBegin,
                            &a.segmentEnd,
                            &a.partials,
                            &a.partialStride,
                            &a.segmentStats,
                            &a.segmentStatsStride,
                            &a.groupStats};
      DFA_RT_TRY(
          start(function, grid, DFA_RT_SEGMENT_BLOCK, parameters, stream));
    }
    return Status();
  }

  // === Graphs ===============================================================

  Status beginCapture(Stream stream) override {
    if (!stream.handle)
      return DFA_RT_ERROR(InvalidArgument,
                          "a recording expects a stream of its own");
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    return DFA_CUDA(streamBeginCapture, stream.handle,
                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  }

  Status endCapture(Stream stream, Graph &graph) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    Handle recorded = nullptr;
    DFA_RT_TRY(DFA_CUDA(streamEndCapture, stream.handle, &recorded));
    ++graphs;
    Handle executable = nullptr;
    Status status = DFA_CUDA(graphInstantiate, &executable, recorded, 0);
    drop(DFA_CUDA(graphDestroy, recorded));
    DFA_RT_TRY(status);
    // So that the first launch is not slower than the others.
    status = DFA_CUDA(graphUpload, executable, stream.handle);
    if (status.ok())
      graph.handle = executable;
    else
      drop(DFA_CUDA(graphExecDestroy, executable));
    return status;
  }

  Status launchGraph(Graph graph, Stream stream) override {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ++launches;
    return DFA_CUDA(graphLaunch, graph.handle, stream.handle);
  }

  void destroyGraph(Graph graph) override {
    Scope scope(*this);
    drop(DFA_CUDA(graphExecDestroy, graph.handle));
  }

  Status captureId(Stream stream, uint64_t &id) override {
    Handle graph = nullptr;
    return captureInfo(stream, id, graph);
  }

  Status retainInCapture(Stream stream,
                         std::shared_ptr<void> resource) override {
    uint64_t id = 0;
    Handle graph = nullptr;
    DFA_RT_TRY(captureInfo(stream, id, graph));
    if (!id)
      return DFA_RT_ERROR(FailedPrecondition, "the stream does not record");
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    void *held = reaper.hold(std::move(resource));
    Handle object = nullptr;
    Status status = DFA_CUDA(userObjectCreate, &object, held, Reaper::post, 1,
                             CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (!status.ok()) {
      Reaper::post(held);
      return status;
    }
    status = DFA_CUDA(graphRetainUserObject, graph, object, 1,
                      CU_GRAPH_USER_OBJECT_MOVE);
    if (!status.ok())
      drop(DFA_CUDA(userObjectRelease, object, 1));
    return status;
  }

private:
  // The primary context and relaxed capture mode, for the length of one call.
  // Relaxed, because a query from a thread in the default mode would end a
  // capture that another thread or library has going.
  class Scope {
  public:
    explicit Scope(CudaDevice &device) : api(device.api) {
      status = DFA_CUDA(ctxPush, device.context);
      if (!status.ok())
        return;
      pushed = true;
      status = DFA_CUDA(exchangeCaptureMode, &mode);
      exchanged = status.ok();
    }
    ~Scope() {
      if (exchanged)
        drop(DFA_CUDA(exchangeCaptureMode, &mode));
      Handle popped = nullptr;
      if (pushed)
        drop(DFA_CUDA(ctxPop, &popped));
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    Status status;

  private:
    const DriverApi &api;
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool pushed = false;
    bool exchanged = false;
  };

  // For calls that cannot report: destructors of handles.
  static void drop(const Status &status) {
    if (!status.ok())
      DFA_RT_LOG(Warn, "%s", status.str().c_str());
  }

  Status make(Stream &stream, int priority) {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ++allocations;
    return DFA_CUDA(streamCreate, &stream.handle, CU_STREAM_NON_BLOCKING,
                    priority);
  }

  Status makeEvent(Event &event, unsigned flags) {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    ++allocations;
    return DFA_CUDA(eventCreate, &event.handle, flags);
  }

  Status captureInfo(Stream stream, uint64_t &id, Handle &graph) {
    Scope scope(*this);
    DFA_RT_TRY(scope.status);
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    id = 0;
    DFA_RT_TRY(DFA_CUDA(streamGetCaptureInfo, stream.handle, &state, &id,
                        &graph, nullptr, nullptr));
    if (state == CU_STREAM_CAPTURE_STATUS_NONE)
      id = 0;
    if (state == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
      return DFA_RT_ERROR(DeviceError,
                          "the capture on this stream was invalidated by an "
                          "earlier call that cannot be captured");
    return Status();
  }

  Status start(Function function, int64_t grid, uint32_t block,
               void **parameters, Stream stream) {
    ++launches;
    return DFA_CUDA(launchKernel, function.handle, static_cast<unsigned>(grid),
                    1, 1, block, 1, 1, 0, stream.handle, parameters, nullptr);
  }

  const DriverApi &api;
  DeviceOrdinal ordinal;
  Handle context;
  std::string label;
  AllocatorCallbacks callbacks;
  Reaper reaper;
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> moduleLoads{0};
  std::atomic<int64_t> graphs{0};
  std::atomic<int64_t> launches{0};
};

} // namespace

Result<std::unique_ptr<Device>> createCudaDevice(const DriverApi &api,
                                                 int ordinal) {
  int count = 0;
  DFA_RT_TRY(DFA_CUDA(deviceGetCount, &count));
  if (ordinal < 0 || ordinal >= count)
    return DFA_RT_ERROR(NotFound, "expects a CUDA device below %d, but got %d",
                        count, ordinal);
  DeviceOrdinal device = 0;
  DFA_RT_TRY(DFA_CUDA(deviceGet, &device, ordinal));
  char name[256] = "";
  DFA_RT_TRY(DFA_CUDA(deviceGetName, name, int(sizeof(name)) - 1, device));
  int major = 0;
  int minor = 0;
  DFA_RT_TRY(DFA_CUDA(deviceGetAttribute, &major,
                      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  DFA_RT_TRY(DFA_CUDA(deviceGetAttribute, &minor,
                      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  Handle context = nullptr;
  DFA_RT_TRY(DFA_CUDA(primaryRetain, &context, device));
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(
      api, device, context,
      format("cuda:%d (%s, sm_%d%d)", ordinal, name, major, minor)));
}

#undef DFA_CUDA

} // namespace dfa::rt
