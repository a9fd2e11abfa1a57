// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stores that only forward: callbacks and prefix. Waiting is polling here,
// in slices short enough for the other threads of the process.

#include "comm/Store.h"

#include <algorithm>
#include <thread>

namespace dfa::rt {

namespace {

constexpr Milliseconds kFirstPause(1);
constexpr Milliseconds kLongestPause(50);

class CallbackStore : public Store {
public:
  CallbackStore(const StoreCallbacks &callbacks,
                std::shared_ptr<std::mutex> lock)
      : callbacks(callbacks), lock(std::move(lock)) {}

  Status set(const std::string &key, const std::string &value) override {
    std::lock_guard<std::mutex> guard(*lock);
    int code = callbacks.set(callbacks.context, key.c_str(), value.data(),
                             value.size());
    return code == 0 ? Status() : failed("set", key, code);
  }

  Status tryGet(const std::string &key, std::string &value,
                bool &found) override {
    std::lock_guard<std::mutex> guard(*lock);
    found = false;
    value.resize(256);
    // The value may grow between two calls, but not for ever.
    for (int attempt = 0; attempt < 8; ++attempt) {
      size_t bytes = 0;
      int code = callbacks.get(callbacks.context, key.c_str(), &value[0],
                               value.size(), &bytes, 0);
      if (code == 1) {
        value.clear();
        return Status();
      }
      if (code != 0)
        return failed("get", key, code);
      bool whole = bytes <= value.size();
      value.resize(bytes);
      if (whole) {
        found = true;
        return Status();
      }
    }
    return DFA_RT_ERROR(CollectiveError,
                        "store callback get('%s'): the value changes its size "
                        "on every call",
                        key.c_str());
  }

  Status get(const std::string &key, std::string &value,
             Milliseconds timeout) override {
    std::chrono::steady_clock::time_point deadline =
        std::chrono::steady_clock::now() + timeout;
    Milliseconds pause = kFirstPause;
    while (true) {
      bool found = false;
      DFA_RT_TRY(tryGet(key, value, found));
      if (found)
        return Status();
      if (std::chrono::steady_clock::now() >= deadline)
        return DFA_RT_ERROR(CollectiveError,
                            "key '%s' did not appear in the caller's store "
                            "within %lld ms",
                            key.c_str(), (long long)timeout.count());
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  }

  Status add(const std::string &key, int64_t delta, int64_t &sum) override {
    std::lock_guard<std::mutex> guard(*lock);
    int code = callbacks.add(callbacks.context, key.c_str(), delta, &sum);
    return code == 0 ? Status() : failed("add", key, code);
  }

  Status clone(std::unique_ptr<Store> &copy) override {
    copy = std::make_unique<CallbackStore>(callbacks, lock);
    return Status();
  }

  std::string name() const override { return "the caller's store"; }

private:
  static Status failed(const char *what, const std::string &key, int code) {
    return DFA_RT_ERROR(CollectiveError,
                        "store callback %s('%s') failed with code %d", what,
                        key.c_str(), code);
  }

  StoreCallbacks callbacks;
  std::shared_ptr<std::mutex> lock;
};

class PrefixStore : public Store {
public:
  PrefixStore(std::shared_ptr<Store> store, std::string prefix)
      : store(std::move(store)), prefix(std::move(prefix)) {}

  Status set(const std::string &key, const std::string &value) override {
    return store->set(prefix + key, value);
  }
  Status get(const std::string &key, std::string &value,
             Milliseconds timeout) override {
    return store->get(prefix + key, value, timeout);
  }
  Status tryGet(const std::string &key, std::string &value,
                bool &found) override {
    return store->tryGet(prefix + key, value, found);
  }
  Status add(const std::string &key, int64_t delta, int64_t &sum) override {
    return store->add(prefix + key, delta, sum);
  }
  Status clone(std::unique_ptr<Store> &copy) override {
    std::unique_ptr<Store> inner;
    DFA_RT_TRY(store->clone(inner));
    copy = std::make_unique<PrefixStore>(std::move(inner), prefix);
    return Status();
  }
  Status lostRanks(std::vector<int> &ranks) override {
    return store->lostRanks(ranks);
  }
  int servedBy() const override { return store->servedBy(); }
  std::string name() const override { return store->name(); }

private:
  std::shared_ptr<Store> store;
  std::string prefix;
};

} // namespace

Status Store::lostRanks(std::vector<int> &ranks) {
  ranks.clear();
  return Status();
}

Status makeCallbackStore(const StoreCallbacks &callbacks,
                         std::unique_ptr<Store> &store) {
  if (!callbacks.set || !callbacks.get || !callbacks.add)
    return DFA_RT_ERROR(InvalidArgument,
                        "store callbacks: expected set, get and add, found %s "
                        "missing",
                        !callbacks.set   ? "set"
                        : !callbacks.get ? "get"
                                         : "add");
  store = std::make_unique<CallbackStore>(callbacks,
                                          std::make_shared<std::mutex>());
  return Status();
}

std::unique_ptr<Store> makePrefixStore(std::shared_ptr<Store> store,
                                       std::string prefix) {
  return std::make_unique<PrefixStore>(std::move(store), std::move(prefix));
}

Status openStore(const Launch &launch, Milliseconds timeout,
                 std::unique_ptr<Store> &store) {
  switch (launch.store.kind) {
  case StoreAddress::Kind::Tcp:
    return openTcpStore(launch.store, launch.rank, timeout, store,
                        launch.storeSocket);
  case StoreAddress::Kind::File:
    return openFileStore(launch.store.path, store);
  case StoreAddress::Kind::None:
    break;
  }
  return DFA_RT_ERROR(InvalidArgument,
                      "expected a store for %d ranks, found none",
                      launch.worldSize);
}

} // namespace dfa::rt
