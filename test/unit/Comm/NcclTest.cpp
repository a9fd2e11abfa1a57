// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The NCCL transport over a stand-in library (FakeNccl.cpp): which copy is
// loaded, what is refused, that axes are split off, that nothing hangs when a
// rank does not come, that recordings keep communicators alive. Ranks are
// threads here. Real devices are tested in test/Integration.

#include "Ranks.h"

#include "comm/NcclLibrary.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <mutex>
#include <thread>

using namespace dfa::rt;

namespace {

Environment withNccl(const char *path) {
  return [path](const char *name) -> const char * {
    return std::string(name) == "DFA_NCCL" ? path : nullptr;
  };
}

TEST(NcclLibrary, LoadsTheCopyThatIsNamed) {
  std::shared_ptr<const NcclLibrary> library;
  Status status = NcclLibrary::load(withNccl(FAKE_NCCL), library);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(library->version, 22809);
  EXPECT_EQ(library->path, FAKE_NCCL);
  EXPECT_EQ(library->str().rfind("2.28.9 (" FAKE_NCCL, 0), 0u);
}

TEST(NcclLibrary, RefusesWithAReason) {
  std::shared_ptr<const NcclLibrary> library;
  Status status = NcclLibrary::load(withNccl("/nowhere/libnccl.so"), library);
  EXPECT_EQ(status.code(), Code::NotFound);
  EXPECT_NE(status.message().find("DFA_NCCL: cannot load '/nowhere"),
            std::string::npos);
  status = NcclLibrary::load(withNccl(FAKE_NCCL_OLD), library);
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_EQ(
      status.message(),
      "NCCL: expected version 2.18.0 or later, found 2.17.1 in " FAKE_NCCL_OLD);
  status = NcclLibrary::load(withNccl(FAKE_NCCL_PARTIAL), library);
  EXPECT_EQ(status.code(), Code::NotFound);
  EXPECT_EQ(status.message(),
            "NCCL: expected the symbol ncclCommSplit in " FAKE_NCCL_PARTIAL);
}

TEST(NcclLibrary, ReusesACopyThatIsLoadedAlready) {
  // In a process of its own: a loaded library stays.
  expectAllSucceed(1, [](int, const Processes::Report &report) {
    // Its soname is libnccl.so.2, and its folder is on no search path.
    std::shared_ptr<const NcclLibrary> library;
    Status status = NcclLibrary::load(withNccl(nullptr), library);
    bool installed = status.ok();
    if (!installed && status.code() != Code::NotFound)
      return 1;
    if (installed)
      return 0; // a real NCCL is on this machine and comes first
    if (!::dlopen(FAKE_NCCL_SONAME, RTLD_NOW | RTLD_LOCAL))
      return 2;
    status = NcclLibrary::load(withNccl(nullptr), library);
    report(status.str());
    return status.ok() && library->reused &&
                   library->path == FAKE_NCCL_SONAME &&
                   library->str() == "2.28.9 (" FAKE_NCCL_SONAME
                                     ", already loaded)"
               ? 0
               : 3;
  });
}

TEST(Nccl, MapsTypesAndReductions) {
  int type = -1, op = -1;
  ASSERT_TRUE(ncclReduction(DataType::BF16, ReduceOp::Sum, type, op).ok());
  EXPECT_EQ(type, 9);
  EXPECT_EQ(op, 0);
  ASSERT_TRUE(ncclReduction(DataType::U32, ReduceOp::Or, type, op).ok());
  EXPECT_EQ(type, 3);
  EXPECT_EQ(op, 2);
  EXPECT_EQ(ncclReduction(DataType::I16, ReduceOp::Sum, type, op).code(),
            Code::Unsupported);
  for (DataType any :
       {DataType::F64, DataType::F32, DataType::BF16, DataType::I16,
        DataType::I8, DataType::Remainder, DataType::F8E4M3}) {
    constexpr size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    size_t factor = 0;
    ncclMovement(any, type, factor);
    EXPECT_EQ(widths[type] * factor, sizeOf(any)) << name(any);
  }
}

/// Runs `body` on one thread a rank; returns its results.
std::vector<Status> onThreads(int ranks,
                              const std::function<Status(int rank)> &body) {
  std::vector<Status> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { results[size_t(rank)] = body(rank); });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

World ncclWorld(int size, std::vector<MeshAxis> axes) {
  World world = World::tcp(size, std::move(axes));
  world.transport = TransportKind::Nccl;
  world.nccl = FAKE_NCCL;
  return world;
}

Status expectEqual(const char *what, const std::vector<float> &found,
                   const std::vector<float> &expected) {
  if (found == expected)
    return Status();
  return DFA_RT_ERROR(Internal, "%s differs", what);
}

TEST(Nccl, RunsCollectivesOnSplitAxes) {
  World world = ncclWorld(4, {{"replicate", 2}, {"shard", 2}});
  std::vector<Status> results = onThreads(4, [&](int rank) -> Status {
    Rank joined;
    DFA_RT_TRY(join(world, rank, joined));
    Communicator &shard = *joined.set->axis("shard");
    Communicator &replicate = *joined.set->axis("replicate");
    if (std::string(shard.name()) != "nccl" || shard.ordersByRank() ||
        !shard.capturable() || shard.rank() != rank % 2 ||
        replicate.rank() != rank / 2)
      return DFA_RT_ERROR(Internal, "wrong place");
    // Rank r holds r + 1 in both halves.
    float value = float(rank + 1);
    std::vector<float> bucket(8, value), part(4), whole(8);
    DFA_RT_TRY(shard.reduceScatter(bucket.data(), part.data(), 4, DataType::F32,
                                   ReduceOp::Sum, Stream()));
    DFA_RT_TRY(expectEqual("reduceScatter", part,
                           std::vector<float>(4, rank < 2 ? 3.0f : 7.0f)));
    DFA_RT_TRY(replicate.allReduce(part.data(), part.data(), 4, DataType::F32,
                                   ReduceOp::Sum, Stream()));
    DFA_RT_TRY(expectEqual("allReduce", part, std::vector<float>(4, 10.0f)));
    part.assign(4, value);
    DFA_RT_TRY(
        shard.allGather(part.data(), whole.data(), 4, DataType::F32, Stream()));
    float first = float(rank / 2 * 2 + 1);
    DFA_RT_TRY(expectEqual("allGather", whole,
                           {first, first, first, first, first + 1, first + 1,
                            first + 1, first + 1}));
    float root = value;
    DFA_RT_TRY(joined.set->mesh()->broadcast(&root, &root, 1, DataType::F32, 3,
                                             Stream()));
    DFA_RT_TRY(expectEqual("broadcast", {root}, {4.0f}));
    uint32_t bits = rank == 2;
    DFA_RT_TRY(joined.set->mesh()->allReduce(&bits, &bits, 1, DataType::U32,
                                             ReduceOp::Or, Stream()));
    DFA_RT_TRY(expectEqual("or", {float(bits)}, {1.0f}));
    DFA_RT_TRY(joined.set->mesh()->barrier(Stream()));
    DFA_RT_TRY(joined.set->agreePlan("the plan"));
    if (joined.set->describe().find("nccl 2.28.9") == std::string::npos)
      return DFA_RT_ERROR(Internal, "%s", joined.set->describe().c_str());
    DFA_RT_TRY(meet(world, rank, joined, "end"));
    return joined.set->close();
  });
  for (const Status &status : results)
    EXPECT_TRUE(status.ok()) << status.str();
}

TEST(Nccl, ARankThatNeverComesIsATimeoutThatNamesIt) {
  World world = ncclWorld(3, {{"shard", 3}});
  world.timeoutSeconds = 1.5;
  std::vector<Status> results = onThreads(3, [&](int rank) -> Status {
    Rank joined;
    DFA_RT_TRY(openWorldStore(world, rank, joined.store));
    if (rank == 1) // alive, but does not call create()
      return meet(world, rank, joined, "end");
    Status status = join(world, rank, joined);
    DFA_RT_TRY(meet(world, rank, joined, "end"));
    return status;
  });
  EXPECT_TRUE(results[1].ok()) << results[1].str();
  for (int rank : {0, 2}) {
    EXPECT_EQ(results[size_t(rank)].code(), Code::CollectiveError);
    EXPECT_NE(results[size_t(rank)].message().find("connect"),
              std::string::npos);
    EXPECT_NE(results[size_t(rank)].message().find(
                  "rank 1 has not entered it; it never reported"),
              std::string::npos)
        << results[size_t(rank)].str();
  }
}

TEST(Nccl, ALateRankIsNamedAndWhatIsInFlightIsAborted) {
  // The stand-in's collectives block until all ranks come or one aborts: the
  // watchdog has to do that.
  World world = ncclWorld(3, {{"shard", 3}});
  world.timeoutSeconds = 1.5;
  std::vector<Status> results = onThreads(3, [&](int rank) -> Status {
    Rank joined;
    DFA_RT_TRY(join(world, rank, joined));
    Communicator &shard = *joined.set->axis("shard");
    float value = 1;
    DFA_RT_TRY(shard.allReduce(&value, &value, 1, DataType::F32, ReduceOp::Sum,
                               Stream()));
    Status status;
    if (rank != 2) {
      shard.label("all_reduce", 11);
      status = shard.allReduce(&value, &value, 1, DataType::F32, ReduceOp::Sum,
                               Stream());
    }
    DFA_RT_TRY(meet(world, rank, joined, "end"));
    CollectiveFailure failure;
    if (rank != 2 &&
        (!joined.set->failure(failure) || failure.rank != 2 ||
         failure.bucket != 11 || failure.collective != "all_reduce"))
      return DFA_RT_ERROR(Internal, "failure: %s", failure.str().c_str());
    // A launch after a failure is refused.
    if (rank != 2 && shard
                         .allReduce(&value, &value, 1, DataType::F32,
                                    ReduceOp::Sum, Stream())
                         .ok())
      return DFA_RT_ERROR(Internal, "launched after a failure");
    return status;
  });
  EXPECT_TRUE(results[2].ok()) << results[2].str();
  for (int rank : {0, 1})
    EXPECT_NE(results[size_t(rank)].message().find(
                  "all_reduce of bucket 11: rank 2 has not entered it"),
              std::string::npos)
        << results[size_t(rank)].str();
}

TEST(Nccl, CloseDestroysAndDestructionAloneDoesNot) {
  TemporaryDirectory directory;
  std::string log = directory.path() + "/log";
  ::setenv("FAKE_NCCL_LOG", log.c_str(), 1);
  for (bool close : {false, true}) {
    World world = ncclWorld(1, {{"shard", 1}});
    Rank joined;
    Status status = join(world, 0, joined);
    ASSERT_TRUE(status.ok()) << status.str();
    if (close) {
      EXPECT_TRUE(joined.set->close().ok());
      EXPECT_TRUE(joined.set->close().ok()) << "twice is harmless";
    }
  }
  ::unsetenv("FAKE_NCCL_LOG");
  std::ifstream file(log);
  std::string line, all;
  while (std::getline(file, line))
    all += line + " ";
  EXPECT_EQ(all, "init split init split destroy destroy ");
}

} // namespace
