// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver made of host memory: it checks the rules that the runtime must
// keep (context, capture mode, handles), records launches, and runs kernels as
// host functions, at once or when a recorded graph is launched.

#ifndef DFA_TEST_RUNTIME_FAKEDRIVER_H
#define DFA_TEST_RUNTIME_FAKEDRIVER_H

#include "cuda/DriverApi.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace dfa::rt::test {

struct FakeUserObject {
  void *pointer;
  cuda::HostFunction destroy;
  ~FakeUserObject() { destroy(pointer); }
};

/// A graph and, with the same content, what was instantiated from it.
struct FakeGraph {
  uint64_t id = 0;
  std::vector<std::function<void()>> nodes;
  std::vector<std::shared_ptr<FakeUserObject>> objects;
};

struct FakeStream {
  unsigned flags = 0;
  FakeGraph *capture = nullptr;
  bool origin = false;
  bool invalidated = false;
  int priority = 0;
};

struct FakeEvent {
  FakeGraph *capture = nullptr;
  uint64_t captureId = 0;
  bool timed = false;
  double time = -1; // of the last record, in ms; -1: never
};

struct FakeLaunch {
  std::string kernel;
  unsigned grid;
  unsigned block;
  std::vector<int64_t> words; // its parameters
};

/// One at a time; the functions of the table find it through `current`.
class FakeDriver {
public:
  /// Finds a host function for a kernel name; null: no such kernel.
  explicit FakeDriver(std::function<void *(const char *)> kernels);
  ~FakeDriver();

  static FakeDriver *current;

  cuda::DriverApi api;

  // What the tests look at.
  std::vector<FakeLaunch> launches;
  std::vector<std::string> violations; // rules that a call broke
  std::vector<std::string> calls;      // names, in order
  std::string image;                   // bytes of the last module
  std::set<void *> deviceMemory;
  std::set<void *> hostMemory;
  double clock = 0;    // ms; every launch takes one, every copy a half
  int timers = 0;      // events with timing made so far
  int liveHandles = 0; // streams, events, modules, graphs
  int retained = 0;
  // Of the thread, as in the real one. 0: global, the default.
  static thread_local int captureMode;
  static thread_local int contextDepth;
  int lastCaptureMode = -1;

  // What the tests set.
  std::map<std::string, int> failures; // call -> code, once
  bool execute = true;                 // run kernels
  std::string jitLog;

  // For the functions of the table, which a thread of the runtime's own calls
  // too.
  std::recursive_mutex mutex;
  int enter(const char *call, bool needsContext = true);
  void issue(FakeStream *stream, std::function<void()> work);
  std::function<void *(const char *)> kernels;
  std::map<void *, std::string> functions;
  FakeStream legacy;
  uint64_t lastGraph = 0;
};

} // namespace dfa::rt::test

#endif // DFA_TEST_RUNTIME_FAKEDRIVER_H
