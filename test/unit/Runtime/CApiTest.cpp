// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface from end to end: a layout, a program and an optimizer on the
// CPU, and what each function says about wrong arguments.

#include "TestKernels.h"

#include "dfa-rt/dfa_rt.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <thread>

extern "C" size_t dfaTestControlBytes(void);
extern "C" size_t dfaTestOptionsBytes(void);

namespace dfa::rt::test {
namespace {

class CApi : public testing::Test {
protected:
  void SetUp() override {
    ok(dfa_rt_device_create_cpu(2, &device));
    ok(dfa_rt_program_parse(localProgram, std::strlen(localProgram), "local",
                            &program));
    makeLayout({4, 0, 300});
  }

  void TearDown() override {
    dfa_rt_optimizer_release(optimizer);
    dfa_rt_layout_release(layout);
    dfa_rt_program_release(program);
    dfa_rt_device_release(device);
  }

  void ok(dfa_rt_status_t status) {
    ASSERT_EQ(status, DFA_RT_OK) << dfa_rt_last_error();
  }

  void expect(dfa_rt_status_t status, dfa_rt_status_t code,
              const char *message) {
    EXPECT_EQ(status, code);
    EXPECT_NE(std::string(dfa_rt_last_error()).find(message), std::string::npos)
        << dfa_rt_last_error();
  }

  void makeLayout(const std::vector<int64_t> &sizes) {
    dfa_rt_layout_options_t options = {};
    options.struct_size = sizeof(options);
    options.replicate = options.shard = 1;
    ok(dfa_rt_layout_create(&options, &layout));
    ok(dfa_rt_layout_add_class(layout, "w", "f32", 1));
    for (const char *array : {"grad", "param", "exp_avg", "exp_avg_sq"})
      ok(dfa_rt_layout_add_array(layout, array, "f32"));
    for (size_t index = 0; index < sizes.size(); ++index) {
      std::string name = "p" + std::to_string(index);
      dfa_rt_param_t param = {};
      param.struct_size = sizeof(param);
      param.name = name.c_str();
      param.dims = 1;
      param.shape = &sizes[index];
      param.shared_with = -1;
      param.unit = -1;
      ok(dfa_rt_layout_add_param(layout, &param));
    }
    ok(dfa_rt_layout_plan(layout));
  }

  dfa_rt_optimizer_options_t options() {
    dfa_rt_optimizer_options_t it = {};
    it.struct_size = sizeof(it);
    it.device = device;
    it.program = program;
    it.layout = layout;
    it.resolve = [](void *, const char *name) {
      return kernels().resolve(name);
    };
    return it;
  }

  dfa_rt_device_t *device = nullptr;
  dfa_rt_program_t *program = nullptr;
  dfa_rt_layout_t *layout = nullptr;
  dfa_rt_optimizer_t *optimizer = nullptr;
};

TEST_F(CApi, Versions) {
  EXPECT_EQ(dfa_rt_api_version(), unsigned(DFA_RT_API_VERSION));
  EXPECT_EQ(dfa_rt_abi_version(), unsigned(DFA_RT_ABI_VERSION));
  EXPECT_EQ(dfa_rt_program_version(), unsigned(DFA_RT_PROGRAM_VERSION));
  EXPECT_STREQ(dfa_rt_status_name(DFA_RT_PARSE_ERROR), "parse error");
  EXPECT_STREQ(dfa_rt_device_name(device), "cpu (2 threads)");
}

TEST_F(CApi, HeadersMeanTheSameInC) {
  EXPECT_EQ(dfaTestControlBytes(), sizeof(dfa_rt_control_t));
  EXPECT_EQ(dfaTestOptionsBytes(), sizeof(dfa_rt_optimizer_options_t));
  EXPECT_EQ(sizeof(dfa_rt_control_t) % 8, 0u);
}

TEST_F(CApi, StepFromEndToEnd) {
  dfa_rt_optimizer_options_t it = options();
  it.replay = true;
  ok(dfa_rt_optimizer_create(&it, &optimizer));
  const std::pair<const char *, double> hyper[] = {
      {"lr", 0.1}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}};
  for (const std::pair<const char *, double> &each : hyper)
    ok(dfa_rt_optimizer_set_hyper(
        optimizer, 0, dfa_rt_program_hyper(program, each.first), each.second));
  // The caller owns gradients and parameters, found through placements.
  dfa_rt_placement_t place;
  std::vector<float> grad(300, 0.1f);
  std::vector<float> param(300, 2.0f);
  ok(dfa_rt_layout_placement(layout, 2, &place));
  EXPECT_EQ(place.elements, 300);
  std::vector<void *> addresses(3, nullptr);
  addresses[place.segment] = grad.data();
  ok(dfa_rt_optimizer_bind_segments(optimizer, 0, Grad, addresses.data(), 3));
  ok(dfa_rt_optimizer_bind_segment(optimizer, 0, Param, place.segment,
                                   param.data()));
  ok(dfa_rt_optimizer_prepare(optimizer, nullptr));
  int64_t finish = dfa_rt_program_entry(program, "finish");
  ASSERT_GE(finish, 0);
  ok(dfa_rt_optimizer_run(optimizer, finish, nullptr));
  EXPECT_NEAR(param[299], 1.9, 1e-6);
  int64_t step = 0;
  ok(dfa_rt_optimizer_fetch_step(optimizer, 0, place.segment, &step, nullptr));
  EXPECT_EQ(step, 1);
  ok(dfa_rt_optimizer_set_step(optimizer, 0, place.segment, 9, nullptr));
  ok(dfa_rt_optimizer_fetch_step(optimizer, 0, place.segment, &step, nullptr));
  EXPECT_EQ(step, 9);
  double value = 0;
  ok(dfa_rt_optimizer_mirror_control(optimizer, "step", &value));
  EXPECT_EQ(value, 1);
  ok(dfa_rt_optimizer_set_control(optimizer, "scale", 8, nullptr));
  ok(dfa_rt_optimizer_fetch_control(optimizer, "scale", &value, nullptr));
  EXPECT_EQ(value, 8);
  ok(dfa_rt_optimizer_get_hyper(optimizer, 0, 0, &value));
  EXPECT_EQ(value, 0.1);
  void *address = nullptr;
  ok(dfa_rt_optimizer_segment_address(optimizer, 0, Param, place.segment,
                                      &address));
  EXPECT_EQ(address, param.data());
  // What is written to the device's memory itself reaches the next run.
  ok(dfa_rt_optimizer_control_address(optimizer, "scale", &address));
  EXPECT_EQ(*static_cast<float *>(address), 8);
  ok(dfa_rt_optimizer_hyper_address(optimizer, 0, 0, &address));
  *static_cast<double *>(address) = 0.2;
  ok(dfa_rt_optimizer_step_address(optimizer, 0, place.segment, &address));
  EXPECT_EQ(*static_cast<int64_t *>(address), 9);
  float before = param[299];
  ok(dfa_rt_optimizer_run(optimizer, finish, nullptr));
  EXPECT_LT(param[299], before - 0.1);
  dfa_rt_device_counters_t counters;
  ok(dfa_rt_device_get_counters(device, &counters));
  EXPECT_EQ(counters.graphs_instantiated, 2);
}

TEST_F(CApi, ProfileReportsEveryCommand) {
  dfa_rt_optimizer_options_t it = options();
  ok(dfa_rt_optimizer_create(&it, &optimizer));
  ok(dfa_rt_optimizer_prepare(optimizer, nullptr));
  struct Seen {
    dfa_rt_optimizer_t *optimizer;
    std::string names;
    double step = 0;
  } seen{optimizer, "", 0};
  dfa_rt_profile_t report = [](void *context,
                               const dfa_rt_command_time_t *time) {
    Seen &to = *static_cast<Seen *>(context);
    to.names += std::string(time->name) + " ";
    EXPECT_EQ(time->stream, 0);
    EXPECT_GE(time->milliseconds, 0);
    // The callback may use the optimizer.
    EXPECT_EQ(dfa_rt_optimizer_mirror_control(to.optimizer, "step", &to.step),
              DFA_RT_OK);
  };
  ok(dfa_rt_optimizer_profile(optimizer, 0, nullptr, report, &seen));
  EXPECT_EQ(seen.names, "segments groups local_norm decide decided decided "
                        "control prologue local_adamw read read ");
  EXPECT_EQ(seen.step, 1);
  expect(dfa_rt_optimizer_profile(optimizer, 0, nullptr, nullptr, nullptr),
         DFA_RT_INVALID_ARGUMENT, "'report'");
  expect(dfa_rt_optimizer_profile(optimizer, 9, nullptr, report, &seen),
         DFA_RT_INVALID_ARGUMENT, "no entry 9");
}

TEST_F(CApi, HandlesMayGoInAnyOrder) {
  dfa_rt_optimizer_options_t it = options();
  ok(dfa_rt_optimizer_create(&it, &optimizer));
  dfa_rt_layout_release(layout);
  layout = nullptr;
  dfa_rt_program_release(program);
  program = nullptr;
  dfa_rt_device_release(device);
  device = nullptr;
  ok(dfa_rt_optimizer_prepare(optimizer, nullptr));
  ok(dfa_rt_optimizer_run(optimizer, 0, nullptr));
}

TEST_F(CApi, WrongArgumentsAreNamed) {
  expect(dfa_rt_device_create_cpu(-1, &device), DFA_RT_INVALID_ARGUMENT,
         "but got -1");
  expect(dfa_rt_device_create_cpu(1, nullptr), DFA_RT_INVALID_ARGUMENT,
         "'device'");
  dfa_rt_program_t *other = nullptr;
  expect(dfa_rt_program_parse("dfa-program 9", 13, "mine", &other),
         DFA_RT_PARSE_ERROR, "mine:1: expects 'dfa-program' version 1");
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(dfa_rt_program_entry(program, "nothing"), -1);
  EXPECT_EQ(dfa_rt_program_array(program, 5, "grad"), -1);
  EXPECT_EQ(dfa_rt_program_array(program, 0, "param"), Param);
  expect(dfa_rt_layout_plan(layout), DFA_RT_FAILED_PRECONDITION, "planned");
  expect(dfa_rt_layout_add_array(layout, "x", "f32"),
         DFA_RT_FAILED_PRECONDITION, "planned");
  dfa_rt_placement_t place;
  expect(dfa_rt_layout_placement(layout, 3, &place), DFA_RT_INVALID_ARGUMENT,
         "no parameter 3");
  dfa_rt_bucket_t bucket;
  expect(dfa_rt_layout_bucket(layout, 1, &bucket), DFA_RT_INVALID_ARGUMENT,
         "no bucket 1");
  dfa_rt_optimizer_options_t it = options();
  it.struct_size = 8;
  expect(dfa_rt_optimizer_create(&it, &optimizer), DFA_RT_INVALID_ARGUMENT,
         "but got 8");
  it = options();
  it.layout = nullptr;
  expect(dfa_rt_optimizer_create(&it, &optimizer), DFA_RT_INVALID_ARGUMENT,
         "'options.layout'");
  it = options();
  it.rank = 1;
  expect(dfa_rt_optimizer_create(&it, &optimizer), DFA_RT_INVALID_ARGUMENT,
         "rank");
  it = options();
  it.resolve = nullptr;
  ok(dfa_rt_optimizer_create(&it, &optimizer));
  expect(dfa_rt_optimizer_prepare(optimizer, nullptr), DFA_RT_INVALID_ARGUMENT,
         "callback");
  expect(dfa_rt_optimizer_run(nullptr, 0, nullptr), DFA_RT_INVALID_ARGUMENT,
         "'optimizer'");
  expect(dfa_rt_optimizer_set_control(optimizer, nullptr, 0, nullptr),
         DFA_RT_INVALID_ARGUMENT, "'field'");
  expect(dfa_rt_set_log_level(9), DFA_RT_INVALID_ARGUMENT, "but got 9");
}

TEST_F(CApi, LayoutMistakesAreErrors) {
  dfa_rt_layout_options_t it = {};
  it.struct_size = sizeof(it);
  it.replicate = 1;
  it.shard = 1;
  it.fill_order = 7;
  dfa_rt_layout_t *other = nullptr;
  expect(dfa_rt_layout_create(&it, &other), DFA_RT_INVALID_ARGUMENT,
         "fill order");
  it.fill_order = 0;
  ok(dfa_rt_layout_create(&it, &other));
  expect(dfa_rt_layout_add_array(other, "x", "f32"), DFA_RT_FAILED_PRECONDITION,
         "class");
  expect(dfa_rt_layout_add_class(other, "w", "f33", 1), DFA_RT_INVALID_ARGUMENT,
         "f33");
  dfa_rt_optimizer_options_t options = this->options();
  options.layout = other;
  expect(dfa_rt_optimizer_create(&options, &optimizer),
         DFA_RT_FAILED_PRECONDITION, "planned");
  dfa_rt_layout_release(other);
}

TEST_F(CApi, AddressesExistAfterPrepare) {
  dfa_rt_optimizer_options_t it = options();
  ok(dfa_rt_optimizer_create(&it, &optimizer));
  void *address = nullptr;
  expect(dfa_rt_optimizer_control_address(optimizer, "scale", &address),
         DFA_RT_FAILED_PRECONDITION, "before prepare");
  expect(dfa_rt_optimizer_hyper_address(optimizer, 0, 0, &address),
         DFA_RT_FAILED_PRECONDITION, "before prepare");
  expect(dfa_rt_optimizer_step_address(optimizer, 0, 0, &address),
         DFA_RT_FAILED_PRECONDITION, "before prepare");
  ok(dfa_rt_optimizer_prepare(optimizer, nullptr));
  expect(dfa_rt_optimizer_control_address(optimizer, "scales", &address),
         DFA_RT_NOT_FOUND, "scales");
  expect(dfa_rt_optimizer_hyper_address(optimizer, 0, 99, &address),
         DFA_RT_INVALID_ARGUMENT, "99");
}

TEST_F(CApi, ErrorsBelongToTheThread) {
  expect(dfa_rt_set_log_level(-3), DFA_RT_INVALID_ARGUMENT, "but got -3");
  std::string elsewhere = "unset";
  std::thread([&] { elsewhere = dfa_rt_last_error(); }).join();
  EXPECT_EQ(elsewhere, "");
}

TEST_F(CApi, CallsFromSeveralThreads) {
  dfa_rt_optimizer_options_t it = options();
  ok(dfa_rt_optimizer_create(&it, &optimizer));
  ok(dfa_rt_optimizer_prepare(optimizer, nullptr));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(dfa_rt_optimizer_set_hyper(optimizer, 0, 0, round),
                  DFA_RT_OK);
        EXPECT_EQ(dfa_rt_optimizer_run(optimizer, 0, nullptr), DFA_RT_OK);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  double step = 0;
  ok(dfa_rt_optimizer_fetch_control(optimizer, "step", &step, nullptr));
  EXPECT_EQ(step, 200);
}

TEST_F(CApi, MemoryAndStreams) {
  void *memory = nullptr;
  dfa_rt_stream_t stream = nullptr;
  ok(dfa_rt_stream_create(device, &stream));
  ok(dfa_rt_device_allocate(device, 64, &memory));
  int values[16] = {1, 2, 3};
  ok(dfa_rt_device_zero(device, memory, 64, stream));
  ok(dfa_rt_device_copy(device, memory, values, 12, stream));
  int back[16];
  ok(dfa_rt_device_copy(device, back, memory, 64, stream));
  ok(dfa_rt_stream_synchronize(device, stream));
  EXPECT_EQ(std::memcmp(values, back, 64), 0);
  dfa_rt_device_free(device, memory, 64);
  dfa_rt_stream_destroy(device, stream);
}

} // namespace
} // namespace dfa::rt::test
