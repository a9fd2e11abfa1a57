// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the CUDA driver interface that the runtime uses, declared here
// because most machines that build it have no cuda.h. The table is filled from
// libcuda.so.1 at run time, or by a test.

#ifndef DFA_CUDA_DRIVERAPI_H
#define DFA_CUDA_DRIVERAPI_H

#include "base/Status.h"

#include <cstddef>
#include <cstdint>

namespace dfa::rt::cuda {

using ResultCode = int;         // CUresult
using DeviceOrdinal = int;      // CUdevice
using DevicePointer = uint64_t; // CUdeviceptr
using Handle = void *;          // contexts, streams, events, modules, graphs
using HostFunction = void (*)(void *);

// Values of the driver's enumerations, named as there.
enum : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_FOUND = 500,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
  CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1,
  CU_GRAPH_USER_OBJECT_MOVE = 1,
  CU_MEMORYTYPE_UNIFIED = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
};

/// CUDA_MEMCPY2D (v2).
struct Copy2D {
  size_t sourceX, sourceY;
  int sourceType;
  const void *sourceHost;
  DevicePointer sourceDevice;
  Handle sourceArray;
  size_t sourcePitch;
  size_t targetX, targetY;
  int targetType;
  void *targetHost;
  DevicePointer targetDevice;
  Handle targetArray;
  size_t targetPitch;
  size_t width, height;
};

// One line a function: member of the table, exported symbol, parameters.
#define DFA_CUDA_FUNCTIONS(F)                                                  \
  F(init, "cuInit", (unsigned))                                                \
  F(driverGetVersion, "cuDriverGetVersion", (int *))                           \
  F(getErrorName, "cuGetErrorName", (ResultCode, const char **))               \
  F(getErrorString, "cuGetErrorString", (ResultCode, const char **))           \
  F(deviceGetCount, "cuDeviceGetCount", (int *))                               \
  F(deviceGet, "cuDeviceGet", (DeviceOrdinal *, int))                          \
  F(deviceGetName, "cuDeviceGetName", (char *, int, DeviceOrdinal))            \
  F(deviceGetAttribute, "cuDeviceGetAttribute", (int *, int, DeviceOrdinal))   \
  F(primaryRetain, "cuDevicePrimaryCtxRetain", (Handle *, DeviceOrdinal))      \
  F(primaryRelease, "cuDevicePrimaryCtxRelease_v2", (DeviceOrdinal))           \
  F(ctxPush, "cuCtxPushCurrent_v2", (Handle))                                  \
  F(ctxSetCurrent, "cuCtxSetCurrent", (Handle))                                \
  F(ctxPop, "cuCtxPopCurrent_v2", (Handle *))                                  \
  F(exchangeCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *))         \
  F(memAlloc, "cuMemAlloc_v2", (DevicePointer *, size_t))                      \
  F(memFree, "cuMemFree_v2", (DevicePointer))                                  \
  F(memHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))               \
  F(memFreeHost, "cuMemFreeHost", (void *))                                    \
  F(streamCreate, "cuStreamCreateWithPriority", (Handle *, unsigned, int))     \
  F(streamDestroy, "cuStreamDestroy_v2", (Handle))                             \
  F(streamSynchronize, "cuStreamSynchronize", (Handle))                        \
  F(streamWaitEvent, "cuStreamWaitEvent", (Handle, Handle, unsigned))          \
  F(eventCreate, "cuEventCreate", (Handle *, unsigned))                        \
  F(eventDestroy, "cuEventDestroy_v2", (Handle))                               \
  F(eventRecord, "cuEventRecord", (Handle, Handle))                            \
  F(eventSynchronize, "cuEventSynchronize", (Handle))                          \
  F(eventElapsedTime, "cuEventElapsedTime", (float *, Handle, Handle))         \
  F(memcpyAsync, "cuMemcpyAsync",                                              \
    (DevicePointer, DevicePointer, size_t, Handle))                            \
  F(memcpy2DAsync, "cuMemcpy2DAsync_v2", (const Copy2D *, Handle))             \
  F(memsetD8Async, "cuMemsetD8Async",                                          \
    (DevicePointer, unsigned char, size_t, Handle))                            \
  F(memsetD32Async, "cuMemsetD32Async",                                        \
    (DevicePointer, unsigned, size_t, Handle))                                 \
  F(moduleLoadDataEx, "cuModuleLoadDataEx",                                    \
    (Handle *, const void *, unsigned, int *, void **))                        \
  F(moduleUnload, "cuModuleUnload", (Handle))                                  \
  F(moduleGetFunction, "cuModuleGetFunction",                                  \
    (Handle *, Handle, const char *))                                          \
  F(funcGetAttribute, "cuFuncGetAttribute", (int *, int, Handle))              \
  F(launchKernel, "cuLaunchKernel",                                            \
    (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
     unsigned, Handle, void **, void **))                                      \
  F(streamBeginCapture, "cuStreamBeginCapture_v2", (Handle, int))              \
  F(streamEndCapture, "cuStreamEndCapture", (Handle, Handle *))                \
  F(streamGetCaptureInfo, "cuStreamGetCaptureInfo_v2",                         \
    (Handle, int *, uint64_t *, Handle *, const Handle **, size_t *))          \
  F(graphInstantiate, "cuGraphInstantiateWithFlags",                           \
    (Handle *, Handle, unsigned long long))                                    \
  F(graphUpload, "cuGraphUpload", (Handle, Handle))                            \
  F(graphLaunch, "cuGraphLaunch", (Handle, Handle))                            \
  F(graphDestroy, "cuGraphDestroy", (Handle))                                  \
  F(graphExecDestroy, "cuGraphExecDestroy", (Handle))                          \
  F(userObjectCreate, "cuUserObjectCreate",                                    \
    (Handle *, void *, HostFunction, unsigned, unsigned))                      \
  F(userObjectRelease, "cuUserObjectRelease", (Handle, unsigned))              \
  F(graphRetainUserObject, "cuGraphRetainUserObject",                          \
    (Handle, Handle, unsigned, unsigned))

/// The functions. A test fills the members with functions of its own.
struct DriverApi {
#define DFA_CUDA_MEMBER(name, symbol, parameters)                              \
  ResultCode(*name) parameters = nullptr;
  DFA_CUDA_FUNCTIONS(DFA_CUDA_MEMBER)
#undef DFA_CUDA_MEMBER
};

/// Loads libcuda.so.1 once and initialises it; the same failure is reported to
/// every caller. The table lives as long as the process.
Result<const DriverApi *> loadDriver();

/// The status of a driver call: "cuMemAlloc_v2: out of memory (NAME)".
Status driverStatus(const DriverApi &api, ResultCode code, const char *call,
                    const char *file, int line);

} // namespace dfa::rt::cuda

#endif // DFA_CUDA_DRIVERAPI_H
