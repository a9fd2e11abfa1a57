// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The executor on several ranks, one thread each: buckets, two streams,
// events, sums and presence, issued or replayed, against one rank.

#include "TestKernels.h"
#include "ThreadCommunicator.h"

#include "cpu/CpuDevice.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace dfa::rt::test {
namespace {

enum class Mode { Whole, Buckets, Replay };

struct Scenario {
  std::vector<int64_t> sizes;
  int64_t bucketBytes = 1 << 20;
  int replicas = 1;
  int shards = 1;
  Mode mode = Mode::Whole;
  bool lazy = false; // the transport connects at the first of a kind
  int steps = 1;
  std::vector<double> hyper = {0.01, 0.9, 0.999, 1e-8, 0.1, 0.0};
  // The gradient of a rank, and whether it has one.
  std::function<float(int step, int rank, int segment, int64_t index)> grad;
  std::function<bool(int rank, int segment)> present;
};

struct Outcome {
  std::vector<std::vector<float>> params; // whole parameters, as gathered
  double norm = 0;
  double found_inf = 0;
  std::vector<int64_t> steps;
  std::vector<std::string> log; // of the shard axis
};

class Rank {
public:
  Rank(const Scenario &scenario, int rank,
       std::shared_ptr<ThreadGroup> replicate,
       std::shared_ptr<ThreadGroup> shard)
      : scenario(scenario), rank(rank), device(createCpuDevice(1)),
        replicateAxis(*device, replicate, rank / scenario.shards),
        shardAxis(*device, shard, rank % scenario.shards) {}

  void run() {
    replicateAxis.lazy = shardAxis.lazy = scenario.lazy;
    OptimizerOptions options;
    options.device = device;
    options.program = parseOrDie(shardedProgram);
    options.tables =
        tablesFor(options.program, scenario.sizes, scenario.bucketBytes,
                  scenario.replicas, scenario.shards, rank);
    options.kernels = kernels();
    options.axes = {&replicateAxis, &shardAxis};
    options.replay = scenario.mode == Mode::Replay;
    Result<std::unique_ptr<Optimizer>> made =
        Optimizer::create(std::move(options));
    ok(made.status());
    optimizer = std::move(*made);
    for (size_t column = 0; column < scenario.hyper.size(); ++column)
      ok(optimizer->setHyper(0, column, scenario.hyper[column]));
    ok(optimizer->setControl(
        "average", 1.0 / (scenario.replicas * scenario.shards), Stream()));
    ok(optimizer->prepare(Stream()));
    initialise();
    for (int step = 0; step < scenario.steps; ++step)
      runStep(step);
    collect();
  }

  Outcome outcome;

private:
  void ok(const Status &status) { EXPECT_TRUE(status.ok()) << status.str(); }
  float *at(int array, int segment) {
    return static_cast<float *>(*optimizer->segmentAddress(0, array, segment));
  }
  const SegmentInfo &info(int segment) {
    return optimizer->tables().classes[0].segments[segment];
  }

  void initialise() {
    for (size_t segment = 0; segment < scenario.sizes.size(); ++segment)
      for (int64_t index = 0; index < info(segment).elements; ++index)
        at(Master, segment)[index] = 1.0f;
  }

  void runStep(int step) {
    for (size_t segment = 0; segment < scenario.sizes.size(); ++segment) {
      for (int64_t index = 0; index < scenario.sizes[segment]; ++index)
        at(FullGrad, segment)[index] =
            scenario.grad(step, rank, segment, index);
      if (scenario.present)
        ok(optimizer->setPresent(0, segment, scenario.present(rank, segment)));
    }
    int64_t reduce = optimizer->program().findEntry("reduce");
    if (scenario.mode == Mode::Buckets) {
      const ClassInfo &w = optimizer->tables().classes[0];
      for (int64_t bucket : w.order)
        ok(optimizer->runBucket(reduce, 0, bucket - w.buckets.begin, Stream()));
    } else {
      ok(optimizer->run(reduce, Stream()));
    }
    ok(optimizer->run(optimizer->program().findEntry("finish"), Stream()));
  }

  void collect() {
    for (size_t segment = 0; segment < scenario.sizes.size(); ++segment) {
      const float *param = at(FullParam, segment);
      outcome.params.emplace_back(param, param + scenario.sizes[segment]);
      outcome.steps.push_back(*optimizer->fetchStep(0, segment, Stream()));
    }
    outcome.norm = *optimizer->controlMirror("norm");
    outcome.found_inf = *optimizer->controlMirror("found_inf");
    outcome.log = shardAxis.log;
  }

  const Scenario &scenario;
  int rank;
  std::shared_ptr<Device> device;
  ThreadCommunicator replicateAxis;
  ThreadCommunicator shardAxis;
  std::unique_ptr<Optimizer> optimizer;
};

std::vector<Outcome> runRanks(const Scenario &scenario) {
  std::vector<std::shared_ptr<ThreadGroup>> shardGroups;
  std::vector<std::shared_ptr<ThreadGroup>> replicateGroups;
  for (int replica = 0; replica < scenario.replicas; ++replica)
    shardGroups.push_back(std::make_shared<ThreadGroup>(scenario.shards));
  for (int shard = 0; shard < scenario.shards; ++shard)
    replicateGroups.push_back(std::make_shared<ThreadGroup>(scenario.replicas));
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < scenario.replicas * scenario.shards; ++rank)
    ranks.push_back(std::make_unique<Rank>(
        scenario, rank, replicateGroups[rank % scenario.shards],
        shardGroups[rank / scenario.shards]));
  std::vector<std::thread> threads;
  for (std::unique_ptr<Rank> &rank : ranks)
    threads.emplace_back([&] { rank->run(); });
  for (std::thread &thread : threads)
    thread.join();
  std::vector<Outcome> outcomes;
  for (std::unique_ptr<Rank> &rank : ranks)
    outcomes.push_back(rank->outcome);
  return outcomes;
}

// Case B16: the values are the case's, for any bucket size and mesh.
void checkAlignment(int replicas, int shards, Mode mode) {
  for (int64_t bucketBytes : {128, 1024, 1 << 20}) {
    Scenario scenario;
    scenario.sizes = {7, 13, 1, 129};
    scenario.bucketBytes = bucketBytes;
    scenario.replicas = replicas;
    scenario.shards = shards;
    scenario.mode = mode;
    int world = replicas * shards;
    scenario.grad = [=](int, int rank, int, int64_t) {
      return float(rank + 1) / (world + 1); // averages to 0.5
    };
    for (const Outcome &outcome : runRanks(scenario)) {
      EXPECT_NEAR(outcome.norm, 6.1237243570, 1e-6);
      for (const std::vector<float> &param : outcome.params)
        for (float value : param)
          ASSERT_NEAR(value, 0.9890000002, 2e-7);
    }
  }
}

TEST(Collectives, AlignmentB16) {
  checkAlignment(1, 4, Mode::Whole);
  checkAlignment(1, 3, Mode::Whole);
  checkAlignment(2, 2, Mode::Whole);
  checkAlignment(4, 1, Mode::Whole);
  checkAlignment(1, 1, Mode::Whole);
}

TEST(Collectives, AlignmentB16BucketByBucket) {
  checkAlignment(1, 4, Mode::Buckets);
  checkAlignment(2, 2, Mode::Buckets);
}

TEST(Collectives, AlignmentB16Replayed) {
  checkAlignment(1, 4, Mode::Replay);
  checkAlignment(2, 2, Mode::Replay);
}

float wave(int step, int rank, int segment, int64_t index) {
  // Sums over ranks are exact, so the rank count cannot show in the bits.
  int64_t mixed = (index * 37 + step * 11 + segment * 5 + rank * 3) % 64;
  return float(mixed - 32) / 16;
}

TEST(Collectives, AllWaysGiveTheSameBits) {
  Scenario scenario;
  scenario.sizes = {1000, 3, 0, 20000, 64};
  scenario.bucketBytes = 16384;
  scenario.steps = 10;
  scenario.hyper = {0.01, 0.9, 0.99, 1e-8, 0.01, 1.0};
  scenario.grad = wave;
  for (std::pair<int, int> mesh :
       {std::pair<int, int>(1, 2), {2, 1}, {2, 2}, {1, 3}}) {
    scenario.replicas = mesh.first;
    scenario.shards = mesh.second;
    scenario.mode = Mode::Whole;
    std::vector<Outcome> whole = runRanks(scenario);
    for (const Outcome &outcome : whole)
      EXPECT_EQ(outcome.params, whole[0].params);
    for (Mode mode : {Mode::Buckets, Mode::Replay}) {
      scenario.mode = mode;
      std::vector<Outcome> other = runRanks(scenario);
      EXPECT_EQ(other[0].params, whole[0].params);
      EXPECT_EQ(other[0].norm, whole[0].norm);
    }
  }
}

// Two shards against one rank whose gradient is the average.
TEST(Collectives, ShardsEqualOneRank) {
  Scenario scenario;
  scenario.sizes = {1000, 3, 20000, 64};
  scenario.bucketBytes = 16384;
  scenario.steps = 5;
  scenario.grad = wave;
  scenario.shards = 2;
  std::vector<Outcome> two = runRanks(scenario);
  scenario.shards = 1;
  scenario.grad = [](int step, int, int segment, int64_t index) {
    return (wave(step, 0, segment, index) + wave(step, 1, segment, index)) / 2;
  };
  std::vector<Outcome> one = runRanks(scenario);
  EXPECT_EQ(two[0].params, one[0].params);
  EXPECT_NEAR(two[0].norm, one[0].norm, 1e-9);
}

TEST(Collectives, PresenceIsUnitedOverAllAxes) {
  Scenario scenario;
  scenario.sizes = {5, 6, 7};
  scenario.replicas = 2;
  scenario.shards = 2;
  scenario.steps = 2;
  scenario.grad = [](int, int rank, int segment, int64_t) {
    return segment == 2 || (segment == 1 && rank != 3) ? 0.0f : 1.0f;
  };
  // Segment 1 is present on one rank only, segment 2 on none.
  scenario.present = [](int rank, int segment) {
    return segment == 0 || (segment == 1 && rank == 3);
  };
  for (const Outcome &outcome : runRanks(scenario)) {
    EXPECT_EQ(outcome.steps, (std::vector<int64_t>{2, 2, 0}));
    EXPECT_LT(outcome.params[1][0], 1.0f);
    EXPECT_EQ(outcome.params[2][0], 1.0f); // gathered, but never updated
  }
}

TEST(Collectives, OneInfiniteGradientStopsAllRanks) {
  Scenario scenario;
  scenario.sizes = {500, 500};
  scenario.shards = 4;
  scenario.grad = [](int, int rank, int segment, int64_t index) {
    return rank == 2 && segment == 1 && index == 400 ? INFINITY : 1.0f;
  };
  for (const Outcome &outcome : runRanks(scenario)) {
    EXPECT_EQ(outcome.found_inf, 1);
    EXPECT_EQ(outcome.steps, (std::vector<int64_t>{0, 0}));
  }
}

TEST(Collectives, SequenceFollowsThePlan) {
  Scenario scenario;
  scenario.sizes = {100, 100, 100};
  scenario.bucketBytes = 512; // 128 elements: a bucket each
  scenario.shards = 2;
  scenario.grad = wave;
  std::vector<Outcome> whole = runRanks(scenario);
  const std::vector<std::string> &log = whole[0].log;
  // Three buckets reduced, two control exchanges, three buckets gathered.
  ASSERT_EQ(log.size(), 8u);
  for (int bucket = 0; bucket < 3; ++bucket) {
    EXPECT_EQ(log[bucket].rfind(format("reduce_scatter bucket %d ", bucket), 0),
              0u)
        << log[bucket];
    EXPECT_EQ(log[5 + bucket].rfind(format("all_gather bucket %d ", bucket), 0),
              0u)
        << log[5 + bucket];
  }
  EXPECT_EQ(log[3], "all_gather bucket -1 count 2");
  EXPECT_EQ(log[4], "all_reduce bucket -1 count 3");
  EXPECT_EQ(whole[1].log, log);
  scenario.mode = Mode::Buckets;
  EXPECT_EQ(runRanks(scenario)[0].log, log);
}

// === Warm-up ================================================================

TEST(Collectives, NothingConnectsInARecording) {
  Scenario scenario;
  scenario.sizes = {1000, 3, 0, 20000, 64};
  scenario.bucketBytes = 16384; // buckets of several sizes
  scenario.steps = 3;
  scenario.grad = wave;
  for (std::pair<int, int> mesh :
       {std::pair<int, int>(1, 2), {2, 1}, {2, 2}, {1, 3}}) {
    scenario.replicas = mesh.first;
    scenario.shards = mesh.second;
    scenario.lazy = false;
    scenario.mode = Mode::Whole;
    std::vector<Outcome> eager = runRanks(scenario);
    scenario.lazy = true;
    scenario.mode = Mode::Replay;
    std::vector<Outcome> replayed = runRanks(scenario);
    EXPECT_EQ(replayed[0].params, eager[0].params);
    EXPECT_EQ(replayed[0].norm, eager[0].norm);
  }
}

// Also without replay: the user may record later.
TEST(Collectives, WarmUpRunsEachKindAndSizeOnce) {
  Scenario scenario;
  scenario.sizes = {100, 100, 300};
  scenario.bucketBytes = 512; // two buckets alike, one larger
  scenario.shards = 2;
  scenario.grad = wave;
  std::vector<Outcome> cold = runRanks(scenario);
  scenario.lazy = true;
  std::vector<Outcome> warm = runRanks(scenario);
  EXPECT_EQ(warm[0].params, cold[0].params);
  EXPECT_EQ(warm[1].log, warm[0].log);
  std::vector<std::string> log = warm[0].log;
  std::vector<std::string> warmUp;
  while (!log.empty() && log.front().rfind("warm-up ", 0) == 0) {
    warmUp.push_back(log.front());
    log.erase(log.begin());
  }
  EXPECT_EQ(log, cold[0].log);
  std::vector<std::string> expected;
  auto expect = [&](const char *kind, const std::string &like) {
    // The counts are those of the run itself.
    std::string count = like.substr(like.find("count"));
    std::string line = std::string("warm-up ") + kind + " bucket -1 " + count;
    if (std::find(expected.begin(), expected.end(), line) == expected.end())
      expected.push_back(line);
  };
  ASSERT_EQ(log.size(), 8u);
  for (int index = 0; index < 3; ++index)
    expect("reduce_scatter", log[index]);
  expect("all_gather", log[3]);
  expect("all_reduce", log[4]);
  for (int index = 5; index < 8; ++index)
    expect("all_gather", log[index]);
  ASSERT_EQ(expected.size(), 6u);
  expected.push_back("warm-up barrier bucket -1 count 0");
  EXPECT_EQ(warmUp, expected);
}

// === Refusals ===============================================================

TEST(Collectives, RefusesWhatTheTransportCannot) {
  std::shared_ptr<Device> device = createCpuDevice(1);
  std::shared_ptr<ThreadGroup> group = std::make_shared<ThreadGroup>(2);
  ThreadCommunicator axis(*device, group, 0);
  axis.ordered = false;
  std::string text = shardedProgram;
  const std::string from = "source=grad target=grad";
  text.replace(text.find(from), from.size(), from + " order=rank");
  OptimizerOptions options;
  options.device = device;
  options.program = parseOrDie(text.c_str());
  options.tables = tablesFor(options.program, {64}, 1024, 2, 1, 0);
  options.kernels = kernels();
  options.axes = {&axis};
  Result<std::unique_ptr<Optimizer>> made =
      Optimizer::create(std::move(options));
  ASSERT_TRUE(made.ok());
  Status status = (*made)->prepare(Stream());
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_NE(status.message().find("'replicate'"), std::string::npos);
  EXPECT_NE(status.message().find("'threads'"), std::string::npos);
}

TEST(Collectives, RefusesAnotherTransportOrMesh) {
  std::shared_ptr<Device> device = createCpuDevice(1);
  std::shared_ptr<ThreadGroup> group = std::make_shared<ThreadGroup>(2);
  ThreadCommunicator axis(*device, group, 0);
  std::string text = shardedProgram;
  const std::string from = "axis shard any";
  text.replace(text.find(from), from.size(), "axis shard nccl");
  OptimizerOptions options;
  options.device = device;
  options.program = parseOrDie(text.c_str());
  options.tables = tablesFor(options.program, {64}, 1024, 1, 2, 0);
  options.kernels = kernels();
  options.axes = {nullptr, &axis};
  OptimizerOptions again = options;
  EXPECT_EQ(Optimizer::create(std::move(options)).status().code(),
            Code::InvalidArgument);

  // Tables cut for four shards, on an axis of two.
  again.program = parseOrDie(shardedProgram);
  again.tables = tablesFor(again.program, {64}, 1024, 1, 4, 0);
  Result<std::unique_ptr<Optimizer>> made = Optimizer::create(std::move(again));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->prepare(Stream()).code(), Code::InvalidArgument);
}

} // namespace
} // namespace dfa::rt::test
