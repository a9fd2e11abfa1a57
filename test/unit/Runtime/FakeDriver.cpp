// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the fake driver.

#include "FakeDriver.h"

#include "dfa-rt/abi.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace dfa::rt::test {

using namespace cuda;

FakeDriver *FakeDriver::current = nullptr;
thread_local int FakeDriver::captureMode = 0;
thread_local int FakeDriver::contextDepth = 0;

int FakeDriver::enter(const char *call, bool needsContext) {
  calls.push_back(call);
  if (needsContext && contextDepth == 0)
    violations.push_back(std::string(call) + " without a context");
  if (needsContext && captureMode != CU_STREAM_CAPTURE_MODE_RELAXED)
    violations.push_back(std::string(call) + " in a strict capture mode");
  std::map<std::string, int>::node_type failure = failures.extract(call);
  return failure ? failure.mapped() : CUDA_SUCCESS;
}

void FakeDriver::issue(FakeStream *stream, std::function<void()> work) {
  if (stream->capture)
    stream->capture->nodes.push_back(std::move(work));
  else
    work();
}

static FakeDriver &fake() { return *FakeDriver::current; }

static FakeStream *asStream(Handle handle) {
  return handle ? static_cast<FakeStream *>(handle) : &fake().legacy;
}

#define DFA_FAKE(...)                                                          \
  std::lock_guard<std::recursive_mutex> guard(fake().mutex);                   \
  if (int code = fake().enter(__VA_ARGS__))                                    \
    return code;

// === Launches ===============================================================

template <typename T> static T word(const std::vector<int64_t> &words, int at) {
  T value;
  std::memcpy(&value, &words[at], sizeof(value));
  return value;
}

// Parameters of the three signatures; the fourth letter is the kernel's kind.
static void execute(void *function, const std::vector<int64_t> &w) {
  using P = void *;
  if (w.size() == 10 && w[7] >= 0 && w[7] < 64 && w[5] <= w[6]) {
    using Element =
        void (*)(P, P, P, P, P, int64_t, int64_t, uint32_t, P, int64_t);
    reinterpret_cast<Element>(function)(
        word<P>(w, 0), word<P>(w, 1), word<P>(w, 2), word<P>(w, 3),
        word<P>(w, 4), w[5], w[6], static_cast<uint32_t>(w[7]), word<P>(w, 8),
        w[9]);
    return;
  }
  if (w.size() == 12) {
    using Segment =
        void (*)(P, P, P, P, P, int64_t, int64_t, P, int64_t, P, int64_t, P);
    reinterpret_cast<Segment>(function)(
        word<P>(w, 0), word<P>(w, 1), word<P>(w, 2), word<P>(w, 3),
        word<P>(w, 4), w[5], w[6], word<P>(w, 7), w[8], word<P>(w, 9), w[10],
        word<P>(w, 11));
    return;
  }
  using Control =
      void (*)(P, P, int64_t, int64_t, P, P, int64_t, P, P, int64_t);
  reinterpret_cast<Control>(function)(word<P>(w, 0), word<P>(w, 1), w[2], w[3],
                                      word<P>(w, 4), word<P>(w, 5), w[6],
                                      word<P>(w, 7), word<P>(w, 8), w[9]);
}

static ResultCode launchKernel(Handle function, unsigned gridX, unsigned gridY,
                               unsigned gridZ, unsigned blockX, unsigned blockY,
                               unsigned blockZ, unsigned shared, Handle stream,
                               void **parameters, void **extra) {
  DFA_FAKE("launchKernel");
  if (gridX == 0 || gridX > 2147483647u || gridY != 1 || gridZ != 1 ||
      blockX == 0 || blockX > 1024 || blockY != 1 || blockZ != 1 || shared ||
      extra)
    fake().violations.push_back("bad launch shape");
  FakeLaunch launch{fake().functions[function], gridX, blockX, {}};
  bool segment = blockX == DFA_RT_SEGMENT_BLOCK &&
                 launch.kernel.find("prologue") != std::string::npos;
  int count = segment ? 12 : 10;
  bool element = !segment && blockX != DFA_RT_CONTROL_BLOCK;
  for (int index = 0; index < count; ++index) {
    int64_t value = 0;
    // The only parameter of four bytes.
    size_t bytes = element && index == 7 ? 4 : 8;
    std::memcpy(&value, parameters[index], bytes);
    launch.words.push_back(value);
  }
  fake().launches.push_back(launch);
  fake().clock += 1;
  if (fake().execute)
    fake().issue(asStream(stream), [=] { execute(function, launch.words); });
  return CUDA_SUCCESS;
}

// === Context, device, errors ================================================

static int primaryContext; // its address stands for the context
static int otherContext;

static ResultCode ctxPush(Handle context) {
  DFA_FAKE("ctxPush", false)
  if (context != &primaryContext)
    fake().violations.push_back("pushes an unknown context");
  ++fake().contextDepth;
  return CUDA_SUCCESS;
}

static ResultCode ctxPop(Handle *context) {
  DFA_FAKE("ctxPop", false)
  *context = --fake().contextDepth ? &primaryContext : &otherContext;
  return CUDA_SUCCESS;
}

static ResultCode exchangeCaptureMode(int *mode) {
  std::swap(*mode, fake().captureMode);
  return CUDA_SUCCESS;
}

static ResultCode getErrorName(ResultCode code, const char **name) {
  *name = code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                           : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}

static ResultCode getErrorString(ResultCode code, const char **text) {
  *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "fake failure";
  return CUDA_SUCCESS;
}

static void fillDevice(DriverApi &api) {
  api.init = [](unsigned) { return 0; };
  api.driverGetVersion = [](int *version) {
    *version = 13000;
    return 0;
  };
  api.getErrorName = getErrorName;
  api.getErrorString = getErrorString;
  api.deviceGetCount = [](int *count) {
    *count = 2;
    return 0;
  };
  api.deviceGet = [](DeviceOrdinal *device, int ordinal) {
    *device = ordinal;
    return 0;
  };
  api.deviceGetName = [](char *name, int, DeviceOrdinal) {
    std::strcpy(name, "Fake H1");
    return 0;
  };
  api.deviceGetAttribute = [](int *value, int attribute, DeviceOrdinal) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return 0;
  };
  api.primaryRetain = [](Handle *context, DeviceOrdinal) {
    *context = &primaryContext;
    ++fake().retained;
    return 0;
  };
  api.primaryRelease = [](DeviceOrdinal) {
    --fake().retained;
    return 0;
  };
  api.ctxPush = ctxPush;
  api.ctxPop = ctxPop;
  api.ctxSetCurrent = [](Handle context) {
    if (context != &primaryContext)
      fake().violations.push_back("sets an unknown context");
    fake().calls.push_back("ctxSetCurrent");
    return 0;
  };
  api.exchangeCaptureMode = exchangeCaptureMode;
}

// === Memory =================================================================

static ResultCode memAlloc(DevicePointer *memory, size_t bytes) {
  DFA_FAKE("memAlloc");
  void *block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(block, 0xcd, bytes); // uninitialised memory is not zero
  fake().deviceMemory.insert(block);
  *memory = reinterpret_cast<DevicePointer>(block);
  return CUDA_SUCCESS;
}

static ResultCode memFree(DevicePointer memory) {
  DFA_FAKE("memFree");
  void *block = reinterpret_cast<void *>(memory);
  if (!fake().deviceMemory.erase(block))
    fake().violations.push_back("frees unknown device memory");
  std::free(block);
  return CUDA_SUCCESS;
}

static ResultCode memHostAlloc(void **memory, size_t bytes, unsigned) {
  DFA_FAKE("memHostAlloc");
  *memory = std::malloc(bytes);
  fake().hostMemory.insert(*memory);
  return CUDA_SUCCESS;
}

static ResultCode memFreeHost(void *memory) {
  DFA_FAKE("memFreeHost");
  if (!fake().hostMemory.erase(memory))
    fake().violations.push_back("frees unknown host memory");
  std::free(memory);
  return CUDA_SUCCESS;
}

static ResultCode memcpyAsync(DevicePointer target, DevicePointer source,
                              size_t bytes, Handle stream) {
  DFA_FAKE("memcpyAsync");
  fake().clock += 0.5;
  fake().issue(asStream(stream), [=] {
    std::memmove(reinterpret_cast<void *>(target),
                 reinterpret_cast<const void *>(source), bytes);
  });
  return CUDA_SUCCESS;
}

static ResultCode memcpy2DAsync(const Copy2D *copy, Handle stream) {
  DFA_FAKE("memcpy2DAsync");
  if (copy->sourceType != CU_MEMORYTYPE_UNIFIED ||
      copy->targetType != CU_MEMORYTYPE_UNIFIED ||
      copy->width > copy->sourcePitch || copy->width > copy->targetPitch)
    fake().violations.push_back("bad 2D copy");
  Copy2D it = *copy;
  fake().issue(asStream(stream), [it] {
    for (size_t row = 0; row < it.height; ++row)
      std::memcpy(
          reinterpret_cast<char *>(it.targetDevice) + row * it.targetPitch,
          reinterpret_cast<char *>(it.sourceDevice) + row * it.sourcePitch,
          it.width);
  });
  return CUDA_SUCCESS;
}

static void fillMemory(DriverApi &api) {
  api.memAlloc = memAlloc;
  api.memFree = memFree;
  api.memHostAlloc = memHostAlloc;
  api.memFreeHost = memFreeHost;
  api.memcpyAsync = memcpyAsync;
  api.memcpy2DAsync = memcpy2DAsync;
  api.memsetD8Async = [](DevicePointer target, unsigned char value,
                         size_t bytes, Handle stream) {
    DFA_FAKE("memsetD8Async");
    fake().issue(asStream(stream), [=] {
      std::memset(reinterpret_cast<void *>(target), value, bytes);
    });
    return 0;
  };
  api.memsetD32Async = [](DevicePointer target, unsigned value, size_t count,
                          Handle stream) {
    DFA_FAKE("memsetD32Async");
    if (target % 4)
      fake().violations.push_back("unaligned 32-bit memset");
    fake().issue(asStream(stream), [=] {
      std::fill_n(reinterpret_cast<unsigned *>(target), count, value);
    });
    return 0;
  };
}

// === Streams, events, modules ===============================================

static ResultCode streamWaitEvent(Handle streamHandle, Handle eventHandle,
                                  unsigned) {
  DFA_FAKE("streamWaitEvent");
  FakeStream *stream = asStream(streamHandle);
  FakeEvent *event = static_cast<FakeEvent *>(eventHandle);
  if (event->capture && !stream->capture)
    stream->capture = event->capture;
  if (stream->capture && event->capture != stream->capture) {
    stream->invalidated = true;
    return 905; // isolation
  }
  return CUDA_SUCCESS;
}

static void fillStreams(DriverApi &api) {
  api.streamCreate = [](Handle *stream, unsigned flags, int priority) {
    DFA_FAKE("streamCreate");
    ++fake().liveHandles;
    *stream = new FakeStream{flags, nullptr, false, false, priority};
    return 0;
  };
  api.streamDestroy = [](Handle stream) {
    DFA_FAKE("streamDestroy");
    --fake().liveHandles;
    FakeStream *gone = static_cast<FakeStream *>(stream);
    if (gone->origin) // an injected failure left its capture open
      delete gone->capture;
    delete gone;
    return 0;
  };
  api.streamSynchronize = [](Handle) {
    DFA_FAKE("streamSynchronize");
    return 0;
  };
  api.streamWaitEvent = streamWaitEvent;
  api.eventCreate = [](Handle *event, unsigned flags) {
    DFA_FAKE("eventCreate");
    if (flags != CU_EVENT_DISABLE_TIMING && flags != CU_EVENT_DEFAULT)
      fake().violations.push_back("event with unknown flags");
    ++fake().liveHandles;
    *event = new FakeEvent{nullptr, 0, flags == CU_EVENT_DEFAULT, -1};
    fake().timers += flags == CU_EVENT_DEFAULT;
    return 0;
  };
  api.eventDestroy = [](Handle event) {
    DFA_FAKE("eventDestroy");
    --fake().liveHandles;
    delete static_cast<FakeEvent *>(event);
    return 0;
  };
  api.eventRecord = [](Handle event, Handle stream) {
    DFA_FAKE("eventRecord");
    FakeEvent *it = static_cast<FakeEvent *>(event);
    it->capture = asStream(stream)->capture;
    if (it->timed)
      it->time = fake().clock;
    return 0;
  };
  api.eventElapsedTime = [](float *taken, Handle begin, Handle end) {
    DFA_FAKE("eventElapsedTime");
    double from = static_cast<FakeEvent *>(begin)->time;
    double to = static_cast<FakeEvent *>(end)->time;
    *taken = static_cast<float>(to - from);
    return from < 0 || to < 0 ? 400 : 0; // invalid handle
  };
  api.eventSynchronize = [](Handle) {
    DFA_FAKE("eventSynchronize");
    return 0;
  };
  api.moduleLoadDataEx = [](Handle *module, const void *image, unsigned count,
                            int *options, void **values) {
    int code = fake().enter("moduleLoadDataEx");
    for (unsigned index = 0; index < count; ++index)
      if (options[index] == CU_JIT_ERROR_LOG_BUFFER)
        std::strcpy(static_cast<char *>(values[index]), fake().jitLog.c_str());
    if (code)
      return code;
    fake().image = static_cast<const char *>(image);
    ++fake().liveHandles;
    *module = &fake();
    return 0;
  };
  api.moduleUnload = [](Handle) {
    DFA_FAKE("moduleUnload");
    --fake().liveHandles;
    return 0;
  };
  api.moduleGetFunction = [](Handle *function, Handle, const char *name) {
    DFA_FAKE("moduleGetFunction");
    *function = fake().kernels(name);
    if (!*function)
      return int(CUDA_ERROR_NOT_FOUND);
    fake().functions[*function] = name;
    return 0;
  };
  api.funcGetAttribute = [](int *value, int, Handle) {
    DFA_FAKE("funcGetAttribute");
    *value = 1024;
    return 0;
  };
  api.launchKernel = launchKernel;
}

// === Graphs =================================================================

static ResultCode streamBeginCapture(Handle handle, int mode) {
  DFA_FAKE("streamBeginCapture");
  FakeStream *stream = asStream(handle);
  if (stream == &fake().legacy || stream->capture)
    return 900;
  fake().lastCaptureMode = mode;
  stream->capture = new FakeGraph();
  stream->capture->id = ++fake().lastGraph;
  stream->origin = true;
  return CUDA_SUCCESS;
}

static ResultCode streamEndCapture(Handle handle, Handle *graph) {
  DFA_FAKE("streamEndCapture");
  FakeStream *stream = asStream(handle);
  if (!stream->origin)
    return 903;
  *graph = stream->capture;
  stream->capture = nullptr;
  stream->origin = false;
  if (stream->invalidated) {
    stream->invalidated = false;
    delete static_cast<FakeGraph *>(*graph);
    *graph = nullptr;
    return 901;
  }
  ++fake().liveHandles;
  return CUDA_SUCCESS;
}

static ResultCode streamGetCaptureInfo(Handle handle, int *status, uint64_t *id,
                                       Handle *graph, const Handle **,
                                       size_t *) {
  DFA_FAKE("streamGetCaptureInfo");
  FakeStream *stream = asStream(handle);
  *status = stream->invalidated ? 2 : stream->capture ? 1 : 0;
  if (stream->capture) {
    *id = stream->capture->id;
    *graph = stream->capture;
  }
  return CUDA_SUCCESS;
}

static void fillGraphs(DriverApi &api) {
  api.streamBeginCapture = streamBeginCapture;
  api.streamEndCapture = streamEndCapture;
  api.streamGetCaptureInfo = streamGetCaptureInfo;
  api.graphInstantiate = [](Handle *executable, Handle graph,
                            unsigned long long) {
    DFA_FAKE("graphInstantiate");
    ++fake().liveHandles;
    *executable = new FakeGraph(*static_cast<FakeGraph *>(graph));
    return 0;
  };
  api.graphUpload = [](Handle, Handle) {
    DFA_FAKE("graphUpload");
    return 0;
  };
  api.graphLaunch = [](Handle executable, Handle stream) {
    DFA_FAKE("graphLaunch");
    FakeGraph *graph = static_cast<FakeGraph *>(executable);
    fake().issue(asStream(stream), [graph] {
      for (std::function<void()> &node : graph->nodes)
        node();
    });
    return 0;
  };
  // Both frees run the destructors of user objects on the caller's thread.
  api.graphDestroy = [](Handle graph) {
    DFA_FAKE("graphDestroy");
    --fake().liveHandles;
    delete static_cast<FakeGraph *>(graph);
    return 0;
  };
  api.graphExecDestroy = api.graphDestroy;
  api.userObjectCreate = [](Handle *object, void *pointer, HostFunction destroy,
                            unsigned count, unsigned flags) {
    DFA_FAKE("userObjectCreate");
    if (count != 1 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
      fake().violations.push_back("bad user object");
    *object = new FakeUserObject{pointer, destroy};
    return 0;
  };
  api.userObjectRelease = [](Handle object, unsigned) {
    DFA_FAKE("userObjectRelease");
    delete static_cast<FakeUserObject *>(object);
    return 0;
  };
  api.graphRetainUserObject = [](Handle graph, Handle object, unsigned,
                                 unsigned flags) {
    DFA_FAKE("graphRetainUserObject");
    if (flags != CU_GRAPH_USER_OBJECT_MOVE)
      fake().violations.push_back("user object is not moved");
    static_cast<FakeGraph *>(graph)->objects.emplace_back(
        static_cast<FakeUserObject *>(object));
    return 0;
  };
}

FakeDriver::FakeDriver(std::function<void *(const char *)> finder)
    : kernels(std::move(finder)) {
  current = this;
  fillDevice(api);
  fillMemory(api);
  fillStreams(api);
  fillGraphs(api);
}

FakeDriver::~FakeDriver() { current = nullptr; }

} // namespace dfa::rt::test
