// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA device over a fake driver: launch shapes, context and capture mode,
// failures, and a whole optimizer, issued, replayed and captured.

#include "FakeDriver.h"
#include "TestKernels.h"

#include "cpu/CpuDevice.h"
#include "cuda/CudaDevice.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace dfa::rt::test {
namespace {

class Cuda : public testing::Test {
protected:
  Cuda() : driver(kernels().resolve) {
    Result<std::unique_ptr<Device>> made = createCudaDevice(driver.api, 1);
    EXPECT_TRUE(made.ok()) << made.status().str();
    device = std::move(*made);
  }

  void TearDown() override {
    optimizer.reset();
    device.reset();
    // Memory of recordings is freed by the reaper's thread.
    for (int wait = 0; wait < 2000 && driver.retained > 0; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(driver.violations, std::vector<std::string>());
    EXPECT_EQ(driver.deviceMemory.size(), 0u);
    EXPECT_EQ(driver.hostMemory.size(), 0u);
    EXPECT_EQ(driver.liveHandles, 0);
    EXPECT_EQ(driver.contextDepth, 0);
    EXPECT_EQ(driver.captureMode, 0);
    EXPECT_EQ(driver.retained, 0);
  }

  void ok(const Status &status) { ASSERT_TRUE(status.ok()) << status.str(); }

  Function function(const char *name) {
    Function result;
    result.handle = driver.kernels(name);
    driver.functions[result.handle] = name;
    return result;
  }

  void makeOptimizer(bool replay, std::shared_ptr<Device> on) {
    OptimizerOptions options;
    options.device = on;
    options.program = parseOrDie(localProgram);
    options.tables = tablesFor(options.program, sizes, 1 << 20);
    options.kernels = kernels();
    options.kernels.image = "ptx text";
    options.kernels.imageBytes = 8;
    options.replay = replay;
    Result<std::unique_ptr<Optimizer>> made =
        Optimizer::create(std::move(options));
    ok(made.status());
    optimizer = std::move(*made);
    const double values[] = {0.1, 0.9, 0.99, 1e-8, 0.01, 1.0};
    for (int column = 0; column < 6; ++column)
      ok(optimizer->setHyper(0, column, values[column]));
    ok(optimizer->prepare(Stream()));
  }

  float *at(int array, int segment) {
    return static_cast<float *>(*optimizer->segmentAddress(0, array, segment));
  }

  void fillGradients(int step) {
    for (size_t segment = 0; segment < sizes.size(); ++segment)
      for (int64_t index = 0; index < sizes[segment]; ++index)
        at(Grad, segment)[index] = std::sin(0.3f * index + step);
  }

  std::vector<float> params() {
    std::vector<float> all;
    for (size_t segment = 0; segment < sizes.size(); ++segment)
      all.insert(all.end(), at(Param, segment),
                 at(Param, segment) + sizes[segment]);
    return all;
  }

  FakeDriver driver;
  std::shared_ptr<Device> device;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<int64_t> sizes = {1000, 3, 0, 30000};
};

TEST_F(Cuda, NameSaysWhatItIs) {
  EXPECT_EQ(device->name(), "cuda:1 (Fake H1, sm_90)");
  EXPECT_EQ(device->kind(), Device::Kind::Cuda);
}

TEST_F(Cuda, RefusesUnknownOrdinals) {
  for (int ordinal : {-1, 2}) {
    Result<std::unique_ptr<Device>> made =
        createCudaDevice(driver.api, ordinal);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::NotFound);
    EXPECT_NE(made.status().message().find("below 2"), std::string::npos);
  }
}

TEST_F(Cuda, ThreadsOfOursStayInTheContextAndRelaxed) {
  driver.calls.clear();
  ok(device->makeCurrent());
  EXPECT_EQ(driver.calls, std::vector<std::string>{"ctxSetCurrent"});
  EXPECT_EQ(driver.captureMode, int(cuda::CU_STREAM_CAPTURE_MODE_RELAXED));
  driver.captureMode = 0;
}

// === Launch shapes ==========================================================

TEST_F(Cuda, ElementLaunchShape) {
  driver.execute = false;
  ElementLaunch launch = {};
  launch.chunkBegin = 5;
  launch.chunkEnd = 12;
  launch.partsPerChunkLog2 = 3;
  launch.block = 128;
  ok(device->launch(function("local_adamw"), launch, Stream()));
  ASSERT_EQ(driver.launches.size(), 1u);
  // A warp a part, four warps a block.
  EXPECT_EQ(driver.launches[0].grid, 7u << 1);
  EXPECT_EQ(driver.launches[0].block, 128u);
  EXPECT_EQ(driver.launches[0].words[5], 5);
  EXPECT_EQ(driver.launches[0].words[6], 12);
  EXPECT_EQ(driver.launches[0].words[7], 3);
}

TEST_F(Cuda, ShortChunksShareABlock) {
  driver.execute = false;
  ElementLaunch launch = {};
  launch.block = 128;
  for (int64_t chunks : {1, 4, 5, 10000}) {
    launch.chunkEnd = chunks;
    driver.launches.clear();
    ok(device->launch(function("local_adamw"), launch, Stream()));
    ASSERT_EQ(driver.launches.size(), 1u);
    EXPECT_EQ(driver.launches[0].grid, (chunks + 3) / 4);
  }
}

TEST_F(Cuda, AccumulatingLaunchGivesAWarpToAnAtom) {
  driver.execute = false;
  ElementLaunch launch = {};
  launch.accumulates = true;
  launch.block = 256;
  for (int64_t atoms : {1, 8, 9, 100}) {
    launch.chunkEnd = atoms;
    driver.launches.clear();
    ok(device->launch(function("local_norm"), launch, Stream()));
    ASSERT_EQ(driver.launches.size(), 1u);
    EXPECT_EQ(driver.launches[0].grid, (atoms + 7) / 8);
  }
}

TEST_F(Cuda, LargeTablesTakeSeveralGrids) {
  driver.execute = false;
  ElementLaunch launch = {};
  launch.chunkBegin = 10;
  launch.chunkEnd = (int64_t(1) << 33) + 3;
  launch.partsPerChunkLog2 = 4;
  launch.block = 128;
  ok(device->launch(function("local_adamw"), launch, Stream()));
  int64_t next = 10;
  for (const FakeLaunch &each : driver.launches) {
    EXPECT_EQ(each.words[5], next);
    EXPECT_EQ(each.grid, (each.words[6] - each.words[5]) << 2);
    next = each.words[6];
  }
  EXPECT_EQ(next, launch.chunkEnd);
  EXPECT_GT(driver.launches.size(), 10u);
}

TEST_F(Cuda, ControlAndSegmentLaunchShapes) {
  driver.execute = false;
  ok(device->launch(function("decide"), ControlLaunch(), Stream()));
  EXPECT_EQ(driver.launches[0].grid, 1u);
  EXPECT_EQ(driver.launches[0].block, unsigned(DFA_RT_CONTROL_BLOCK));
  SegmentLaunch launch = {};
  launch.segmentEnd = 129;
  ok(device->launch(function("prologue"), launch, Stream()));
  EXPECT_EQ(driver.launches[1].grid, 2u);
  EXPECT_EQ(driver.launches[1].block, unsigned(DFA_RT_SEGMENT_BLOCK));
}

// === Failures ===============================================================

TEST_F(Cuda, FailuresNameCallAndCode) {
  driver.failures["memAlloc"] = cuda::CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = nullptr;
  Status status = device->allocate(16, &memory);
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  EXPECT_EQ(status.message(),
            "memAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
  EXPECT_STREQ(status.file(), "CudaDevice.cpp");
  driver.failures["streamSynchronize"] = 700;
  EXPECT_EQ(device->synchronize(Stream()).code(), Code::DeviceError);
  driver.failures["ctxPush"] = 201;
  EXPECT_EQ(device->synchronize(Stream()).code(), Code::DeviceError);
}

TEST_F(Cuda, ModuleLoadReportsTheCompilersMessage) {
  KernelSource source;
  Module module;
  EXPECT_EQ(device->loadModule(source, module).code(), Code::InvalidArgument);
  std::string text = ".version 8.0"; // without the zero byte at the end
  std::vector<char> bytes(text.begin(), text.end());
  source.image = bytes.data();
  source.imageBytes = bytes.size();
  driver.failures["moduleLoadDataEx"] = 218;
  driver.jitLog = "line 1: what?";
  Status status = device->loadModule(source, module);
  EXPECT_EQ(status.code(), Code::DeviceError);
  EXPECT_NE(status.message().find("line 1: what?"), std::string::npos);
  ok(device->loadModule(source, module));
  EXPECT_EQ(driver.image, text);
  Function missing;
  status = device->getFunction(module, "nobody", missing);
  EXPECT_EQ(status.code(), Code::NotFound);
  EXPECT_NE(status.message().find("'nobody'"), std::string::npos);
  device->unloadModule(module);
}

TEST_F(Cuda, HostWorkIsRefused) {
  EXPECT_EQ(device->enqueueHost([] { return Status(); }, Stream()).code(),
            Code::Unsupported);
}

// === A whole optimizer ======================================================

TEST_F(Cuda, OptimizerGivesTheCpusBits) {
  std::vector<float> results[3];
  for (int way = 0; way < 3; ++way) {
    std::shared_ptr<Device> on = device;
    if (way == 2)
      on = createCpuDevice(1);
    makeOptimizer(/*replay=*/way == 1, on);
    for (int step = 0; step < 20; ++step) {
      fillGradients(step);
      ok(optimizer->setHyper(0, Lr, 0.1 / (step + 1)));
      ok(optimizer->run(0, Stream()));
    }
    EXPECT_EQ(*optimizer->controlMirror("step"), 20);
    results[way] = params();
    optimizer.reset();
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[2]);
  EXPECT_NE(results[0][0], 0.0f);
}

TEST_F(Cuda, ReplayAllocatesNothingAndLaunchesOneGraph) {
  makeOptimizer(/*replay=*/true, device);
  EXPECT_EQ(driver.lastCaptureMode,
            int(cuda::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  fillGradients(0);
  ok(optimizer->run(0, Stream()));
  DeviceCounters before = device->counters();
  driver.calls.clear();
  driver.launches.clear();
  ok(optimizer->run(0, Stream()));
  DeviceCounters after = device->counters();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.moduleLoads, before.moduleLoads);
  EXPECT_EQ(after.launches, before.launches + 1);
  EXPECT_TRUE(driver.launches.empty());
  // Nothing changed on the host, so nothing is copied.
  for (const std::string &call : driver.calls)
    EXPECT_EQ(call.find("mem"), std::string::npos) << call;
  EXPECT_LE(driver.calls.size(), 12u);

  // A changed value takes one copy, through a pinned slot.
  driver.calls.clear();
  ok(optimizer->setHyper(0, Lr, 0.5));
  ok(optimizer->run(0, Stream()));
  EXPECT_EQ(std::count(driver.calls.begin(), driver.calls.end(), "memcpyAsync"),
            1);
}

TEST_F(Cuda, CaptureOfTheUserKeepsTheMemory) {
  makeOptimizer(/*replay=*/false, device);
  fillGradients(0);
  Stream stream;
  ok(device->createStream(stream));
  ok(device->beginCapture(stream));
  ok(optimizer->setHyper(0, Lr, 0.25));
  ok(optimizer->run(0, stream));
  // Only the read-back is a copy in the graph: a recorded upload would freeze
  // the learning rate.
  EXPECT_EQ(static_cast<FakeStream *>(stream.handle)->capture->nodes.size(),
            5u);
  Graph graph;
  ok(device->endCapture(stream, graph));
  size_t memory = driver.deviceMemory.size();
  const float *param = at(Param, 0);
  optimizer.reset();
  EXPECT_EQ(driver.deviceMemory.size(), memory);
  ok(device->launchGraph(graph, stream));
  EXPECT_NE(param[1], 0.0f);
  device->destroyGraph(graph);
  device->destroyStream(stream);
  // TearDown sees everything freed, by the reaper.
  for (int wait = 0; wait < 2000 && device.use_count() > 1; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(Cuda, UrgentStreamsComeBeforeOthers) {
  Stream usual, urgent;
  ok(device->createStream(usual));
  ok(device->createUrgentStream(urgent));
  const FakeStream *other = static_cast<FakeStream *>(usual.handle);
  const FakeStream *first = static_cast<FakeStream *>(urgent.handle);
  EXPECT_LT(first->priority, other->priority); // lower is more urgent
  EXPECT_EQ(first->flags, unsigned(cuda::CU_STREAM_NON_BLOCKING));
  device->destroyStream(usual);
  device->destroyStream(urgent);
}

TEST_F(Cuda, InvalidatedCaptureIsReported) {
  makeOptimizer(/*replay=*/false, device);
  FakeStream stream;
  FakeGraph graph;
  stream.capture = &graph;
  stream.invalidated = true;
  Status status = optimizer->run(0, Stream{&stream});
  EXPECT_EQ(status.code(), Code::DeviceError);
  EXPECT_NE(status.message().find("invalidated"), std::string::npos);
}

TEST_F(Cuda, PrepareFailureLeaksNothing) {
  // Fails at each of the first driver calls of prepare in turn.
  for (const char *call :
       {"memAlloc", "memHostAlloc", "memcpyAsync", "eventCreate",
        "moduleLoadDataEx", "moduleGetFunction", "streamCreate",
        "streamBeginCapture", "launchKernel", "streamEndCapture",
        "graphInstantiate", "graphUpload"}) {
    OptimizerOptions options;
    options.device = device;
    options.program = parseOrDie(localProgram);
    options.tables = tablesFor(options.program, sizes, 1 << 20);
    options.kernels.image = "x";
    options.kernels.imageBytes = 1;
    options.replay = true;
    Result<std::unique_ptr<Optimizer>> made =
        Optimizer::create(std::move(options));
    ok(made.status());
    driver.failures[call] = 999;
    Status status = (*made)->prepare(Stream());
    EXPECT_FALSE(status.ok()) << call;
    EXPECT_NE(status.message().find(call), std::string::npos) << status.str();
    driver.failures.clear();
  }
}

TEST(CudaDriver, AbsenceIsAnError) {
  if (countCudaDevices() > 0)
    GTEST_SKIP() << "this machine has a CUDA driver";
  Result<std::unique_ptr<Device>> made = createCudaDevice(0);
  ASSERT_FALSE(made.ok());
  EXPECT_FALSE(made.status().message().empty());
}

} // namespace
} // namespace dfa::rt::test
