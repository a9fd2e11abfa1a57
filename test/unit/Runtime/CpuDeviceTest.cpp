// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The thread pool, and streams, events and recordings on the CPU.

#include "cpu/CpuDevice.h"
#include "cpu/ThreadPool.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

namespace dfa::rt::test {
namespace {

// === Thread pool ============================================================

struct Counts {
  std::vector<std::atomic<int>> hits;
  explicit Counts(size_t size) : hits(size) {}
  static void add(void *context, int64_t begin, int64_t end) {
    Counts &counts = *static_cast<Counts *>(context);
    for (int64_t index = begin; index < end; ++index)
      ++counts.hits[index];
  }
};

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t size : {0, 1, 2, 7, 1000}) {
      Counts counts(size + 10);
      pool.run(5, 5 + size, Counts::add, &counts);
      for (int64_t index = 0; index < size + 10; ++index)
        ASSERT_EQ(counts.hits[index], index >= 5 && index < 5 + size);
    }
  }
}

TEST(ThreadPool, ManyCallsFromSeveralThreads) {
  ThreadPool pool(3);
  Counts counts(100);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round)
        pool.run(0, 100, Counts::add, &counts);
    });
  for (std::thread &caller : callers)
    caller.join();
  for (std::atomic<int> &hit : counts.hits)
    ASSERT_EQ(hit, 2000);
}

// === Streams and events =====================================================

class Cpu : public testing::Test {
protected:
  void ok(const Status &status) { ASSERT_TRUE(status.ok()) << status.str(); }

  Status later(Stream stream, std::function<void()> work) {
    return device->enqueueHost(
        [=] {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          work();
          return Status();
        },
        stream);
  }

  std::unique_ptr<Device> device = createCpuDevice(2);
};

TEST_F(Cpu, NullStreamRunsAtOnce) {
  int value = 0;
  ok(later(Stream(), [&] { value = 1; }));
  EXPECT_EQ(value, 1);
  int from = 7;
  ok(device->copy(&value, &from, sizeof(value), Stream()));
  EXPECT_EQ(value, 7);
}

TEST_F(Cpu, StreamsAreOrderedByEvents) {
  Stream left;
  Stream right;
  Event event;
  ok(device->createStream(left));
  ok(device->createStream(right));
  ok(device->createEvent(event));
  for (int round = 0; round < 20; ++round) {
    std::vector<int> order;
    ok(later(left, [&] { order.push_back(1); }));
    ok(device->record(event, left));
    ok(device->wait(right, event));
    ok(device->enqueueHost(
        [&] {
          order.push_back(2);
          return Status();
        },
        right));
    ok(device->synchronize(right));
    ASSERT_EQ(order, (std::vector<int>{1, 2}));
  }
  // The immediate stream waits as well.
  std::atomic<int> value{0};
  ok(later(left, [&] { value = 3; }));
  ok(device->record(event, left));
  ok(device->wait(Stream(), event));
  EXPECT_EQ(value, 3);
  device->destroyEvent(event);
  device->destroyStream(left);
  device->destroyStream(right);
}

TEST_F(Cpu, FailureSticksAndTravelsThroughEvents) {
  Stream stream;
  Event event;
  ok(device->createStream(stream));
  ok(device->createEvent(event));
  ok(device->enqueueHost(
      [] { return DFA_RT_ERROR(CollectiveError, "a peer is gone"); }, stream));
  bool ran = false;
  (void)device->enqueueHost(
      [&] {
        ran = true;
        return Status();
      },
      stream);
  (void)device->record(event, stream);
  EXPECT_EQ(device->wait(Stream(), event).message(), "a peer is gone");
  EXPECT_EQ(device->synchronize(stream).code(), Code::CollectiveError);
  EXPECT_FALSE(ran);
  device->destroyEvent(event);
  device->destroyStream(stream);
}

// A step that failed is taken down while its tasks are still queued.
TEST_F(Cpu, EventsMayGoBeforeTheyAreReached) {
  Stream first;
  Stream second;
  Stream third;
  for (Stream *stream : {&first, &second, &third})
    ok(device->createStream(*stream));
  std::atomic<bool> openFirst{false}, openSecond{false}, passed{false};
  auto blockUntil = [&](Stream stream, std::atomic<bool> &open) {
    ok(device->enqueueHost(
        [&open] {
          while (!open)
            std::this_thread::yield();
          return Status();
        },
        stream));
  };
  Event gone;
  ok(device->createEvent(gone));
  blockUntil(first, openFirst);
  ok(device->record(gone, first));
  ok(device->wait(third, gone));
  device->destroyEvent(gone);
  // Most likely in the memory of the other.
  Event event;
  ok(device->createEvent(event));
  blockUntil(second, openSecond);
  ok(device->record(event, second));
  openFirst = true;
  ok(device->synchronize(first));
  ok(device->synchronize(third));
  ok(device->wait(third, event));
  ok(device->enqueueHost(
      [&] {
        passed = true;
        return Status();
      },
      third));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  openSecond = true;
  ok(device->synchronize(third));
  EXPECT_TRUE(passed);
  device->destroyEvent(event);
  for (Stream stream : {first, second, third})
    device->destroyStream(stream);
}

TEST_F(Cpu, Copy2DMovesColumns) {
  std::vector<uint32_t> wide(12);
  std::vector<uint32_t> narrow = {1, 2, 3};
  ok(device->copy2D(&wide[2], 16, narrow.data(), 4, 4, 3, Stream()));
  EXPECT_EQ(wide, (std::vector<uint32_t>{0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0}));
}

// === Recordings =============================================================

TEST_F(Cpu, RecordingJoinsStreamsThroughEvents) {
  Stream main;
  Stream side;
  Event fork;
  Event join;
  ok(device->createStream(main));
  ok(device->createStream(side));
  ok(device->createEvent(fork));
  ok(device->createEvent(join));
  int value = 0;
  ok(device->beginCapture(main));
  uint64_t id = 0;
  ok(device->captureId(main, id));
  EXPECT_NE(id, 0u);
  ok(device->captureId(side, id));
  EXPECT_EQ(id, 0u);
  ok(device->record(fork, main));
  ok(device->wait(side, fork));
  ok(device->captureId(side, id));
  EXPECT_NE(id, 0u);
  ok(device->enqueueHost(
      [&] {
        value = 2 * value + 1;
        return Status();
      },
      side));
  ok(device->record(join, side));
  ok(device->wait(main, join));
  ok(device->enqueueHost(
      [&] {
        value *= 10;
        return Status();
      },
      main));
  Graph graph;
  ok(device->endCapture(main, graph));
  EXPECT_EQ(value, 0);
  ok(device->captureId(side, id));
  EXPECT_EQ(id, 0u);
  ok(device->launchGraph(graph, Stream()));
  EXPECT_EQ(value, 10);
  ok(device->launchGraph(graph, main));
  ok(device->synchronize(main));
  EXPECT_EQ(value, 210);
  device->destroyGraph(graph);
  // An event of a recording means nothing outside of it.
  EXPECT_EQ(device->wait(Stream(), fork).code(), Code::FailedPrecondition);
  for (Event event : {fork, join})
    device->destroyEvent(event);
  for (Stream stream : {main, side})
    device->destroyStream(stream);
}

TEST_F(Cpu, RecordingRefusesEventsFromBefore) {
  Stream main;
  Event event;
  ok(device->createStream(main));
  ok(device->createEvent(event));
  ok(device->record(event, Stream()));
  ok(device->beginCapture(main));
  EXPECT_EQ(device->wait(main, event).code(), Code::FailedPrecondition);
  EXPECT_EQ(device->beginCapture(main).code(), Code::FailedPrecondition);
  Graph graph;
  ok(device->endCapture(main, graph));
  EXPECT_EQ(device->endCapture(main, graph).code(), Code::FailedPrecondition);
  EXPECT_EQ(device->beginCapture(Stream()).code(), Code::InvalidArgument);
  device->destroyGraph(graph);
  device->destroyEvent(event);
  device->destroyStream(main);
}

TEST_F(Cpu, RecordingKeepsResources) {
  Stream main;
  ok(device->createStream(main));
  std::shared_ptr<int> resource = std::make_shared<int>(1);
  EXPECT_EQ(device->retainInCapture(main, resource).code(),
            Code::FailedPrecondition);
  ok(device->beginCapture(main));
  ok(device->retainInCapture(main, resource));
  Graph graph;
  ok(device->endCapture(main, graph));
  EXPECT_EQ(resource.use_count(), 2);
  device->destroyGraph(graph);
  EXPECT_EQ(resource.use_count(), 1);
  device->destroyStream(main);
}

// === Memory =================================================================

TEST_F(Cpu, MemoryIsAlignedAndMayComeFromTheCaller) {
  void *memory = nullptr;
  ok(device->allocate(3, &memory));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
  device->free(memory, 3);
  EXPECT_EQ(device->allocate(SIZE_MAX, &memory).code(), Code::OutOfMemory);

  struct Log {
    size_t taken = 0;
    size_t given = 0;
    char bytes[64];
  } log;
  AllocatorCallbacks callbacks;
  callbacks.context = &log;
  callbacks.allocate = [](void *context, size_t bytes, void *) -> void * {
    Log &log = *static_cast<Log *>(context);
    if (bytes > sizeof(log.bytes))
      return nullptr;
    log.taken += bytes;
    return log.bytes;
  };
  callbacks.free = [](void *context, void *, size_t bytes) {
    static_cast<Log *>(context)->given += bytes;
  };
  device->setAllocator(callbacks);
  ok(device->allocate(40, &memory));
  EXPECT_EQ(memory, log.bytes);
  device->free(memory, 40);
  EXPECT_EQ(log.taken, 40u);
  EXPECT_EQ(log.given, 40u);
  EXPECT_EQ(device->allocate(65, &memory).code(), Code::OutOfMemory);
}

TEST_F(Cpu, RefusesAnImage) {
  KernelSource source;
  source.image = "x";
  source.imageBytes = 1;
  Module module;
  EXPECT_EQ(device->loadModule(source, module).code(), Code::InvalidArgument);
}

} // namespace
} // namespace dfa::rt::test
