// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The life of a bucket on two ranks, one thread each: the stream that fills
// buckets waits for no collective, gathered arrays lie where the transport
// wants them, and a replay is the eager step, whatever changes between steps.

#include "TestKernels.h"
#include "ThreadCommunicator.h"

#include "cpu/CpuDevice.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

namespace dfa::rt::test {
namespace {

constexpr int ranks = 2;
const std::vector<int64_t> sizes = {300, 5, 0, 900, 64};

// As the compiler writes it: the norm of a bucket is on `compute`, behind the
// reduction.
std::string compiledProgram() {
  std::string text = shardedProgram;
  auto replace = [&](const std::string &from, const std::string &to) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("    launch_elements kernel=sharded_norm class=w table=atoms "
          "stream=comm\n    record event=reduced stream=comm\n",
          "    record event=reduced stream=comm\n"
          "    wait event=reduced stream=compute\n"
          "    launch_elements kernel=sharded_norm class=w table=atoms\n");
  return text;
}

class BucketRank {
public:
  BucketRank(int rank, std::shared_ptr<ThreadGroup> shard)
      : rank(rank), device(createCpuDevice(1)),
        axis(*device, std::move(shard), rank) {}

  void create(bool replay) {
    OptimizerOptions options;
    options.device = device;
    options.program = parseOrDie(compiledProgram().c_str());
    options.tables = tablesFor(options.program, sizes, /*bucketBytes=*/1024,
                               /*replicas=*/1, ranks, rank);
    options.kernels = kernels();
    options.axes = {nullptr, &axis};
    options.replay = replay;
    Result<std::unique_ptr<Optimizer>> made =
        Optimizer::create(std::move(options));
    ok(made.status());
    optimizer = std::move(*made);
    hyper({0.01, 0.9, 0.999, 1e-8, 0.1, 1.0});
    ok(optimizer->setControl("average", 1.0 / ranks, Stream()));
  }

  void prepare() {
    ok(optimizer->prepare(Stream()));
    for (size_t segment = 0; segment < sizes.size(); ++segment)
      for (int64_t index = 0; index < elements(segment); ++index)
        at(Master, segment)[index] = 1.0f;
  }

  void hyper(const std::vector<double> &values) {
    for (size_t column = 0; column < values.size(); ++column)
      ok(optimizer->setHyper(0, column, values[column]));
  }

  void fill(int step) {
    for (size_t segment = 0; segment < sizes.size(); ++segment)
      for (int64_t index = 0; index < sizes[segment]; ++index)
        at(FullGrad, segment)[index] =
            std::sin(0.1f * index + step + rank) * (segment + 1);
  }

  void run(const char *entry) {
    ok(optimizer->run(optimizer->program().findEntry(entry), Stream()));
  }

  void runBuckets(Stream stream) {
    const ClassInfo &w = optimizer->tables().classes[0];
    for (int64_t bucket : w.order)
      ok(optimizer->runBucket(optimizer->program().findEntry("reduce"), 0,
                              bucket - w.buckets.begin, stream));
  }

  void ok(const Status &status) { EXPECT_TRUE(status.ok()) << status.str(); }
  float *at(int array, int segment) {
    return static_cast<float *>(*optimizer->segmentAddress(0, array, segment));
  }
  int64_t elements(int segment) {
    return optimizer->tables().classes[0].segments[segment].elements;
  }
  std::vector<float> params() {
    std::vector<float> all;
    for (size_t segment = 0; segment < sizes.size(); ++segment)
      all.insert(all.end(), at(FullParam, segment),
                 at(FullParam, segment) + sizes[segment]);
    return all;
  }

  int rank;
  std::shared_ptr<Device> device;
  ThreadCommunicator axis;
  std::unique_ptr<Optimizer> optimizer;
};

void onRanks(const std::function<void(BucketRank &)> &body) {
  std::shared_ptr<ThreadGroup> group = std::make_shared<ThreadGroup>(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      BucketRank it(rank, group);
      body(it);
    });
  for (std::thread &thread : threads)
    thread.join();
}

// A backward pass goes on while a bucket waits for another rank.
TEST(Buckets, TheProducerWaitsForNoCollective) {
  std::promise<void> produced;
  std::future<void> done = produced.get_future();
  onRanks([&](BucketRank &it) {
    it.create(/*replay=*/false);
    it.prepare();
    it.fill(0);
    if (it.rank == 1)
      EXPECT_EQ(done.wait_for(std::chrono::seconds(20)),
                std::future_status::ready)
          << "the producer's stream waits for this rank";
    Stream producer;
    it.ok(it.device->createStream(producer));
    it.runBuckets(producer);
    it.ok(it.device->synchronize(producer));
    if (it.rank == 0)
      produced.set_value();
    it.ok(it.optimizer->run(it.optimizer->program().findEntry("finish"),
                            producer));
    it.ok(it.device->synchronize(producer));
    std::vector<float> found = it.params();
    // Against whole entries on the same gradients.
    it.create(/*replay=*/false);
    it.prepare();
    it.fill(0);
    it.run("reduce");
    it.run("finish");
    EXPECT_EQ(found, it.params());
    it.optimizer.reset();
    it.device->destroyStream(producer);
  });
}

// The same commands, recorded into a capture of the user's.
TEST(Buckets, RecordIntoTheUsersCapture) {
  onRanks([&](BucketRank &it) {
    it.create(/*replay=*/false);
    it.prepare();
    for (int step = 0; step < 3; ++step) {
      it.fill(step);
      it.run("reduce");
      it.run("finish");
    }
    std::vector<float> issued = it.params();

    it.create(/*replay=*/false);
    it.prepare();
    Stream user;
    it.ok(it.device->createStream(user));
    it.ok(it.device->beginCapture(user));
    it.runBuckets(user);
    int64_t finish = it.optimizer->program().findEntry("finish");
    it.ok(it.optimizer->run(finish, user));
    Graph graph;
    it.ok(it.device->endCapture(user, graph));
    for (int step = 0; step < 3; ++step) {
      it.fill(step);
      it.ok(it.device->launchGraph(graph, user));
      it.ok(it.device->synchronize(user));
    }
    EXPECT_EQ(it.params(), issued);
    it.device->destroyGraph(graph);
    it.optimizer.reset();
    it.device->destroyStream(user);
  });
}

TEST(Buckets, AnOptimizerThatGoesWaitsForItsBuckets) {
  onRanks([&](BucketRank &it) {
    it.create(/*replay=*/false);
    it.prepare();
    it.fill(0);
    it.runBuckets(Stream());
    it.optimizer.reset(); // and its memory with it
  });
}

TEST(Buckets, GatheredArraysLieInMemoryOfTheTransport) {
  std::vector<float> usual;
  for (bool shares : {false, true}) {
    onRanks([&](BucketRank &it) {
      it.axis.shares = shares;
      it.create(/*replay=*/true);
      it.prepare();
      it.fill(0);
      it.run("reduce");
      it.run("finish");
      ASSERT_EQ(it.axis.shared.size(), shares ? 1u : 0u);
      if (it.rank == 0 && !shares)
        usual = it.params();
      if (!shares)
        return;
      EXPECT_EQ(it.params(), usual);
      const std::vector<char> &memory = it.axis.shared[0];
      for (size_t segment = 0; segment < sizes.size(); ++segment) {
        const char *first =
            reinterpret_cast<const char *>(it.at(FullParam, segment));
        if (sizes[segment] == 0)
          continue;
        EXPECT_GE(first, memory.data());
        EXPECT_LE(first + 4 * sizes[segment], memory.data() + memory.size());
      }
    });
  }
}

TEST(Buckets, WhatTheCallerBoundStaysThere) {
  onRanks([&](BucketRank &it) {
    it.axis.shares = true;
    it.create(/*replay=*/false);
    std::vector<float> own(4096);
    it.ok(it.optimizer->bindBucket(0, FullParam, 0, own.data()));
    it.prepare();
    EXPECT_TRUE(it.axis.shared.empty());
  });
}

// Eager and replay beside each other; both on the same two ranks.
TEST(Buckets, ShardedReplayEqualsEagerOver100Steps) {
  constexpr int skipped = 50, loaded = 70;
  onRanks([&](BucketRank &replay) {
    // The two take turns on one axis.
    replay.create(/*replay=*/true);
    std::unique_ptr<Optimizer> recorded = std::move(replay.optimizer);
    replay.create(/*replay=*/false);
    std::unique_ptr<Optimizer> issued = std::move(replay.optimizer);
    BucketRank &it = replay;
    auto each = [&](const std::function<void()> &body) {
      for (std::unique_ptr<Optimizer> *one : {&recorded, &issued}) {
        it.optimizer = std::move(*one);
        body();
        *one = std::move(it.optimizer);
      }
    };
    auto read = [&](std::unique_ptr<Optimizer> &one) {
      std::swap(it.optimizer, one);
      std::vector<float> all = it.params();
      for (int array : {Master, M, V})
        for (size_t segment = 0; segment < sizes.size(); ++segment)
          all.insert(all.end(), it.at(array, segment),
                     it.at(array, segment) + it.elements(segment));
      all.push_back(float(*it.optimizer->controlMirror("norm")));
      all.push_back(float(*it.optimizer->controlMirror("step")));
      std::swap(it.optimizer, one);
      return all;
    };
    each([&] { it.prepare(); });
    for (int step = 0; step < 100; ++step) {
      each([&] {
        if (step == loaded) // a checkpoint, in place
          for (size_t segment = 0; segment < sizes.size(); ++segment) {
            for (int64_t index = 0; index < it.elements(segment); ++index) {
              it.at(Master, segment)[index] = 0.5f + 0.001f * index;
              it.at(M, segment)[index] = 0.01f;
              it.at(V, segment)[index] = 0.02f;
            }
            it.ok(it.optimizer->setStep(0, segment, 7, Stream()));
          }
        it.hyper({0.01 / (1 + step), 0.9 - 0.001 * (step % 5),
                  0.99 + 0.00005 * step, 1e-8, 0.001 * (step % 7),
                  step % 3 ? 1.0 : 0.5});
        it.ok(it.optimizer->setControl("scale", 1 << (step % 4), Stream()));
        it.fill(step);
        if (step == skipped && it.rank == 1)
          it.at(FullGrad, 3)[2] = std::numeric_limits<float>::infinity();
        it.run("reduce");
        it.run("finish");
      });
      std::vector<float> a = read(recorded), b = read(issued);
      ASSERT_EQ(a.size(), b.size());
      ASSERT_EQ(0, std::memcmp(a.data(), b.data(), a.size() * sizeof(float)))
          << "step " << step;
    }
    EXPECT_EQ(*recorded->controlMirror("skipped"), 1);
    EXPECT_EQ(*recorded->fetchStep(0, 0, Stream()), 7 + 100 - loaded);
  });
}

} // namespace
} // namespace dfa::rt::test
