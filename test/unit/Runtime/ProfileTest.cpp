// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of commands, on the CPU and over the fake driver, whose clock says
// exactly how long each command takes.

#include "FakeDriver.h"
#include "TestKernels.h"

#include "cpu/CpuDevice.h"
#include "cuda/CudaDevice.h"
#include "dfa-rt/dfa_rt.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace dfa::rt::test {
namespace {

using Times = std::vector<CommandTime>;

std::unique_ptr<Optimizer> make(std::shared_ptr<Device> device,
                                const char *program, KernelSource source,
                                bool replay = false) {
  OptimizerOptions options;
  options.device = device;
  options.program = parseOrDie(program);
  // Three buckets: parameters of 1000 elements do not share one.
  options.tables = tablesFor(options.program, {1000, 1000, 1000}, 4096);
  options.kernels = std::move(source);
  options.kernels.image = "ptx";
  options.kernels.imageBytes = 3;
  options.replay = replay;
  Result<std::unique_ptr<Optimizer>> made =
      Optimizer::create(std::move(options));
  EXPECT_TRUE(made.ok()) << made.status().str();
  const double values[] = {0.1, 0.9, 0.99, 1e-8, 0.01, 1.0};
  for (int column = 0; column < 6; ++column)
    EXPECT_TRUE((*made)->setHyper(0, column, values[column]).ok());
  Status status = (*made)->prepare(Stream());
  EXPECT_TRUE(status.ok()) << status.str();
  return std::move(*made);
}

Times profile(Optimizer &optimizer, const char *entry,
              Stream stream = Stream()) {
  Result<Times> times =
      optimizer.profile(optimizer.program().findEntry(entry), stream);
  EXPECT_TRUE(times.ok()) << times.status().str();
  return times.ok() ? *times : Times();
}

float *at(Optimizer &optimizer, int array, int segment) {
  return static_cast<float *>(*optimizer.segmentAddress(0, array, segment));
}

void fillGradients(Optimizer &optimizer) {
  for (int segment = 0; segment < 3; ++segment)
    for (int index = 0; index < 1000; ++index)
      at(optimizer, Grad, segment)[index] = std::sin(0.1f * index + segment);
}

std::string words(const Times &times) {
  std::string all;
  for (const CommandTime &time : times)
    all += time.kind + " " + time.name + "\n";
  return all;
}

const char *const finishWords = "upload segments\n"
                                "upload groups\n"
                                "launch_elements local_norm\n"
                                "launch_control decide\n"
                                "record decided\n"
                                "wait decided\n"
                                "read_back control\n"
                                "launch_segments prologue\n"
                                "launch_elements local_adamw\n"
                                "record read\n"
                                "wait read\n";

TEST(Profile, RunsTheEntryLikeAnyOtherRun) {
  std::vector<float> bits[2];
  for (bool profiled : {false, true}) {
    std::unique_ptr<Optimizer> optimizer =
        make(createCpuDevice(2), localProgram, kernels(), /*replay=*/true);
    fillGradients(*optimizer);
    for (int step = 0; step < 3; ++step) {
      if (!profiled)
        ASSERT_TRUE(optimizer->run(0, Stream()).ok());
      else
        EXPECT_EQ(words(profile(*optimizer, "finish")), finishWords);
    }
    EXPECT_EQ(*optimizer->controlMirror("step"), 3);
    const float *param = at(*optimizer, Param, 2);
    bits[profiled].assign(param, param + 1000);
  }
  EXPECT_NE(bits[0][5], 0.0f);
  EXPECT_EQ(bits[0], bits[1]);
}

void slowKernel(void *, const void *, void *, const float *, const void *,
                int64_t begin, int64_t, uint32_t, double *, int64_t) {
  if (begin == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

TEST(Profile, TimesAreThoseOfTheStreamOnTheCpu) {
  std::shared_ptr<Device> device = createCpuDevice(1);
  KernelSource source;
  source.resolve = [](const char *name) {
    return std::strcmp(name, "local_norm") == 0
               ? reinterpret_cast<void *>(&slowKernel)
               : kernels().resolve(name);
  };
  std::unique_ptr<Optimizer> optimizer = make(device, localProgram, source);
  Stream queue;
  ASSERT_TRUE(device->createStream(queue).ok());
  for (Stream stream : {Stream(), queue}) {
    double others = 0;
    for (const CommandTime &time : profile(*optimizer, "finish", stream)) {
      EXPECT_EQ(time.launches, time.kind.rfind("launch", 0) == 0) << time.name;
      EXPECT_GE(time.milliseconds, 0);
      if (time.name == "local_norm")
        EXPECT_GE(time.milliseconds, 30);
      else
        others += time.milliseconds;
    }
    EXPECT_LT(others, 30);
  }
  optimizer.reset();
  device->destroyStream(queue);
}

TEST(Profile, LoopsGiveARowABucketAndNameTheStream) {
  std::unique_ptr<Optimizer> optimizer =
      make(createCpuDevice(1), shardedProgram, kernels());
  Times times = profile(*optimizer, "reduce");
  ASSERT_EQ(times.size(), 1u + 3 * 4);
  const std::vector<int64_t> &order = optimizer->tables().classes[0].order;
  for (int round = 0; round < 3; ++round) {
    const CommandTime *row = &times[1 + 4 * round];
    EXPECT_EQ(row[0].kind, "collective");
    EXPECT_EQ(row[0].name, "reduce_scatter");
    EXPECT_EQ(row[1].name, "all_reduce");
    EXPECT_EQ(row[2].name, "sharded_norm");
    EXPECT_EQ(row[3].kind + " " + row[3].name, "record reduced");
    for (int body = 0; body < 4; ++body) {
      EXPECT_EQ(row[body].command, 2 + body);
      EXPECT_EQ(row[body].bucket, order[round]);
      EXPECT_EQ(row[body].stream, StreamChoice::Comm);
    }
    EXPECT_EQ(row[2].classIndex, 0);
    EXPECT_EQ(row[3].classIndex, noClass);
  }
  EXPECT_EQ(times[0].bucket, -1);
}

TEST(Profile, CapturesAndUnknownEntriesAreRefused) {
  std::shared_ptr<Device> device = createCpuDevice(1);
  std::unique_ptr<Optimizer> optimizer = make(device, localProgram, kernels());
  Stream stream;
  ASSERT_TRUE(device->createStream(stream).ok());
  ASSERT_TRUE(device->beginCapture(stream).ok());
  Result<Times> times = optimizer->profile(0, stream);
  EXPECT_EQ(times.status().code(), Code::FailedPrecondition);
  EXPECT_NE(times.status().message().find("capture"), std::string::npos);
  Graph graph;
  ASSERT_TRUE(device->endCapture(stream, graph).ok());
  device->destroyGraph(graph);
  EXPECT_EQ(optimizer->profile(7, stream).status().code(),
            Code::InvalidArgument);
  optimizer.reset();
  device->destroyStream(stream);
}

// === Over the fake driver ===================================================

class CudaProfile : public testing::Test {
protected:
  CudaProfile() : driver(kernels().resolve) {
    Result<std::unique_ptr<Device>> made = createCudaDevice(driver.api, 0);
    EXPECT_TRUE(made.ok()) << made.status().str();
    device = std::move(*made);
  }
  void TearDown() override {
    device.reset();
    EXPECT_EQ(driver.violations, std::vector<std::string>());
    EXPECT_EQ(driver.liveHandles, 0);
    EXPECT_EQ(driver.contextDepth, 0);
    EXPECT_EQ(driver.captureMode, 0);
  }
  FakeDriver driver;
  std::shared_ptr<Device> device;
};

TEST_F(CudaProfile, EveryCommandHasTheTimeOfItsOwnWork) {
  std::unique_ptr<Optimizer> optimizer = make(device, localProgram, kernels());
  fillGradients(*optimizer);
  ASSERT_TRUE(optimizer->run(0, Stream()).ok());
  EXPECT_EQ(driver.timers, 0);
  Times times = profile(*optimizer, "finish");
  EXPECT_EQ(words(times), finishWords);
  EXPECT_EQ(driver.timers, 2 * 11);
  for (const CommandTime &time : times) {
    bool launches = time.kind.rfind("launch", 0) == 0;
    EXPECT_EQ(time.launches, launches);
    double wanted = launches ? 1 : time.kind == "read_back" ? 0.5 : 0;
    EXPECT_EQ(time.milliseconds, wanted) << time.kind << " " << time.name;
  }
  // The timers are gone, and a run makes none.
  int handles = driver.liveHandles;
  ASSERT_TRUE(optimizer->run(0, Stream()).ok());
  EXPECT_EQ(driver.timers, 2 * 11);
  EXPECT_EQ(driver.liveHandles, handles);
}

TEST_F(CudaProfile, FailuresLeaveNothingBehind) {
  std::unique_ptr<Optimizer> optimizer = make(device, localProgram, kernels());
  int handles = driver.liveHandles;
  for (const char *call : {"eventCreate", "eventRecord", "launchKernel",
                           "eventSynchronize", "eventElapsedTime"}) {
    driver.failures[call] = 999;
    Status status = optimizer->profile(0, Stream()).status();
    EXPECT_FALSE(status.ok()) << call;
    EXPECT_NE(status.message().find(call), std::string::npos) << status.str();
    EXPECT_EQ(driver.liveHandles, handles) << call;
  }
}

// === The C interface ========================================================

TEST(Profile, TimersOfTheCInterface) {
  dfa_rt_device_t *device = nullptr;
  ASSERT_EQ(dfa_rt_device_create_cpu(1, &device), DFA_RT_OK);
  dfa_rt_timer_t *begin = nullptr, *end = nullptr;
  ASSERT_EQ(dfa_rt_timer_create(device, &begin), DFA_RT_OK);
  ASSERT_EQ(dfa_rt_timer_create(device, &end), DFA_RT_OK);
  double taken = 0;
  EXPECT_EQ(dfa_rt_timer_elapsed(begin, end, &taken),
            DFA_RT_FAILED_PRECONDITION);
  ASSERT_EQ(dfa_rt_timer_record(begin, nullptr), DFA_RT_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(dfa_rt_timer_record(end, nullptr), DFA_RT_OK);
  ASSERT_EQ(dfa_rt_timer_elapsed(begin, end, &taken), DFA_RT_OK);
  EXPECT_GE(taken, 20);
  EXPECT_EQ(dfa_rt_timer_elapsed(begin, nullptr, &taken),
            DFA_RT_INVALID_ARGUMENT);
  // A timer keeps its device.
  dfa_rt_device_release(device);
  EXPECT_EQ(dfa_rt_timer_record(end, nullptr), DFA_RT_OK);
  dfa_rt_timer_release(begin);
  dfa_rt_timer_release(end);
}

} // namespace
} // namespace dfa::rt::test
