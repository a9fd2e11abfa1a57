// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups through the C interface: two ranks as threads, a store given by
// callbacks, and a sharded optimizer on top. Gloo runs steps; a stand-in for
// NCCL fails while a step is recorded, and everything is taken down after it.

#include "TestKernels.h"

#include "dfa-rt/dfa_rt.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace dfa::rt::test {
namespace {

class MapStore {
public:
  dfa_rt_store_t callbacks() {
    dfa_rt_store_t store;
    store.context = this;
    store.set = [](void *context, const char *key, const void *data,
                   size_t bytes) {
      MapStore &it = *static_cast<MapStore *>(context);
      std::lock_guard<std::mutex> lock(it.mutex);
      it.values[key].assign(static_cast<const char *>(data), bytes);
      return 0;
    };
    store.get = [](void *context, const char *key, void *data, size_t capacity,
                   size_t *bytes, int64_t) {
      MapStore &it = *static_cast<MapStore *>(context);
      std::lock_guard<std::mutex> lock(it.mutex);
      std::map<std::string, std::string>::iterator found = it.values.find(key);
      if (found == it.values.end())
        return 1;
      *bytes = found->second.size();
      std::memcpy(data, found->second.data(), std::min(*bytes, capacity));
      return 0;
    };
    store.add = [](void *context, const char *key, int64_t delta,
                   int64_t *sum) {
      MapStore &it = *static_cast<MapStore *>(context);
      std::lock_guard<std::mutex> lock(it.mutex);
      *sum = it.counters[key] += delta;
      return 0;
    };
    return store;
  }

private:
  std::mutex mutex;
  std::map<std::string, std::string> values;
  std::map<std::string, int64_t> counters;
};

constexpr int64_t elements = 300;

void ok(dfa_rt_status_t status) {
  EXPECT_EQ(status, DFA_RT_OK) << dfa_rt_last_error();
}

dfa_rt_layout_t *makeLayout() {
  dfa_rt_layout_options_t options = {};
  options.struct_size = sizeof(options);
  options.replicate = 1;
  options.shard = 2;
  dfa_rt_layout_t *layout = nullptr;
  ok(dfa_rt_layout_create(&options, &layout));
  ok(dfa_rt_layout_add_class(layout, "w", "f32", 1));
  ok(dfa_rt_layout_add_array(layout, "master", "f32"));
  dfa_rt_param_t param = {};
  param.struct_size = sizeof(param);
  param.name = "p";
  param.dims = 1;
  param.shape = &elements;
  param.shared_with = -1;
  param.unit = -1;
  ok(dfa_rt_layout_add_param(layout, &param));
  ok(dfa_rt_layout_plan(layout));
  return layout;
}

class GroupRank {
public:
  GroupRank(const dfa_rt_store_t &store, int rank,
            const char *transport = "gloo", double timeout = 60)
      : rank(rank) {
    ok(dfa_rt_device_create_cpu(1, &device));
    const char *names[] = {"shard"};
    const int32_t sizes[] = {2};
    dfa_rt_group_options_t options = {};
    options.struct_size = sizeof(options);
    options.device = device;
    options.transport = transport;
    options.axis_names = names;
    options.axis_sizes = sizes;
    options.axis_count = 1;
    options.rank = rank;
    options.world_size = 2;
    options.local_rank = rank;
    options.local_world_size = 2;
    options.run_id = "group-test";
    options.timeout_s = timeout;
    options.store = &store;
    ok(dfa_rt_group_create(&options, &group));
  }

  // In the order of a program that closes its group.
  ~GroupRank() {
    dfa_rt_optimizer_release(optimizer);
    dfa_rt_layout_release(layout);
    dfa_rt_program_release(program);
    dfa_rt_communicator_release(axis);
    if (closes)
      dfa_rt_group_close(group);
    dfa_rt_group_release(group);
    dfa_rt_device_release(device);
  }

  void createOptimizer(bool replay) {
    ok(dfa_rt_group_axis(group, "shard", &axis));
    EXPECT_EQ(dfa_rt_communicator_rank(axis), rank);
    EXPECT_EQ(dfa_rt_communicator_size(axis), 2);
    ok(dfa_rt_program_parse(shardedProgram, std::strlen(shardedProgram), "s",
                            &program));
    layout = makeLayout();
    ok(dfa_rt_group_agree(group, dfa_rt_layout_text(layout)));
    dfa_rt_communicator_t *axes[] = {nullptr, axis};
    dfa_rt_optimizer_options_t options = {};
    options.struct_size = sizeof(options);
    options.device = device;
    options.program = program;
    options.layout = layout;
    options.rank = rank;
    options.resolve = [](void *, const char *name) {
      return kernels().resolve(name);
    };
    options.communicators = axes;
    options.communicator_count = 2;
    options.replay = replay;
    ok(dfa_rt_optimizer_create(&options, &optimizer));
    const double hyper[] = {0.1, 0.9, 0.999, 1e-8, 0.0, 0.0};
    for (int column = 0; column < 6; ++column)
      ok(dfa_rt_optimizer_set_hyper(optimizer, 0, column, hyper[column]));
    ok(dfa_rt_optimizer_set_control(optimizer, "average", 0.5, nullptr));
  }

  void step(std::vector<float> &params) {
    createOptimizer(/*replay=*/false);
    EXPECT_STREQ(dfa_rt_communicator_name(axis), "gloo");
    ok(dfa_rt_optimizer_prepare(optimizer, nullptr));
    void *grad = nullptr;
    ok(dfa_rt_optimizer_segment_address(optimizer, 0, FullGrad, 0, &grad));
    for (int64_t index = 0; index < elements; ++index)
      static_cast<float *>(grad)[index] = rank == 0 ? 0.3f : 0.7f;
    for (const char *entry : {"reduce", "finish"})
      ok(dfa_rt_optimizer_run(optimizer, dfa_rt_program_entry(program, entry),
                              nullptr));
    double norm = 0;
    ok(dfa_rt_optimizer_mirror_control(optimizer, "norm", &norm));
    EXPECT_NEAR(norm, 8.660254037844387, 1e-6); // sqrt(300) / 2
    void *param = nullptr;
    ok(dfa_rt_optimizer_segment_address(optimizer, 0, FullParam, 0, &param));
    params.assign(static_cast<float *>(param),
                  static_cast<float *>(param) + elements);
  }

  int rank;
  bool closes = false;
  dfa_rt_device_t *device = nullptr;
  dfa_rt_group_t *group = nullptr;
  dfa_rt_communicator_t *axis = nullptr;
  dfa_rt_program_t *program = nullptr;
  dfa_rt_layout_t *layout = nullptr;
  dfa_rt_optimizer_t *optimizer = nullptr;
};

TEST(Group, TwoGlooRanksStepTogether) {
  MapStore store;
  dfa_rt_store_t callbacks = store.callbacks();
  std::vector<float> params[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      GroupRank it(callbacks, rank);
      if (!it.group)
        return;
      it.step(params[rank]);
      EXPECT_NE(std::string(dfa_rt_group_describe(it.group)).find("gloo"),
                std::string::npos);
      EXPECT_FALSE(dfa_rt_group_failure(it.group, nullptr));
      // Differing plans are an error on both.
      EXPECT_EQ(dfa_rt_group_agree(it.group, rank ? "a\nb" : "a\nc"),
                DFA_RT_COLLECTIVE_ERROR);
    });
  for (std::thread &thread : threads)
    thread.join();
  ASSERT_EQ(params[0].size(), size_t(elements));
  EXPECT_EQ(params[0], params[1]);
  for (float value : params[0])
    ASSERT_NEAR(value, -0.1, 1e-6);
}

// === A failure while a step is recorded =====================================

// What the stand-in does; the hook is a plain function.
struct FakeNcclPlan {
  std::atomic<int> scatters[2]; // calls of each rank so far
  std::atomic<int> failing;     // which of them fails; 0: none
  std::atomic<int> failingRank; // -1: on all ranks
  std::atomic<int> aborts;      // that returned
} plan;

int fakeNcclHook(const char *call, int rank, void *) {
  if (std::strcmp(call, "abort") == 0) {
    // Slow, so that whoever does not wait for it is caught.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++plan.aborts;
    return 0;
  }
  if (std::strcmp(call, "reduce_scatter") != 0)
    return 0;
  bool fails = ++plan.scatters[rank] == plan.failing &&
               (plan.failingRank < 0 || plan.failingRank == rank);
  return fails ? 3 : 0;
}

class RecordingFailure : public testing::Test {
protected:
  void SetUp() override {
    library = ::dlopen(FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    *static_cast<int (**)(const char *, int, void *)>(
        ::dlsym(library, "fake_nccl_hook")) = fakeNcclHook;
    ::setenv("DFA_NCCL", FAKE_NCCL, 1);
    plan.scatters[0] = plan.scatters[1] = 0;
    plan.aborts = 0;
  }
  void TearDown() override { ::unsetenv("DFA_NCCL"); }

  // The messages of both ranks' prepare. Ranks are taken down one after the
  // other by this thread, as a tool with a rank a thread does.
  std::vector<std::string> prepare(bool closes) {
    MapStore store;
    dfa_rt_store_t callbacks = store.callbacks();
    std::vector<std::unique_ptr<GroupRank>> ranks(2);
    std::vector<std::string> messages(2);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        ranks[rank] = std::make_unique<GroupRank>(callbacks, rank, "nccl", 2);
        ranks[rank]->closes = closes;
        ranks[rank]->createOptimizer(/*replay=*/true);
        if (dfa_rt_optimizer_prepare(ranks[rank]->optimizer, nullptr))
          messages[rank] = dfa_rt_last_error();
      });
    for (std::thread &thread : threads)
      thread.join();
    return messages;
  }

  void *library = nullptr;
};

// The whole mesh and the axis, on each rank.
constexpr int communicators = 4;

TEST_F(RecordingFailure, OnOneRankOrAllIsAnErrorAndACleanEnd) {
  // The first call is the warm-up's, the second the recording's.
  for (int failing : {1, 2}) {
    for (int failingRank : {-1, 0, 1}) {
      for (bool closes : {true, false}) {
        SetUp();
        plan.failing = failing;
        plan.failingRank = failingRank;
        std::vector<std::string> messages = prepare(closes);
        // No abort outlives the group and its device.
        EXPECT_EQ(plan.aborts, communicators);
        const char *expected = failing == 1
                                   ? "warm-up reduce_scatter"
                                   : "of recording 1, reduce_scatter of bucket";
        for (const std::string &message : messages)
          EXPECT_NE(message.find(expected), std::string::npos)
              << failing << " " << failingRank << ": " << message;
      }
    }
  }
}

TEST_F(RecordingFailure, WithoutOneNothingIsAborted) {
  plan.failing = 0;
  std::vector<std::string> messages = prepare(/*closes=*/true);
  EXPECT_EQ(messages, std::vector<std::string>(2));
  EXPECT_EQ(plan.aborts, 0);
  // Once in the warm-up, once in the recording of each rank.
  EXPECT_EQ(plan.scatters[0], 2);
  EXPECT_EQ(plan.scatters[1], 2);
}

// === Refusals ===============================================================

TEST(Group, WrongOptionsAreErrors) {
  dfa_rt_device_t *device = nullptr;
  ok(dfa_rt_device_create_cpu(1, &device));
  dfa_rt_group_t *group = nullptr;
  dfa_rt_group_options_t options = {};
  EXPECT_EQ(dfa_rt_group_create(&options, &group), DFA_RT_INVALID_ARGUMENT);
  options.struct_size = sizeof(options);
  options.device = device;
  options.transport = "pigeon";
  EXPECT_EQ(dfa_rt_group_create(&options, &group), DFA_RT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(dfa_rt_last_error()).find("'pigeon'"),
            std::string::npos);
  options.transport = "gloo";
  options.axis_count = 1;
  EXPECT_EQ(dfa_rt_group_create(&options, &group), DFA_RT_INVALID_ARGUMENT);
  options.axis_count = 0;
  options.timeout_s = -1;
  EXPECT_EQ(dfa_rt_group_create(&options, &group), DFA_RT_INVALID_ARGUMENT);
  EXPECT_EQ(group, nullptr);
  dfa_rt_device_release(device);
}

} // namespace
} // namespace dfa::rt::test
