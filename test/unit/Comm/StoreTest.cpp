// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All stores behave alike; what only TCP can do is tested apart.

#include "Processes.h"

#include "comm/Store.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace dfa::rt;

namespace {

using Clock = std::chrono::steady_clock;

/// A caller's store, as a framework would hand in.
struct Callbacks {
  std::map<std::string, std::string> values;
  std::map<std::string, int64_t> counters;
  bool broken = false;

  StoreCallbacks functions() {
    StoreCallbacks callbacks;
    callbacks.context = this;
    callbacks.set = [](void *context, const char *key, const void *data,
                       size_t bytes) {
      Callbacks *self = static_cast<Callbacks *>(context);
      if (self->broken)
        return 5;
      self->values[key] = std::string(static_cast<const char *>(data), bytes);
      return 0;
    };
    callbacks.get = [](void *context, const char *key, void *data,
                       size_t capacity, size_t *bytes, int64_t) {
      Callbacks *self = static_cast<Callbacks *>(context);
      auto found = self->values.find(key);
      if (found == self->values.end())
        return 1;
      *bytes = found->second.size();
      std::memcpy(data, found->second.data(), std::min(*bytes, capacity));
      return 0;
    };
    callbacks.add = [](void *context, const char *key, int64_t delta,
                       int64_t *sum) {
      Callbacks *self = static_cast<Callbacks *>(context);
      *sum = self->counters[key] += delta;
      return 0;
    };
    return callbacks;
  }
};

class AnyStore : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    Status status;
    std::string kind = GetParam();
    if (kind == "tcp4" || kind == "tcp6") {
      StoreAddress address;
      address.kind = StoreAddress::Kind::Tcp;
      address.host = kind == "tcp4" ? "127.0.0.1" : "::1";
      status = openTcpStore(address, 0, Milliseconds(5000), store);
    } else if (kind == "file") {
      status = openFileStore(directory.path() + "/store", store);
    } else {
      status = makeCallbackStore(callbacks.functions(), store);
    }
    ASSERT_TRUE(status.ok()) << status.str();
  }

  TemporaryDirectory directory;
  Callbacks callbacks;
  std::unique_ptr<Store> store;
};

TEST_P(AnyStore, KeepsBytes) {
  std::string value;
  bool found = true;
  ASSERT_TRUE(store->tryGet("a/b", value, found).ok());
  EXPECT_FALSE(found);
  std::string bytes("\0\n\xff%", 4);
  ASSERT_TRUE(store->set("a/b", bytes).ok());
  ASSERT_TRUE(store->tryGet("a/b", value, found).ok());
  EXPECT_TRUE(found);
  EXPECT_EQ(value, bytes);
  ASSERT_TRUE(store->set("a/b", "").ok());
  ASSERT_TRUE(store->get("a/b", value, Milliseconds(0)).ok());
  EXPECT_EQ(value, "");
  std::string big(3 << 20, 'x');
  big[12345] = 'y';
  ASSERT_TRUE(store->set("big", big).ok());
  ASSERT_TRUE(store->get("big", value, Milliseconds(0)).ok());
  EXPECT_EQ(value, big);
}

TEST_P(AnyStore, TellsLongKeysApart) {
  std::string stem(400, 'k'), value;
  ASSERT_TRUE(store->set(stem + "1", "one").ok());
  ASSERT_TRUE(store->set(stem + "2", "two").ok());
  ASSERT_TRUE(store->get(stem + "1", value, Milliseconds(0)).ok());
  EXPECT_EQ(value, "one");
  ASSERT_TRUE(store->set("x.y", "dot").ok());
  ASSERT_TRUE(store->set("x/y", "slash").ok());
  ASSERT_TRUE(store->get("x.y", value, Milliseconds(0)).ok());
  EXPECT_EQ(value, "dot");
}

TEST_P(AnyStore, GetTimesOutNamingTheKey) {
  std::string value;
  Clock::time_point begin = Clock::now();
  Status status = store->get("nobody", value, Milliseconds(150));
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  EXPECT_EQ(status.code(), Code::CollectiveError);
  EXPECT_NE(status.message().find("'nobody'"), std::string::npos);
  EXPECT_NE(status.message().find("150 ms"), std::string::npos);
  EXPECT_GE(seconds, 0.14);
  EXPECT_LT(seconds, 3.0);
  // The store still works.
  ASSERT_TRUE(store->set("nobody", "here").ok());
  ASSERT_TRUE(store->get("nobody", value, Milliseconds(0)).ok());
}

TEST_P(AnyStore, GetWaitsForASet) {
  std::unique_ptr<Store> other;
  ASSERT_TRUE(store->clone(other).ok());
  std::thread setter([&other] {
    std::this_thread::sleep_for(Milliseconds(60));
    EXPECT_TRUE(other->set("late", "value").ok());
  });
  std::string value;
  EXPECT_TRUE(store->get("late", value, Milliseconds(10000)).ok());
  EXPECT_EQ(value, "value");
  setter.join();
}

TEST_P(AnyStore, AddIsAtomic) {
  constexpr int kThreads = 4, kAdds = 50;
  std::atomic<int64_t> largest{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      std::unique_ptr<Store> own;
      ASSERT_TRUE(store->clone(own).ok());
      for (int i = 0; i < kAdds; ++i) {
        int64_t sum = 0;
        ASSERT_TRUE(own->add("count", 3, sum).ok());
        int64_t seen = largest.load();
        while (sum > seen && !largest.compare_exchange_weak(seen, sum)) {
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(largest.load(), 3 * kThreads * kAdds);
  int64_t sum = 0;
  ASSERT_TRUE(store->add("count", -1, sum).ok());
  EXPECT_EQ(sum, 3 * kThreads * kAdds - 1);
}

TEST_P(AnyStore, PrefixesKeepKeysApart) {
  std::shared_ptr<Store> shared(std::move(store));
  std::unique_ptr<Store> first = makePrefixStore(shared, "run/0/");
  std::unique_ptr<Store> second = makePrefixStore(shared, "run/1/");
  ASSERT_TRUE(first->set("key", "old").ok());
  std::string value;
  bool found = true;
  ASSERT_TRUE(second->tryGet("key", value, found).ok());
  EXPECT_FALSE(found);
  ASSERT_TRUE(shared->get("run/0/key", value, Milliseconds(0)).ok());
  EXPECT_EQ(value, "old");
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyStore,
                         testing::Values("tcp4", "tcp6", "file", "callbacks"));

TEST(CallbackStore, ReportsFailuresAndMissingFunctions) {
  Callbacks callbacks;
  callbacks.broken = true;
  std::unique_ptr<Store> store;
  ASSERT_TRUE(makeCallbackStore(callbacks.functions(), store).ok());
  EXPECT_EQ(store->set("k", "v").message(),
            "store callback set('k') failed with code 5");
  StoreCallbacks partial = callbacks.functions();
  partial.add = nullptr;
  EXPECT_EQ(makeCallbackStore(partial, store).code(), Code::InvalidArgument);
}

TEST(FileStore, RefusesAFile) {
  TemporaryDirectory directory;
  std::string path = directory.path() + "/plain";
  std::fclose(std::fopen(path.c_str(), "w"));
  std::unique_ptr<Store> store;
  EXPECT_EQ(openFileStore(path, store).code(), Code::InvalidArgument);
}

StoreAddress loopback(int port) {
  StoreAddress address;
  address.kind = StoreAddress::Kind::Tcp;
  address.host = "127.0.0.1";
  address.port = port;
  return address;
}

TEST(TcpStore, ServesProcessesThatStartInAnyOrder) {
  int port = freePort();
  expectAllSucceed(4, [port](int rank, const Processes::Report &report) {
    if (rank == 0)
      std::this_thread::sleep_for(Milliseconds(200));
    std::unique_ptr<Store> store;
    Status status =
        openTcpStore(loopback(port), rank, Milliseconds(20000), store);
    std::string all, value;
    for (int peer = 0; status.ok() && peer < 4; ++peer) {
      if (peer == rank)
        status = store->set("from/" + std::to_string(rank),
                            std::to_string(rank * 11));
      if (status.ok())
        status = store->get("from/" + std::to_string(peer), value,
                            Milliseconds(20000));
      all += value + " ";
    }
    // Rank 0 stays until everybody has read.
    int64_t sum = 0;
    if (status.ok())
      status = store->add("done", 1, sum);
    if (status.ok() && sum == 4)
      status = store->set("all", "done");
    if (status.ok() && rank == 0)
      status = store->get("all", value, Milliseconds(20000));
    report(status.str() + " " + all);
    return status.ok() && all == "0 11 22 33 " ? 0 : 1;
  });
}

TEST(TcpStore, NotesDeathsInOrderButNoGoodbyes) {
  int port = freePort();
  std::unique_ptr<Store> store;
  Processes processes(4, [port](int rank, const Processes::Report &) {
    std::unique_ptr<Store> own;
    if (rank == 0) // the parent plays it
      return 0;
    if (!openTcpStore(loopback(port), rank, Milliseconds(20000), own).ok())
      return 1;
    std::string value;
    (void)own->set("here/" + std::to_string(rank), "");
    if (rank == 3)
      return 0; // leaves in good order: the destructor says goodbye
    (void)own->get("never", value, Milliseconds(60000));
    return 0;
  });
  ASSERT_TRUE(openTcpStore(loopback(port), 0, Milliseconds(5000), store).ok());
  std::string value;
  for (const char *key : {"here/1", "here/2", "here/3"})
    ASSERT_TRUE(store->get(key, value, Milliseconds(20000)).ok());
  std::vector<int> lost;
  for (int victim : {2, 1}) {
    size_t before = lost.size();
    processes.kill(victim, SIGKILL);
    for (int i = 0; i < 1000 && lost.size() == before; ++i) {
      std::this_thread::sleep_for(Milliseconds(5));
      ASSERT_TRUE(store->lostRanks(lost).ok());
    }
  }
  EXPECT_EQ(lost, (std::vector<int>{2, 1}));
}

TEST(TcpStore, SaysThatTheServerIsGone) {
  int port = freePort();
  Processes processes(1, [port](int, const Processes::Report &) {
    std::unique_ptr<Store> own;
    (void)openTcpStore(loopback(port), 0, Milliseconds(5000), own);
    ::pause();
    return 0;
  });
  std::unique_ptr<Store> store;
  ASSERT_TRUE(openTcpStore(loopback(port), 1, Milliseconds(20000), store).ok());
  processes.kill(0, SIGKILL);
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    status = store->set("k", "v");
    std::this_thread::sleep_for(Milliseconds(5));
  }
  EXPECT_EQ(status.code(), Code::CollectiveError);
  EXPECT_NE(status.message().find("rank 0, which serves it"),
            std::string::npos);
  EXPECT_EQ(store->servedBy(), 0);
}

TEST(TcpStore, TimesOutWithoutAServer) {
  std::unique_ptr<Store> store;
  Status status =
      openTcpStore(loopback(freePort()), 1, Milliseconds(200), store);
  EXPECT_EQ(status.code(), Code::CollectiveError);
  EXPECT_NE(status.message().find("rank 1 cannot connect to rank 0"),
            std::string::npos)
      << status.message();
}

TEST(TcpStore, RefusesAStrangerOnThePort) {
  // Something else listens there, as torchrun's agent does on MASTER_PORT.
  int port = freePort();
  int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(
      ::bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)),
      0);
  ASSERT_EQ(::listen(listener, 4), 0);
  std::thread stranger([listener] {
    int fd = ::accept(listener, nullptr, nullptr);
    (void)!::write(fd, "HTTP/1.0 400 Bad\r\n", 18);
    ::close(fd);
  });
  std::unique_ptr<Store> store;
  Status status = openTcpStore(loopback(port), 1, Milliseconds(5000), store);
  EXPECT_NE(status.message().find("another program on the port"),
            std::string::npos)
      << status.message();
  stranger.join();
  // And rank 0 cannot serve there.
  status = openTcpStore(loopback(port), 0, Milliseconds(100), store);
  EXPECT_NE(status.message().find("cannot listen on port"), std::string::npos)
      << status.message();
  ::close(listener);
}

TEST(TcpStore, SurvivesClientsThatSendNonsense) {
  int port = freePort();
  std::unique_ptr<Store> store;
  ASSERT_TRUE(openTcpStore(loopback(port), 0, Milliseconds(5000), store).ok());
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string hello("dfastor1\x01\0\0\0", 12);
  for (const std::string &bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("dfa"), hello,
        hello + std::string(17, '\xff'),
        hello + std::string("\x09", 1) + std::string(16, '\0')}) {
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(
        ::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)),
        0);
    (void)!::write(fd, bytes.data(), bytes.size());
    ::close(fd);
  }
  std::string value;
  EXPECT_TRUE(store->set("k", "v").ok());
  EXPECT_TRUE(store->get("k", value, Milliseconds(1000)).ok());
}

} // namespace
