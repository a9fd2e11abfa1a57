// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times collectives by themselves, through the runtime's own transports: what a
// step's reductions and gathers can cost at best. A thread a rank, a GPU each.

#include "comm/CommSet.h"
#include "comm/Store.h"
#include "cuda/CudaDevice.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace dfa::rt;

namespace {

constexpr int repetitions = 11; // of which the first two do not count
constexpr int64_t mebibyte = int64_t(1) << 20;

/// A point at which all ranks meet.
class Meeting {
public:
  explicit Meeting(int ranks) : ranks(ranks) {}
  void operator()() {
    std::unique_lock<std::mutex> lock(mutex);
    uint64_t own = round;
    if (++arrived == ranks) {
      arrived = 0;
      ++round;
      met.notify_all();
      return;
    }
    met.wait(lock, [&] { return round != own; });
  }

private:
  const int ranks;
  std::mutex mutex;
  std::condition_variable met;
  int arrived = 0;
  uint64_t round = 0;
};

struct Arguments {
  int ranks = 2;
  int64_t mebibytes = 2048; // of the whole array
  std::vector<int64_t> buckets = {4, 8, 16, 32};
};

class RankBench {
public:
  RankBench(const Arguments &arguments, int rank, Meeting &meeting)
      : arguments(arguments), rank(rank), meeting(meeting) {}

  Status run(const std::string &folder) {
    Result<std::unique_ptr<Device>> made = createCudaDevice(rank);
    DFA_RT_TRY(made.status());
    device = std::move(*made);
    DFA_RT_TRY(device->createUrgentStream(stream));
    DFA_RT_TRY(device->createTimer(begin));
    DFA_RT_TRY(device->createTimer(end));
    CommSetOptions options;
    options.launch.rank = options.launch.localRank = rank;
    options.launch.worldSize = options.launch.localWorldSize = arguments.ranks;
    options.launch.runId = "links";
    options.launch.store.kind = StoreAddress::Kind::File;
    options.launch.store.path = folder;
    std::unique_ptr<Store> store;
    DFA_RT_TRY(openStore(options.launch, options.timeout, store));
    options.axes = {{"shard", arguments.ranks}};
    options.transport = TransportKind::Nccl;
    options.device = device.get();
    options.enterDevice = [device = device] { return device->makeCurrent(); };
    std::unique_ptr<CommSet> set;
    DFA_RT_TRY(CommSet::create(options, std::move(store), set));
    axis = set->axis("shard");
    if (rank == 0)
      std::printf("%s\n%s", device->name().c_str(), set->describe().c_str());
    DFA_RT_TRY(measure());
    return set->close();
  }

private:
  Status measure() {
    int64_t bytes = arguments.mebibytes * mebibyte;
    void *plain = nullptr, *shared = nullptr;
    DFA_RT_TRY(device->allocate(bytes, &plain));
    DFA_RT_TRY(axis->allocateShared(bytes, &shared));
    if (rank == 0)
      std::printf("gathers in %s\n",
                  shared ? "memory of the transport" : "ordinary memory");
    if (!shared)
      DFA_RT_TRY(device->allocate(bytes, &shared));
    DFA_RT_TRY(fill(plain, bytes));
    DFA_RT_TRY(device->copy(shared, plain, bytes, stream));
    double time = 0;
    DFA_RT_TRY(timed([&] { return device->copy(shared, plain, bytes, stream); },
                     time));
    if (rank == 0)
      std::printf("%-24s %8.3f ms %7.0f GB/s, read plus written\n", "copy",
                  time, 2 * double(bytes) / time * 1e-6);
    for (int64_t buckets : arguments.buckets) {
      int64_t part = bytes / 2 / buckets; // elements of 16 bits
      int64_t own = part / arguments.ranks;
      auto all = [&](auto &&one) {
        for (int64_t bucket = 0; bucket < buckets; ++bucket)
          DFA_RT_TRY(one(bucket * part * 2, own * rank * 2));
        return Status();
      };
      auto at = [](void *base, int64_t offset) {
        return static_cast<char *>(base) + offset;
      };
      DFA_RT_TRY(timed(
          [&] {
            return all([&](int64_t first, int64_t mine) {
              return axis->reduceScatter(at(plain, first),
                                         at(plain, first + mine), own,
                                         DataType::BF16, ReduceOp::Sum, stream);
            });
          },
          time));
      print("reduce_scatter", buckets, time);
      DFA_RT_TRY(timed(
          [&] {
            return all([&](int64_t first, int64_t mine) {
              return axis->allGather(at(shared, first + mine),
                                     at(shared, first), own, DataType::BF16,
                                     stream);
            });
          },
          time));
      print("all_gather", buckets, time);
    }
    device->free(plain, bytes);
    return Status();
  }

  /// Seeded values; sums of them over many rounds stay finite.
  Status fill(void *target, int64_t bytes) {
    std::vector<uint16_t> values(8 * mebibyte);
    uint32_t state = 12345;
    for (uint16_t &value : values) {
      state = state * 1664525u + 1013904223u;
      value = 0x3000 | ((state >> 16) & 0x83ff); // about 1e-9, either sign
    }
    int64_t chunk = std::min<int64_t>(bytes, 2 * values.size());
    DFA_RT_TRY(device->copy(target, values.data(), chunk, stream));
    for (int64_t done = chunk; done < bytes; done *= 2)
      DFA_RT_TRY(device->copy(static_cast<char *>(target) + done, target,
                              std::min(done, bytes - done), stream));
    return device->synchronize(stream);
  }

  template <typename Work> Status timed(Work work, double &median) {
    std::vector<double> times;
    for (int round = 0; round < repetitions; ++round) {
      DFA_RT_TRY(device->synchronize(stream));
      meeting();
      DFA_RT_TRY(device->record(begin, stream));
      DFA_RT_TRY(work());
      DFA_RT_TRY(device->record(end, stream));
      double taken = 0;
      DFA_RT_TRY(device->elapsed(begin, end, taken));
      if (round >= 2)
        times.push_back(taken);
    }
    std::sort(times.begin(), times.end());
    median = times[times.size() / 2];
    return Status();
  }

  void print(const char *what, int64_t buckets, double time) {
    if (rank != 0)
      return;
    double moved = double(arguments.mebibytes * mebibyte) *
                   (arguments.ranks - 1) / arguments.ranks;
    std::printf("%-14s x %-7lld %8.3f ms %7.0f GB/s a link\n", what,
                static_cast<long long>(buckets), time, moved / time * 1e-6);
    std::fflush(stdout);
  }

  const Arguments &arguments;
  int rank;
  Meeting &meeting;
  std::shared_ptr<Device> device;
  Stream stream;
  Event begin, end;
  Communicator *axis = nullptr;
};

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string option = argv[i];
    if (option == "--ranks")
      arguments.ranks = std::atoi(argv[i + 1]);
    else if (option == "--mib")
      arguments.mebibytes = std::atoll(argv[i + 1]);
    else
      argc = 0;
  }
  if (argc % 2 == 0 || arguments.ranks < 1 || arguments.mebibytes < 1) {
    std::fprintf(stderr, "usage: dfa-bench-links [--ranks N] [--mib SIZE]\n");
    return 2;
  }
  Meeting meeting(arguments.ranks);
  std::string folder = "/tmp/dfa-bench-links-XXXXXX";
  if (!mkdtemp(folder.data())) {
    std::perror("a folder to meet in");
    return 1;
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < arguments.ranks; ++rank)
    threads.emplace_back([&, rank] {
      Status status = RankBench(arguments, rank, meeting).run(folder);
      if (status.ok())
        return;
      std::fprintf(stderr, "rank %d: %s\n", rank, status.str().c_str());
      std::_Exit(1); // the others would wait
    });
  for (std::thread &thread : threads)
    thread.join();
  std::filesystem::remove_all(folder);
}
