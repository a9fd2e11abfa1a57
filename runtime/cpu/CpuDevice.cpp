// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU device. Work on the null stream runs at once, without allocation;
// work on a created stream runs on that stream's thread.

#include "cpu/CpuDevice.h"

#include "cpu/CpuStream.h"
#include "cpu/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dfa::rt {

namespace {

using ElementKernel = void (*)(dfa_rt_control_t *, const void *,
                               dfa_rt_segment_state_t *, const float *,
                               const dfa_rt_chunk_t *, int64_t, int64_t,
                               uint32_t, double *, int64_t);
using ControlKernel = void (*)(dfa_rt_control_t *, const double *, int64_t,
                               int64_t, const double *, double *, int64_t,
                               double *, const double *, int64_t,
                               const uint32_t *);
using SegmentKernel = void (*)(dfa_rt_control_t *, const double *, const void *,
                               dfa_rt_segment_state_t *, float *, int64_t,
                               int64_t, const double *, int64_t, double *,
                               int64_t, const double *);

struct CpuModule {
  std::function<void *(const char *)> resolve;
};

// What the pool's threads need of one launch.
template <typename Arguments> struct PoolTask {
  void *function;
  const Arguments *arguments;
};

void elementRange(void *context, int64_t begin, int64_t end) {
  const PoolTask<ElementLaunch> &task =
      *static_cast<PoolTask<ElementLaunch> *>(context);
  const ElementLaunch &a = *task.arguments;
  reinterpret_cast<ElementKernel>(task.function)(
      a.control, a.segments, a.state, a.derived, a.chunks, begin, end,
      a.partsPerChunkLog2, a.partials, a.partialStride);
}

void segmentRange(void *context, int64_t begin, int64_t end) {
  const PoolTask<SegmentLaunch> &task =
      *static_cast<PoolTask<SegmentLaunch> *>(context);
  const SegmentLaunch &a = *task.arguments;
  reinterpret_cast<SegmentKernel>(task.function)(
      a.control, a.groups, a.segments, a.state, a.derived, begin, end,
      a.partials, a.partialStride, a.segmentStats, a.segmentStatsStride,
      a.groupStats);
}

class CpuDevice : public Device {
public:
  explicit CpuDevice(int threads) : pool(threads) {}

  Kind kind() const override { return Kind::Cpu; }
  std::string name() const override {
    return format("cpu (%d thread%s)", pool.size(),
                  pool.size() == 1 ? "" : "s");
  }
  DeviceCounters counters() const override {
    return {allocations.load(), moduleLoads.load(), graphs.load(),
            launches.load()};
  }

  Status makeCurrent() override { return Status(); }

  Status allocate(size_t bytes, void **memory) override {
    if (!callbacks.allocate)
      return allocateHost(bytes, memory);
    ++allocations;
    *memory = callbacks.allocate(callbacks.context, bytes, nullptr);
    if (!*memory && bytes)
      return DFA_RT_ERROR(OutOfMemory, "the allocator gave no %zu bytes",
                          bytes);
    return Status();
  }

  void free(void *memory, size_t bytes) override {
    if (callbacks.free)
      callbacks.free(callbacks.context, memory, bytes);
    else
      std::free(memory);
  }

  Status allocateHost(size_t bytes, void **memory) override {
    ++allocations;
    *memory = nullptr;
    if (bytes > SIZE_MAX - 255)
      return DFA_RT_ERROR(OutOfMemory, "cannot allocate %zu bytes", bytes);
    // aligned_alloc wants a multiple of the alignment.
    size_t rounded = std::max<size_t>(256, (bytes + 255) / 256 * 256);
    *memory = std::aligned_alloc(256, rounded);
    if (!*memory)
      return DFA_RT_ERROR(OutOfMemory, "cannot allocate %zu bytes", bytes);
    return Status();
  }

  void freeHost(void *memory) override { std::free(memory); }

  void setAllocator(const AllocatorCallbacks &value) override {
    callbacks = value;
  }

  Status createStream(Stream &stream) override {
    ++allocations;
    stream.handle = new CpuStream();
    return Status();
  }
  // Its threads are the system's to order.
  Status createUrgentStream(Stream &stream) override {
    return createStream(stream);
  }
  void destroyStream(Stream stream) override { delete queue(stream); }
  Status synchronize(Stream stream) override {
    return stream.handle ? queue(stream)->synchronize() : Status();
  }

  Status createEvent(Event &event) override {
    ++allocations;
    event.handle = new SharedEvent(std::make_shared<CpuEvent>());
    return Status();
  }
  Status createTimer(Event &event) override {
    ++allocations;
    event.handle = new SharedEvent(std::make_shared<CpuEvent>(/*timed=*/true));
    return Status();
  }
  void destroyEvent(Event event) override {
    delete static_cast<SharedEvent *>(event.handle);
  }

  Status record(Event event, Stream stream) override {
    CpuEvent *target = counter(event);
    CpuStream *from = queue(stream);
    target->captured = from && from->graph ? from->graph->id : 0;
    if (target->captured)
      return Status(); // order in the graph is the order of issue
    uint64_t number = target->announce();
    if (!from) {
      target->complete(number, Status());
      return Status();
    }
    return from->push(
        [target = shared(event), number, from] {
          target->complete(number, from->state());
          return Status();
        },
        /*always=*/true);
  }

  Status wait(Stream stream, Event event) override {
    CpuEvent *source = counter(event);
    CpuStream *to = queue(stream);
    if (source->captured) {
      CpuGraph *graph = openGraph(source->captured);
      if (!graph)
        return DFA_RT_ERROR(FailedPrecondition,
                            "the event was recorded into a recording that "
                            "has ended");
      return join(to, graph);
    }
    if (to && to->graph && source->announced() > 0)
      return DFA_RT_ERROR(FailedPrecondition,
                          "a recording waits for an event from before it");
    uint64_t number = source->announced();
    if (!to)
      return source->await(number);
    return to->push(
        [source = shared(event), number] { return source->await(number); });
  }

  Status synchronizeEvent(Event event) override {
    CpuEvent *source = counter(event);
    return source->captured ? Status() : source->await(source->announced());
  }

  Status elapsed(Event begin, Event end, double &milliseconds) override {
    for (Event event : {begin, end}) {
      CpuEvent *timer = counter(event);
      if (timer->captured || timer->announced() == 0)
        return DFA_RT_ERROR(FailedPrecondition,
                            "expects timers that were recorded, and not into "
                            "a recording");
      DFA_RT_TRY(timer->await(timer->announced()));
    }
    milliseconds = std::chrono::duration<double, std::milli>(
                       counter(end)->reachedAt() - counter(begin)->reachedAt())
                       .count();
    return Status();
  }

  Status copy(void *target, const void *source, size_t bytes,
              Stream stream) override {
    if (bytes == 0)
      return Status();
    if (!stream.handle) {
      std::memmove(target, source, bytes);
      return Status();
    }
    return queue(stream)->push([=] {
      std::memmove(target, source, bytes);
      return Status();
    });
  }

  Status copy2D(void *target, size_t targetPitch, const void *source,
                size_t sourcePitch, size_t width, size_t height,
                Stream stream) override {
    if (!stream.handle) {
      copyRows(target, targetPitch, source, sourcePitch, width, height);
      return Status();
    }
    return queue(stream)->push([=] {
      copyRows(target, targetPitch, source, sourcePitch, width, height);
      return Status();
    });
  }

  Status zero(void *target, size_t bytes, Stream stream) override {
    if (bytes == 0)
      return Status();
    if (!stream.handle) {
      std::memset(target, 0, bytes);
      return Status();
    }
    return queue(stream)->push([=] {
      std::memset(target, 0, bytes);
      return Status();
    });
  }

  Status enqueueHost(std::function<Status()> task, Stream stream) override {
    return stream.handle ? queue(stream)->push(std::move(task)) : task();
  }

  Status loadModule(const KernelSource &source, Module &module) override {
    ++moduleLoads;
    if (!source.resolve)
      return DFA_RT_ERROR(InvalidArgument,
                          "a cpu device expects a callback that finds kernels "
                          "by name, but got an image");
    module.handle = new CpuModule{source.resolve};
    return Status();
  }
  void unloadModule(Module module) override {
    delete static_cast<CpuModule *>(module.handle);
  }
  Status getFunction(Module module, const std::string &name,
                     Function &function) override {
    function.handle =
        static_cast<CpuModule *>(module.handle)->resolve(name.c_str());
    if (!function.handle)
      return DFA_RT_ERROR(NotFound, "no kernel named '%s'", name.c_str());
    return Status();
  }

  Status launch(Function function, const ElementLaunch &arguments,
                Stream stream) override {
    return start(function, arguments, stream);
  }
  Status launch(Function function, const ControlLaunch &arguments,
                Stream stream) override {
    return start(function, arguments, stream);
  }
  Status launch(Function function, const SegmentLaunch &arguments,
                Stream stream) override {
    return start(function, arguments, stream);
  }

  Status beginCapture(Stream stream) override {
    if (!stream.handle)
      return DFA_RT_ERROR(InvalidArgument,
                          "a recording expects a stream of its own");
    if (queue(stream)->graph)
      return DFA_RT_ERROR(FailedPrecondition, "the stream records already");
    CpuGraph *graph = new CpuGraph();
    {
      std::lock_guard<std::mutex> lock(openMutex);
      graph->id = ++lastGraph;
      openGraphs.push_back(graph);
    }
    return join(queue(stream), graph);
  }

  Status endCapture(Stream stream, Graph &graph) override {
    CpuGraph *recorded = queue(stream)->graph;
    if (!recorded)
      return DFA_RT_ERROR(FailedPrecondition, "the stream does not record");
    for (CpuStream *member : recorded->streams)
      member->graph = nullptr;
    recorded->streams.clear();
    {
      std::lock_guard<std::mutex> lock(openMutex);
      openGraphs.erase(
          std::find(openGraphs.begin(), openGraphs.end(), recorded));
    }
    ++graphs;
    graph.handle = recorded;
    return Status();
  }

  Status launchGraph(Graph graph, Stream stream) override {
    CpuGraph *recorded = static_cast<CpuGraph *>(graph.handle);
    ++launches;
    if (stream.handle)
      return queue(stream)->push([=] { return replay(*recorded); });
    return replay(*recorded);
  }

  void destroyGraph(Graph graph) override {
    delete static_cast<CpuGraph *>(graph.handle);
  }

  Status captureId(Stream stream, uint64_t &id) override {
    CpuStream *from = queue(stream);
    id = from && from->graph ? from->graph->id : 0;
    return Status();
  }

  Status retainInCapture(Stream stream,
                         std::shared_ptr<void> resource) override {
    if (!stream.handle || !queue(stream)->graph)
      return DFA_RT_ERROR(FailedPrecondition, "the stream does not record");
    queue(stream)->graph->retained.push_back(std::move(resource));
    return Status();
  }

private:
  static CpuStream *queue(Stream stream) {
    return static_cast<CpuStream *>(stream.handle);
  }
  /// Tasks that are queued keep the events that they use: a failed step is
  /// taken down without waiting for them.
  using SharedEvent = std::shared_ptr<CpuEvent>;
  static SharedEvent shared(Event event) {
    return *static_cast<SharedEvent *>(event.handle);
  }
  static CpuEvent *counter(Event event) { return shared(event).get(); }

  // Makes a stream record into `graph`, as a wait for one of its events does.
  static Status join(CpuStream *stream, CpuGraph *graph) {
    if (!stream)
      return DFA_RT_ERROR(FailedPrecondition,
                          "the immediate stream cannot be recorded");
    if (stream->graph == graph)
      return Status();
    if (stream->graph)
      return DFA_RT_ERROR(FailedPrecondition,
                          "two recordings cannot be joined");
    stream->graph = graph;
    graph->streams.push_back(stream);
    return Status();
  }

  // The recording of that number, or null once it has ended.
  CpuGraph *openGraph(uint64_t id) {
    std::lock_guard<std::mutex> lock(openMutex);
    for (CpuGraph *graph : openGraphs)
      if (graph->id == id)
        return graph;
    return nullptr;
  }

  static Status replay(CpuGraph &graph) {
    for (CpuTask &task : graph.tasks)
      DFA_RT_TRY(task());
    return Status();
  }

  static void copyRows(void *target, size_t targetPitch, const void *source,
                       size_t sourcePitch, size_t width, size_t height) {
    for (size_t row = 0; row < height; ++row)
      std::memcpy(static_cast<char *>(target) + row * targetPitch,
                  static_cast<const char *>(source) + row * sourcePitch, width);
  }

  template <typename Arguments>
  Status start(Function function, const Arguments &arguments, Stream stream) {
    ++launches;
    if (!stream.handle) {
      execute(function, arguments);
      return Status();
    }
    return queue(stream)->push([this, function, arguments] {
      execute(function, arguments);
      return Status();
    });
  }

  void execute(Function function, const ElementLaunch &arguments) {
    PoolTask<ElementLaunch> task{function.handle, &arguments};
    pool.run(arguments.chunkBegin, arguments.chunkEnd, elementRange, &task);
  }
  void execute(Function function, const ControlLaunch &a) {
    reinterpret_cast<ControlKernel>(function.handle)(
        a.control, a.partials, a.partialStride, a.atoms, a.groups, a.groupStats,
        a.groupCount, a.localSums, a.gathered, a.ranks, a.atomGroups);
  }
  void execute(Function function, const SegmentLaunch &arguments) {
    PoolTask<SegmentLaunch> task{function.handle, &arguments};
    // A segment is little work unless it combines many atoms.
    if (arguments.segmentEnd - arguments.segmentBegin < 256)
      segmentRange(&task, arguments.segmentBegin, arguments.segmentEnd);
    else
      pool.run(arguments.segmentBegin, arguments.segmentEnd, segmentRange,
               &task);
  }

  ThreadPool pool;
  AllocatorCallbacks callbacks;
  std::mutex openMutex; // guards the next two
  std::vector<CpuGraph *> openGraphs;
  uint64_t lastGraph = 0;
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> moduleLoads{0};
  std::atomic<int64_t> graphs{0};
  std::atomic<int64_t> launches{0};
};

} // namespace

std::unique_ptr<Device> createCpuDevice(int threads) {
  return std::make_unique<CpuDevice>(threads);
}

} // namespace dfa::rt
