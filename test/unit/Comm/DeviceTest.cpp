// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives on the streams of a device, eager, recorded and replayed, and
// what recordings mean for closing.

#include "Ranks.h"

#include "cpu/CpuDevice.h"

#include <gtest/gtest.h>

#include <csignal>

using namespace dfa::rt;

namespace {

/// Doubles the sum of `value` over two ranks: two recorded collectives.
Status record(Device &device, Communicator &comm, int64_t *value,
              int64_t *gathered, Stream stream, Graph &graph) {
  DFA_RT_TRY(device.beginCapture(stream));
  comm.label("all_reduce", 0);
  DFA_RT_TRY(
      comm.allReduce(value, value, 1, DataType::I64, ReduceOp::Sum, stream));
  comm.label("all_gather", 1);
  DFA_RT_TRY(comm.allGather(value, gathered, 1, DataType::I64, stream));
  return device.endCapture(stream, graph);
}

TEST(GlooOnDevice, QueuesOnAStreamAndReplays) {
  World world = World::tcp(2, {{"shard", 2}});
  expectAllSucceed(2, [&](int rank, const Processes::Report &report) {
    auto run = [&]() -> Status {
      std::unique_ptr<Device> device = createCpuDevice(1);
      World mine = world;
      mine.device = device.get();
      Rank joined;
      DFA_RT_TRY(join(mine, rank, joined));
      Communicator &comm = *joined.set->axis("shard");
      Stream stream;
      DFA_RT_TRY(device->createStream(stream));

      int64_t value = rank + 1, gathered[2] = {0, 0};
      DFA_RT_TRY(comm.allReduce(&value, &value, 1, DataType::I64, ReduceOp::Sum,
                                stream));
      DFA_RT_TRY(device->synchronize(stream));
      if (value != 3)
        return DFA_RT_ERROR(Internal, "eager: %lld", (long long)value);

      Graph graph;
      DFA_RT_TRY(record(*device, comm, &value, gathered, stream, graph));
      DFA_RT_TRY(device->synchronize(stream));
      if (value != 3 || gathered[0] != 0)
        return DFA_RT_ERROR(Internal, "the recording itself ran");
      uint64_t before = joined.set->log().ended();
      for (int replay = 0; replay < 3; ++replay)
        DFA_RT_TRY(device->launchGraph(graph, stream));
      DFA_RT_TRY(device->synchronize(stream));
      // 3, doubled three times.
      if (value != 24 || gathered[0] != 24 || gathered[1] != 24)
        return DFA_RT_ERROR(Internal, "replayed: %lld", (long long)value);
      if (joined.set->log().ended() != before + 6)
        return DFA_RT_ERROR(Internal, "replays are not numbered");
      device->destroyGraph(graph);
      device->destroyStream(stream);
      DFA_RT_TRY(meet(world, rank, joined, "end"));
      return joined.set->close();
    };
    Status status = run();
    report(status.str());
    return status.ok() ? 0 : 1;
  });
}

TEST(GlooOnDevice, AKillInAReplayIsAnErrorOfTheStream) {
  World world = World::tcp(2, {{"shard", 2}});
  world.timeoutSeconds = 20;
  Processes processes(2, [&](int rank, const Processes::Report &report) {
    auto run = [&]() -> Status {
      std::unique_ptr<Device> device = createCpuDevice(1);
      World mine = world;
      mine.device = device.get();
      Rank joined;
      DFA_RT_TRY(join(mine, rank, joined));
      Stream stream;
      DFA_RT_TRY(device->createStream(stream));
      int64_t value = 0, gathered[2];
      Graph graph;
      DFA_RT_TRY(record(*device, *joined.set->axis("shard"), &value, gathered,
                        stream, graph));
      for (int i = 0;; ++i) {
        if (rank == 1 && i == 50)
          ::raise(SIGKILL);
        DFA_RT_TRY(device->launchGraph(graph, stream));
        DFA_RT_TRY(device->synchronize(stream));
      }
    };
    report(run().str());
    return 7;
  });
  std::vector<ChildResult> results = processes.wait(25);
  EXPECT_EQ(results[0].code, 7);
  EXPECT_LT(results[0].seconds, 20);
  const std::string &report = results[0].report;
  EXPECT_NE(report.find("rank 1 died"), std::string::npos) << report;
  EXPECT_TRUE(report.find("all_reduce of bucket 0") != std::string::npos ||
              report.find("all_gather of bucket 1") != std::string::npos)
      << report;
}

TEST(NcclOnDevice, DoesNotCloseWhileARecordingLives) {
  // The stand-in runs at once, also while the stream records; what counts here
  // is that the recording is noted.
  std::unique_ptr<Device> device = createCpuDevice(1);
  World world = World::tcp(1, {{"shard", 1}});
  world.transport = TransportKind::Nccl;
  world.nccl = FAKE_NCCL;
  world.device = device.get();
  Rank joined;
  Status status = join(world, 0, joined);
  ASSERT_TRUE(status.ok()) << status.str();
  Stream stream;
  ASSERT_TRUE(device->createStream(stream).ok());
  float value = 1;
  ASSERT_TRUE(device->beginCapture(stream).ok());
  Communicator &comm = *joined.set->axis("shard");
  comm.label("all_reduce", 4);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(
        comm.allReduce(&value, &value, 1, DataType::F32, ReduceOp::Sum, stream)
            .ok());
  // The word says recording 1, position 2.
  EXPECT_EQ(SequenceLog::numberName(joined.set->log().ended()),
            "2 of recording 1");
  CollectiveInfo info;
  ASSERT_TRUE(joined.set->log().lookup(joined.set->log().ended(), info));
  EXPECT_EQ(info.str(), "all_reduce of bucket 4 over axis 'shard'");
  Graph graph;
  ASSERT_TRUE(device->endCapture(stream, graph).ok());

  status = joined.set->close();
  EXPECT_EQ(status.code(), Code::FailedPrecondition);
  EXPECT_EQ(status.message(),
            "close: 2 recorded collectives still use the communicators; "
            "destroy the recordings first");
  // A refused close leaves all in working order.
  EXPECT_TRUE(
      comm.allReduce(&value, &value, 1, DataType::F32, ReduceOp::Sum, stream)
          .ok());
  device->destroyGraph(graph);
  status = joined.set->close();
  EXPECT_TRUE(status.ok()) << status.str();
  device->destroyStream(stream);
}

} // namespace
