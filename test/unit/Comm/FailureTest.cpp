// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Peers that die, come late, differ, leave or fail by themselves: every
// survivor gets an error that names rank, collective and bucket, in time.
// DFA_KILL_REPEATS sets how often the random kill is tried (5 by default).

#include "Ranks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>
#include <unistd.h>

using namespace dfa::rt;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A training loop's exchange over three buckets, until it fails.
Status trainUntilFailure(CommSet &set, int64_t steps) {
  Communicator &comm = *set.axis("shard");
  const int64_t count = 3000;
  std::vector<float> bucket(size_t(count * comm.size()), 1.0f), shard(count);
  std::vector<double> sums(1, 1.0);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t b = 0; b < 3; ++b) {
      comm.label("reduce_scatter", b);
      DFA_RT_TRY(comm.reduceScatter(bucket.data(), shard.data(), count,
                                    DataType::F32, ReduceOp::Sum, Stream()));
    }
    comm.label("all_reduce", -1);
    DFA_RT_TRY(comm.allReduce(sums.data(), sums.data(), 1, DataType::F64,
                              ReduceOp::Max, Stream()));
    for (int64_t b = 0; b < 3; ++b) {
      comm.label("all_gather", b);
      DFA_RT_TRY(comm.allGather(shard.data(), bucket.data(), count,
                                DataType::F32, Stream()));
    }
  }
  return Status();
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

bool namesCollective(const std::string &text) {
  bool bucket = contains(text, "of bucket 0") ||
                contains(text, "of bucket 1") || contains(text, "of bucket 2");
  return (bucket &&
          (contains(text, "reduce_scatter") || contains(text, "all_gather"))) ||
         contains(text, "all_reduce of the control exchange");
}

/// Kills `victim` after `delay` and checks what the survivors say.
void killOnce(World world, int victim, Milliseconds delay,
              double timeoutSeconds) {
  world.timeoutSeconds = timeoutSeconds;
  Processes processes(
      world.size, [&](int rank, const Processes::Report &report) {
        // As a launcher leaves it: a broken pipe would kill.
        ::signal(SIGPIPE, SIG_DFL);
        Rank joined;
        Status status = join(world, rank, joined);
        if (!status.ok()) {
          report("[connect] " + status.str());
          return 2;
        }
        report("[joined]");
        status = trainUntilFailure(*joined.set, INT64_MAX);
        CollectiveFailure failure;
        if (!joined.set->failure(failure)) {
          report("[no failure] " + status.str());
          return 3;
        }
        report("[culprit " + std::to_string(failure.rank) + "] [bucket " +
               std::to_string(failure.bucket) + "] [" + failure.collective +
               "] " + status.str());
        // A later call fails at once with the same culprit.
        Status again = joined.set->axis("shard")->barrier(Stream());
        return again.code() == Code::CollectiveError ? 7 : 4;
      });
  ASSERT_TRUE(processes.waitForReports("[joined]", 30));
  std::this_thread::sleep_for(delay);
  processes.kill(victim, SIGKILL);
  Clock::time_point killed = Clock::now();
  std::vector<ChildResult> results = processes.wait(timeoutSeconds + 5);
  EXPECT_LT(secondsSince(killed), timeoutSeconds);
  for (int rank = 0; rank < world.size; ++rank) {
    const ChildResult &result = results[size_t(rank)];
    SCOPED_TRACE("rank " + std::to_string(rank) + " of victim " +
                 std::to_string(victim) + " after " +
                 std::to_string(delay.count()) + " ms: " + result.report);
    if (rank == victim) {
      EXPECT_EQ(result.signal, SIGKILL);
      continue;
    }
    EXPECT_FALSE(result.late) << "hangs";
    EXPECT_EQ(result.signal, 0) << "died silently";
    EXPECT_EQ(result.code, 7);
    EXPECT_TRUE(
        contains(result.report, "[culprit " + std::to_string(victim) + "]"));
    EXPECT_TRUE(
        contains(result.report, ": rank " + std::to_string(victim) + " died"));
    EXPECT_TRUE(namesCollective(result.report));
  }
}

int repeats() {
  const char *text = std::getenv("DFA_KILL_REPEATS");
  return text ? std::atoi(text) : 5;
}

TEST(Kill, EverySurvivorNamesRankCollectiveAndBucket) {
  std::random_device seed;
  unsigned first = seed();
  std::mt19937 random(first);
  RecordProperty("seed", int(first));
  for (int i = 0; i < repeats() && !HasFailure(); ++i) {
    int victim = int(random() % 4);
    Milliseconds delay(int(random() % 300));
    killOnce(World::tcp(4, {{"shard", 4}}), victim, delay, 20);
  }
}

TEST(Kill, IsFoundByHeartbeatsAloneOverAFileStore) {
  TemporaryDirectory directory;
  killOnce(World::file(4, {{"shard", 4}}, directory.path()), 2,
           Milliseconds(300), 15);
}

TEST(Kill, DuringConnectionIsNoHang) {
  // One rank never comes: the store has seen it, but it dies before it
  // connects.
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 10;
  Processes processes(3, [&](int rank, const Processes::Report &report) {
    Rank joined;
    if (rank == 1) {
      (void)openWorldStore(world, rank, joined.store);
      ::raise(SIGKILL);
    }
    Status status = join(world, rank, joined);
    report(status.str());
    return status.ok() ? 0 : 7;
  });
  std::vector<ChildResult> results = processes.wait(20);
  for (int rank : {0, 2}) {
    EXPECT_EQ(results[size_t(rank)].code, 7);
    EXPECT_TRUE(contains(results[size_t(rank)].report, "connect"));
    EXPECT_TRUE(contains(results[size_t(rank)].report, ": rank 1 died"))
        << results[size_t(rank)].report;
  }
}

// Wherever in the connection the peer dies: nobody waits for the timeout.
TEST(Kill, AtAnyPointOfTheConnectionIsNoHang) {
  for (int microseconds : {200, 1000, 2000, 4000, 8000, 16000, 32000, 64000}) {
    World world = World::tcp(3, {{"shard", 3}});
    world.timeoutSeconds = 20;
    Processes processes(3, [&](int rank, const Processes::Report &report) {
      ::signal(SIGPIPE, SIG_DFL);
      Rank joined;
      Status status = openWorldStore(world, rank, joined.store);
      if (rank == 1)
        std::thread([microseconds] {
          std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
          ::kill(::getpid(), SIGKILL);
        }).detach();
      if (status.ok())
        status = join(world, rank, joined);
      if (status.ok())
        status = trainUntilFailure(*joined.set, INT64_MAX);
      report(status.str());
      return 7;
    });
    std::vector<ChildResult> results = processes.wait(25);
    for (int rank : {0, 2}) {
      EXPECT_EQ(results[size_t(rank)].code, 7);
      EXPECT_LT(results[size_t(rank)].seconds, 10) << microseconds << " us";
      EXPECT_TRUE(contains(results[size_t(rank)].report, ": rank 1 died"))
          << results[size_t(rank)].report;
    }
  }
}

/// Runs a world whose rank `odd` behaves as `body` says after joining, while
/// the others train; returns the reports.
std::vector<ChildResult>
withOddRank(World world, int odd, double limit,
            const std::function<int(Rank &, const Processes::Report &)> &body) {
  Processes processes(
      world.size, [&](int rank, const Processes::Report &report) {
        ::signal(SIGPIPE, SIG_DFL);
        Rank joined;
        Status status = join(world, rank, joined);
        if (!status.ok()) {
          report("[connect] " + status.str());
          return 2;
        }
        if (rank == odd)
          return body(joined, report);
        Clock::time_point begin = Clock::now();
        status = trainUntilFailure(*joined.set, INT64_MAX);
        report(status.str() + " [" +
               std::to_string(int(secondsSince(begin) * 1000)) + " ms]");
        return status.ok() ? 0 : 7;
      });
  return processes.wait(limit);
}

TEST(Peer, ThatIsLateIsNamedAtTheTimeout) {
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 2;
  std::vector<ChildResult> results = withOddRank(
      world, 1, 15, [](Rank &joined, const Processes::Report &report) {
        Status status = trainUntilFailure(*joined.set, 2);
        std::this_thread::sleep_for(std::chrono::seconds(4));
        // It hears of its own lateness.
        status = joined.set->failure();
        report(status.str());
        return status.ok() ? 0 : 7;
      });
  for (int rank : {0, 1, 2}) {
    const std::string &report = results[size_t(rank)].report;
    EXPECT_EQ(results[size_t(rank)].code, 7) << report;
    EXPECT_TRUE(contains(report, "rank 1 has not entered it")) << report;
    EXPECT_TRUE(contains(report, "reduce_scatter of bucket 0")) << report;
    EXPECT_TRUE(contains(report, "all_gather of bucket 2")) << report;
  }
}

TEST(Peer, ThatHangsIsNamedBeforeTheTimeout) {
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 12;
  Processes processes(3, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = join(world, rank, joined);
    report("[joined]");
    if (status.ok())
      status = trainUntilFailure(*joined.set, INT64_MAX);
    report(status.str());
    return 7;
  });
  std::this_thread::sleep_for(Milliseconds(700));
  processes.kill(2, SIGSTOP);
  // The limit also ends the stopped process.
  std::vector<ChildResult> results = processes.wait(9);
  for (int rank : {0, 1}) {
    const std::string &report = results[size_t(rank)].report;
    EXPECT_LT(results[size_t(rank)].seconds, 8.0) << report;
    EXPECT_TRUE(contains(report, "rank 2 died or hangs (no heartbeat"))
        << report;
    EXPECT_TRUE(namesCollective(report)) << report;
  }
}

TEST(Peer, ThatDoesSomethingElseIsNamed) {
  World world = World::tcp(2, {{"shard", 2}});
  world.timeoutSeconds = 2;
  std::vector<ChildResult> results = withOddRank(
      world, 1, 15, [](Rank &joined, const Processes::Report &report) {
        // The others reduce-scatter bucket 0 first.
        Communicator &comm = *joined.set->axis("shard");
        comm.label("all_gather", 5);
        std::vector<char> data(2000000);
        Status status = comm.allGather(data.data(), data.data(), 1000000,
                                       DataType::I8, Stream());
        report(status.str());
        return 7;
      });
  // Whoever judges first names the other rank.
  const std::string &report = results[0].report + results[1].report;
  EXPECT_EQ(results[0].code, 7);
  EXPECT_TRUE(contains(report, "does something else")) << report;
  EXPECT_TRUE(contains(report, "all_gather of bucket 5")) << report;
  EXPECT_TRUE(contains(report, "reduce_scatter of bucket 0")) << report;
}

TEST(Peer, ThatLeavesIsNamed) {
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 10;
  std::vector<ChildResult> results =
      withOddRank(world, 1, 20, [](Rank &joined, const Processes::Report &) {
        (void)trainUntilFailure(*joined.set, 2);
        (void)joined.set->close();
        std::this_thread::sleep_for(std::chrono::seconds(3));
        return 0;
      });
  for (int rank : {0, 2}) {
    const std::string &report = results[size_t(rank)].report;
    EXPECT_EQ(results[size_t(rank)].code, 7) << report;
    EXPECT_TRUE(contains(report, "rank 1 left before it")) << report;
  }
}

// Case B36 (c): an error of one rank outside of any collective.
TEST(Peer, ThatFailsByItselfIsNamedAtOnceWithItsReason) {
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 60;
  std::vector<ChildResult> results =
      withOddRank(world, 1, 20, [](Rank &joined, const Processes::Report &) {
        (void)trainUntilFailure(*joined.set, 2);
        joined.set->reportLocalFailure("ValueError: shape mismatch");
        return 0;
      });
  for (int rank : {0, 2}) {
    const std::string &report = results[size_t(rank)].report;
    EXPECT_EQ(results[size_t(rank)].code, 7) << report;
    EXPECT_TRUE(contains(report, "rank 1 failed: ValueError: shape mismatch"))
        << report;
    EXPECT_TRUE(namesCollective(report)) << report;
    EXPECT_LT(results[size_t(rank)].seconds, 10.0);
  }
}

/// A store in which the addresses of pairs get lost.
class LossyStore : public Store {
public:
  explicit LossyStore(std::shared_ptr<Store> store) : store(std::move(store)) {}
  Status set(const std::string &key, const std::string &value) override {
    bool lost = key.find("/pairs/") != std::string::npos;
    return store->set(key, lost ? "" : value);
  }
  Status get(const std::string &key, std::string &value,
             Milliseconds timeout) override {
    return store->get(key, value, timeout);
  }
  Status tryGet(const std::string &key, std::string &value,
                bool &found) override {
    return store->tryGet(key, value, found);
  }
  Status add(const std::string &key, int64_t delta, int64_t &sum) override {
    return store->add(key, delta, sum);
  }
  Status clone(std::unique_ptr<Store> &copy) override {
    std::unique_ptr<Store> inner;
    Status status = store->clone(inner);
    copy = std::make_unique<LossyStore>(std::move(inner));
    return status;
  }
  Status lostRanks(std::vector<int> &ranks) override {
    return store->lostRanks(ranks);
  }
  int servedBy() const override { return store->servedBy(); }
  std::string name() const override { return store->name(); }

private:
  std::shared_ptr<Store> store;
};

// With the default timeout a wait for evidence of a death takes 33 s.
TEST(Peer, NobodyIsWaitedForWhereAllFailToConnect) {
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 300;
  Processes processes(3, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = openWorldStore(world, rank, joined.store);
    joined.store = std::make_shared<LossyStore>(joined.store);
    if (status.ok())
      status = join(world, rank, joined);
    report(status.str());
    return status.ok() ? 0 : 7;
  });
  std::vector<ChildResult> results = processes.wait(40);
  for (const ChildResult &result : results) {
    EXPECT_EQ(result.code, 7) << result.report;
    EXPECT_LT(result.seconds, 10) << result.report;
    EXPECT_TRUE(contains(result.report, "the transport failed on all ranks"))
        << result.report;
    EXPECT_TRUE(contains(result.report, "published no address"));
    EXPECT_TRUE(contains(result.report, "connect"));
  }
}

// The server of the store is a rank like any other: if it is the one to fail,
// its reason must outlive it.
TEST(Peer, ThatServesTheStoreAndFailsIsNamedWithItsReason) {
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 20;
  std::vector<ChildResult> results =
      withOddRank(world, 0, 25, [](Rank &joined, const Processes::Report &) {
        (void)trainUntilFailure(*joined.set, 2);
        joined.set->reportLocalFailure("KeyError: lr");
        return 0;
      });
  for (int rank : {1, 2}) {
    const std::string &report = results[size_t(rank)].report;
    EXPECT_EQ(results[size_t(rank)].code, 7) << report;
    EXPECT_TRUE(contains(report, "rank 0 failed: KeyError: lr")) << report;
  }
}

// Case B36 (a), at this level: what one rank sees, all decide on.
TEST(Case, B36AFlagOfOneRankReachesAll) {
  World world = World::tcp(2, {{"replicate", 1}, {"shard", 2}});
  expectAllSucceed(2, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = join(world, rank, joined);
    uint32_t found = rank == 1, presence[3] = {rank == 0, 0, rank == 1};
    if (status.ok())
      status = joined.set->axis("shard")->allReduce(
          &found, &found, 1, DataType::U32, ReduceOp::Max, Stream());
    for (const char *axis : {"shard", "replicate"})
      if (status.ok())
        status = joined.set->axis(axis)->allReduce(
            presence, presence, 3, DataType::U32, ReduceOp::Or, Stream());
    bool right =
        found == 1 && presence[0] == 1 && presence[1] == 0 && presence[2] == 1;
    if (status.ok())
      status = meet(world, rank, joined, "end");
    report(status.str());
    return status.ok() && right ? 0 : 1;
  });
}

TEST(Plan, EqualPlansAgreeAndDifferentOnesNameTheLine) {
  World world = World::tcp(4, {{"shard", 4}});
  expectAllSucceed(4, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = join(world, rank, joined);
    std::string plan = "bucket 0 f32 1024\nbucket 1 bf16 2048\n";
    if (status.ok())
      status = joined.set->agreePlan(plan);
    if (!status.ok()) {
      report(status.str());
      return 1;
    }
    if (rank == 2)
      plan = "bucket 0 f32 1024\nbucket 1 bf16 4096\n";
    status = joined.set->agreePlan(plan);
    report(status.message());
    bool right = status.code() == Code::CollectiveError &&
                 status.message() == "plans differ in line 2: rank 0 has "
                                     "'bucket 1 bf16 2048', rank 2 has "
                                     "'bucket 1 bf16 4096'";
    status = meet(world, rank, joined, "end");
    return right && status.ok() ? 0 : 2;
  });
}

TEST(Plan, ARankThatDoesNotComeIsNamed) {
  World world = World::tcp(3, {{"shard", 3}});
  world.timeoutSeconds = 1.5;
  Processes processes(3, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = join(world, rank, joined);
    if (status.ok() && rank == 1)
      std::this_thread::sleep_for(std::chrono::seconds(4));
    else if (status.ok())
      status = joined.set->agreePlan("plan");
    report(status.str());
    return status.ok() ? 0 : 7;
  });
  std::vector<ChildResult> results = processes.wait(20);
  for (int rank : {0, 2}) {
    EXPECT_EQ(results[size_t(rank)].code, 7);
    EXPECT_TRUE(contains(results[size_t(rank)].report, "plan agreement"));
    EXPECT_TRUE(
        contains(results[size_t(rank)].report, "rank 1 has not entered it"))
        << results[size_t(rank)].report;
  }
}

} // namespace
