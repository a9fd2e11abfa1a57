// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Case B34: gradients of one bucket come late and from streams of their own,
// and what they were copied from is overwritten right behind. Two ranks, one
// thread each.

#include "TestKernels.h"
#include "ThreadCommunicator.h"

#include "cpu/CpuDevice.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

namespace dfa::rt::test {
namespace {

constexpr int64_t elements = int64_t(1) << 20;
constexpr int producers = 3;
#ifdef __SANITIZE_THREAD__
constexpr int iterations = 3; // a thread sanitizer takes minutes for all
#else
constexpr int iterations = 50;
#endif

class LateRank {
public:
  LateRank(int rank, std::shared_ptr<ThreadGroup> replicate,
           std::shared_ptr<ThreadGroup> shard, bool replay)
      : rank(rank), device(createCpuDevice(1)),
        replicateAxis(*device, std::move(replicate), 0),
        shardAxis(*device, std::move(shard), rank), replay(replay) {}

  void run() {
    OptimizerOptions options;
    options.device = device;
    options.program = parseOrDie(shardedProgram);
    options.tables =
        tablesFor(options.program, {elements, elements, elements},
                  int64_t(1) << 30, /*replicas=*/1, /*shards=*/2, rank);
    options.kernels = kernels();
    options.axes = {&replicateAxis, &shardAxis};
    options.replay = replay;
    Result<std::unique_ptr<Optimizer>> made =
        Optimizer::create(std::move(options));
    ok(made.status());
    optimizer = std::move(*made);
    const double hyper[] = {0.01, 0.9, 0.999, 1e-8, 0.1, 0.0};
    for (int column = 0; column < 6; ++column)
      ok(optimizer->setHyper(0, column, hyper[column]));
    ok(optimizer->setControl("average", 0.5, Stream()));
    ok(device->createStream(main));
    ok(optimizer->prepare(main));
    ok(device->createEvent(stepped));
    for (int i = 0; i < producers; ++i) {
      sources[i].resize(elements);
      ok(device->createStream(streams[i]));
      ok(device->createEvent(written[i]));
    }
    for (int step = 0; step < iterations; ++step)
      runStep(step);
    for (int i = 0; i < producers; ++i) {
      device->destroyEvent(written[i]);
      device->destroyStream(streams[i]);
    }
    const float *param =
        static_cast<float *>(*optimizer->segmentAddress(0, FullParam, 0));
    params.assign(param, param + elements);
    optimizer.reset();
    device->destroyEvent(stepped);
    device->destroyStream(main);
  }

  std::vector<float> params;

private:
  void ok(const Status &status) { EXPECT_TRUE(status.ok()) << status.str(); }
  float *at(int array, int segment) {
    return static_cast<float *>(*optimizer->segmentAddress(0, array, segment));
  }

  /// Queues a gradient behind a long kernel, as a backward pass does.
  void produce(int step, int i) {
    if (step > 0)
      ok(device->wait(streams[i], stepped));
    // Rank and parameter decide who is last.
    bool late = (step + i + rank) % 5 == 0;
    float *source = sources[i].data();
    float value = static_cast<float>(rank + 1);
    ok(device->enqueueHost(
        [=] {
          std::this_thread::sleep_for(std::chrono::milliseconds(late ? 50 : 1));
          std::fill(source, source + elements, value);
          return Status();
        },
        streams[i]));
    ok(device->copy(at(FullGrad, i), source, elements * sizeof(float),
                    streams[i]));
    ok(device->record(written[i], streams[i]));
    // Memory that an allocator gave to somebody else in stream order.
    ok(device->enqueueHost(
        [=] {
          std::fill(source, source + elements,
                    std::numeric_limits<float>::quiet_NaN());
          return Status();
        },
        streams[i]));
  }

  void runStep(int step) {
    for (int i = 0; i < producers; ++i)
      produce(step, i);
    for (int i = 0; i < producers; ++i)
      ok(device->wait(main, written[i]));
    const Program &program = optimizer->program();
    ok(optimizer->run(program.findEntry("reduce"), main));
    ok(optimizer->run(program.findEntry("finish"), main));
    ok(device->record(stepped, main));
    ok(device->synchronize(main));
    EXPECT_NEAR(*optimizer->fetchControl("norm", main), 2660.4300404, 1e-6)
        << "step " << step;
    EXPECT_EQ(*optimizer->fetchControl("found_inf", main), 0);
    // The sum on the wire; the average is a factor of the update.
    const ClassInfo &w = optimizer->tables().classes[0];
    for (int i = 0; i < producers; ++i)
      for (int64_t index = 0; index < w.segments[i].elements; ++index)
        ASSERT_EQ(at(ShardGrad, i)[index], 3.0f)
            << "step " << step << " at " << index << " of " << i;
  }

  int rank;
  std::shared_ptr<Device> device;
  ThreadCommunicator replicateAxis;
  ThreadCommunicator shardAxis;
  bool replay;
  std::unique_ptr<Optimizer> optimizer;
  Stream main, streams[producers];
  Event stepped, written[producers];
  std::vector<float> sources[producers];
};

void runCase(bool replay) {
  std::shared_ptr<ThreadGroup> shard = std::make_shared<ThreadGroup>(2);
  std::vector<std::unique_ptr<LateRank>> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(std::make_unique<LateRank>(
        rank, std::make_shared<ThreadGroup>(1), shard, replay));
  std::thread other([&] { ranks[1]->run(); });
  ranks[0]->run();
  other.join();
  EXPECT_EQ(std::memcmp(ranks[0]->params.data(), ranks[1]->params.data(),
                        elements * sizeof(float)),
            0);
}

TEST(ProducerStreams, ReductionWaitsForAllOfThemB34) { runCase(false); }

TEST(ProducerStreams, ReplayedReductionWaitsForAllOfThemB34) { runCase(true); }

} // namespace
} // namespace dfa::rt::test
