// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gloo between processes: every collective in every type against sums that are
// exact or made in rank order by a plain loop, on meshes of 1 to 4 ranks.

#include "Ranks.h"

#include "comm/LocalReduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <numeric>

using namespace dfa::rt;

namespace {

/// A small whole number: sums of four are exact in every type but i8 (which
/// wraps, also exactly).
int64_t inputAt(int rank, int64_t index) {
  return (int64_t(rank) * 37 + index * 11) % 50 - 20;
}

void store(DataType type, int64_t value, char *target) {
  auto put = [target](auto stored) {
    std::memcpy(target, &stored, sizeof(stored));
  };
  switch (type) {
  case DataType::F64:
    return put(double(value));
  case DataType::F32:
    return put(float(value));
  case DataType::F16:
    return put(floatToHalf(float(value)));
  case DataType::BF16:
    return put(floatToBfloat(float(value)));
  case DataType::I64:
    return put(value);
  case DataType::I32:
    return put(int32_t(value));
  case DataType::I16:
    return put(int16_t(value));
  case DataType::I8:
    return put(int8_t(value));
  default:
    return put(uint32_t(value));
  }
}

constexpr DataType kTypes[] = {DataType::F64,  DataType::F32, DataType::F16,
                               DataType::BF16, DataType::I64, DataType::I32,
                               DataType::I16,  DataType::I8,  DataType::U32};

/// `count` elements of `rank`, from element `first` on.
std::string inputs(DataType type, int rank, int64_t first, int64_t count) {
  std::string bytes(size_t(count) * sizeOf(type), '\0');
  for (int64_t i = 0; i < count; ++i)
    store(type, inputAt(rank, first + i), &bytes[size_t(i) * sizeOf(type)]);
  return bytes;
}

std::string sums(DataType type, ReduceOp op, int ranks, int64_t first,
                 int64_t count) {
  std::string bytes(size_t(count) * sizeOf(type), '\0');
  for (int64_t i = 0; i < count; ++i) {
    int64_t sum = inputAt(0, first + i);
    for (int r = 1; r < ranks; ++r) {
      int64_t next = inputAt(r, first + i);
      // Unsigned words compare as such.
      bool larger =
          type == DataType::U32 ? uint32_t(next) > uint32_t(sum) : next > sum;
      sum = op == ReduceOp::Sum  ? sum + next
            : op == ReduceOp::Or ? sum | next
            : larger             ? next
                                 : sum;
    }
    store(type, sum, &bytes[size_t(i) * sizeOf(type)]);
  }
  return bytes;
}

/// Runs all collectives of one type and count; returns what went wrong.
std::string check(Communicator &comm, DataType type, ReduceOp op,
                  int64_t count) {
  const int rank = comm.rank(), size = comm.size();
  const size_t bytes = size_t(count) * sizeOf(type);
  const Stream stream;
  Status status;

  std::string whole = inputs(type, rank, 0, count * size), out(bytes, 'x');
  status = comm.reduceScatter(whole.data(), &out[0], count, type, op, stream);
  std::string slice = sums(type, op, size, rank * count, count);
  if (!status.ok() || out != slice)
    return "reduceScatter " + status.str();
  std::string inPlace = whole;
  status = comm.reduceScatter(inPlace.data(), &inPlace[size_t(rank) * bytes],
                              count, type, op, stream);
  if (!status.ok() || inPlace.substr(size_t(rank) * bytes, bytes) != slice)
    return "reduceScatter in place " + status.str();

  std::string mine = inputs(type, rank, 0, count), sum(bytes, 'x');
  status = comm.allReduce(mine.data(), &sum[0], count, type, op, stream);
  if (!status.ok() || sum != sums(type, op, size, 0, count))
    return "allReduce " + status.str();
  status = comm.allReduce(mine.data(), &mine[0], count, type, op, stream);
  if (!status.ok() || mine != sum)
    return "allReduce in place " + status.str();

  std::string gathered(bytes * size_t(size), 'x'), expected;
  mine = inputs(type, rank, 0, count);
  for (int r = 0; r < size; ++r)
    expected += inputs(type, r, 0, count);
  status = comm.allGather(mine.data(), &gathered[0], count, type, stream);
  if (!status.ok() || gathered != expected)
    return "allGather " + status.str();
  gathered.assign(gathered.size(), 'y');
  gathered.replace(size_t(rank) * bytes, bytes, mine);
  status = comm.allGather(&gathered[size_t(rank) * bytes], &gathered[0], count,
                          type, stream);
  if (!status.ok() || gathered != expected)
    return "allGather in place " + status.str();

  for (int root = 0; root < size; ++root) {
    std::string cast = inputs(type, rank, 0, count);
    status = comm.broadcast(cast.data(), &cast[0], count, type, root, stream);
    if (!status.ok() || cast != inputs(type, root, 0, count))
      return "broadcast from " + std::to_string(root) + " " + status.str();
  }
  status = comm.barrier(stream);
  return status.ok() ? "" : "barrier " + status.str();
}

class GlooRanks : public testing::TestWithParam<int> {};

TEST_P(GlooRanks, RunEveryCollectiveInEveryType) {
  World world = World::tcp(GetParam(), {{"shard", GetParam()}});
  expectAllSucceed(world.size, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = join(world, rank, joined);
    if (!status.ok()) {
      report(status.str());
      return 1;
    }
    Communicator &comm = *joined.set->axis("shard");
    if (comm.rank() != rank || comm.size() != world.size ||
        std::string(comm.name()) != "gloo" || !comm.ordersByRank())
      return 2;
    for (DataType type : kTypes)
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Or})
        for (int64_t count : {0, 1, 7, 5003}) {
          if (!checkReducible(type, op).ok())
            continue;
          std::string wrong = check(comm, type, op, count);
          if (wrong.empty())
            continue;
          report(std::string(name(type)) + " " + name(op) + " " +
                 std::to_string(count) + ": " + wrong);
          return 3;
        }
    return meet(world, rank, joined, "end").ok() ? 0 : 4;
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, GlooRanks, testing::Values(1, 2, 3, 4));

TEST(Gloo, SumsInRankOrderWhateverTheCollective) {
  World world = World::tcp(4, {{"shard", 4}});
  expectAllSucceed(4, [&](int rank, const Processes::Report &report) {
    // Values whose sum depends on the order; all ranks know all inputs.
    const int64_t count = 20000; // above the one-round limit of all_reduce
    auto value = [](int r, int64_t i) {
      return std::ldexp(float((i * 7919 + r * 104729) % 1000003) - 500001.0f,
                        int((i + r * 5) % 40) - 20);
    };
    std::vector<float> mine(count), expected(count), reversed(count);
    for (int64_t i = 0; i < count; ++i) {
      mine[size_t(i)] = value(rank, i);
      float sum = value(0, i), other = value(3, i);
      for (int r = 1; r < 4; ++r) {
        sum += value(r, i);
        other += value(3 - r, i);
      }
      expected[size_t(i)] = sum;
      reversed[size_t(i)] = other;
    }
    if (expected == reversed) {
      report("the inputs do not tell orders apart");
      return 1;
    }
    Rank joined;
    Status status = join(world, rank, joined);
    if (status.ok()) {
      Communicator &comm = *joined.set->axis("shard");
      std::vector<float> all(count), few(100), slice(count / 4);
      status = comm.allReduce(mine.data(), all.data(), count, DataType::F32,
                              ReduceOp::Sum, Stream());
      if (status.ok())
        status = comm.allReduce(mine.data(), few.data(), 100, DataType::F32,
                                ReduceOp::Sum, Stream());
      if (status.ok())
        status = comm.reduceScatter(mine.data(), slice.data(), count / 4,
                                    DataType::F32, ReduceOp::Sum, Stream());
      if (status.ok() &&
          (std::memcmp(all.data(), expected.data(), count * 4) != 0 ||
           std::memcmp(few.data(), expected.data(), 400) != 0 ||
           std::memcmp(slice.data(), expected.data() + rank * count / 4,
                       count) != 0)) {
        report("other bits than a sum in rank order");
        return 2;
      }
    }
    if (status.ok())
      status = meet(world, rank, joined, "end");
    report(status.str());
    return status.ok() ? 0 : 3;
  });
}

TEST(Gloo, RunsTheHybridExchangeOnASubsetOfTheWorld) {
  // 2 x 2 on ranks 5, 1, 4, 2 of six; reduce-scatter over shard, all-reduce
  // over replicate, all-gather over shard give everybody the sum of all.
  World world = World::tcp(6, {{"replicate", 2}, {"shard", 2}});
  world.ranks = {5, 1, 4, 2};
  expectAllSucceed(6, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = openWorldStore(world, rank, joined.store);
    if (status.ok() && rank != 0 && rank != 3) {
      status = join(world, rank, joined);
      std::vector<int32_t> bucket(64), shard(32), result(64);
      for (int i = 0; i < 64; ++i)
        bucket[size_t(i)] = rank * 1000 + i;
      Communicator *inner = status.ok() ? joined.set->axis("shard") : nullptr;
      if (status.ok())
        status = inner->reduceScatter(bucket.data(), shard.data(), 32,
                                      DataType::I32, ReduceOp::Sum, Stream());
      if (status.ok())
        status = joined.set->axis("replicate")
                     ->allReduce(shard.data(), shard.data(), 32, DataType::I32,
                                 ReduceOp::Sum, Stream());
      if (status.ok())
        status = inner->allGather(shard.data(), result.data(), 32,
                                  DataType::I32, Stream());
      for (int i = 0; status.ok() && i < 64; ++i)
        if (result[size_t(i)] != 12000 + 4 * i) {
          report("element " + std::to_string(i) + " is " +
                 std::to_string(result[size_t(i)]));
          return 1;
        }
      if (status.ok() && (joined.set->mesh()->size() != 4 ||
                          joined.set->axis("nothing") != nullptr))
        return 2;
    }
    if (status.ok())
      status = meet(world, rank, joined, "end");
    report(status.str());
    return status.ok() ? 0 : 3;
  });
}

TEST(Gloo, WorksOverAFileStore) {
  TemporaryDirectory directory;
  World world = World::file(3, {{"shard", 3}}, directory.path());
  expectAllSucceed(3, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = join(world, rank, joined);
    std::string wrong;
    if (status.ok())
      wrong =
          check(*joined.set->axis("shard"), DataType::F32, ReduceOp::Sum, 1000);
    report(status.str() + " " + wrong);
    return status.ok() && wrong.empty() ? 0 : 1;
  });
}

TEST(Gloo, RefusesWrongArguments) {
  World world = World::tcp(1, {{"shard", 1}});
  expectAllSucceed(1, [&](int rank, const Processes::Report &report) {
    Rank joined;
    Status status = join(world, rank, joined);
    if (!status.ok()) {
      report(status.str());
      return 1;
    }
    Communicator &comm = *joined.set->axis("shard");
    float value = 0;
    bool refused =
        comm.allReduce(&value, &value, 1, DataType::F32, ReduceOp::Or, Stream())
                .code() == Code::InvalidArgument &&
        comm.broadcast(&value, &value, 1, DataType::F32, 1, Stream()).code() ==
            Code::InvalidArgument &&
        comm.allGather(&value, &value, -1, DataType::F32, Stream()).code() ==
            Code::InvalidArgument;
    if (!refused || !joined.set->failure().ok())
      return 2;
    if (!joined.set->close().ok() ||
        joined.set->agreePlan("x").code() != Code::FailedPrecondition)
      return 3;
    return 0;
  });
}

TEST(Gloo, LeavesTheSignalMaskOfTheCallerAlone) {
  World world = World::tcp(1, {{"shard", 1}});
  expectAllSucceed(1, [&](int rank, const Processes::Report &) {
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    Rank joined;
    if (!join(world, rank, joined).ok() ||
        !joined.set->mesh()->barrier(Stream()).ok())
      return 1;
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    return sigismember(&before, SIGPIPE) == sigismember(&after, SIGPIPE) ? 0
                                                                         : 2;
  });
}

} // namespace
