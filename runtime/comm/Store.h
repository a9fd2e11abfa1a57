// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The key-value store that ranks meet through: an interface, a store made of a
// caller's callbacks (torch's store, MPI, ...), a prefix, and the opening of
// the two built-in ones. Nothing here knows what the keys mean.

#ifndef DFA_COMM_STORE_H
#define DFA_COMM_STORE_H

#include "base/Status.h"
#include "comm/Bootstrap.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dfa::rt {

using Milliseconds = std::chrono::milliseconds;

/// A small map shared by all ranks. Values are bytes. Calls on one object may
/// come from several threads, but a waiting `get` can delay the others: a
/// thread that must stay prompt works on its own clone.
class Store {
public:
  virtual ~Store() = default;

  /// Writes a value; an older one is replaced.
  virtual Status set(const std::string &key, const std::string &value) = 0;
  /// Waits until the key is there and reads it; fails naming key and timeout.
  virtual Status get(const std::string &key, std::string &value,
                     Milliseconds timeout) = 0;
  /// Reads the key if it is there, without waiting.
  virtual Status tryGet(const std::string &key, std::string &value,
                        bool &found) = 0;
  /// Adds to a counter (0 if absent) atomically and returns the sum. A counter
  /// is not readable by get: add 0.
  virtual Status add(const std::string &key, int64_t delta, int64_t &sum) = 0;
  /// Makes an independent access to the same map.
  virtual Status clone(std::unique_ptr<Store> &copy) = 0;
  /// Lists ranks whose process vanished without a goodbye, first death first.
  /// A store that cannot know leaves the list empty.
  virtual Status lostRanks(std::vector<int> &ranks);
  /// The rank whose process serves the store, or -1: if the store fails, it is
  /// that rank which failed.
  virtual int servedBy() const { return -1; }
  /// What a person calls it, such as "tcp://host:29501".
  virtual std::string name() const = 0;
};

/// A store behind three C functions. Each returns 0 for success; `get` returns
/// 1 if the key did not appear within `timeoutMs`; any other value is a
/// failure. `get` writes at most `capacity` bytes and sets `bytes` to the size
/// of the value; it is called again if the value was larger.
struct StoreCallbacks {
  int (*set)(void *context, const char *key, const void *data,
             size_t bytes) = nullptr;
  int (*get)(void *context, const char *key, void *data, size_t capacity,
             size_t *bytes, int64_t timeoutMs) = nullptr;
  int (*add)(void *context, const char *key, int64_t delta,
             int64_t *sum) = nullptr;
  void *context = nullptr;
};

/// Wraps callbacks. They are called by one thread at a time, never with a long
/// timeout, so that one waiting thread does not keep out the others.
Status makeCallbackStore(const StoreCallbacks &callbacks,
                         std::unique_ptr<Store> &store);

/// Prepends `prefix` to every key.
std::unique_ptr<Store> makePrefixStore(std::shared_ptr<Store> store,
                                       std::string prefix);

/// Opens a directory as a store; it is created if it is missing.
Status openFileStore(const std::string &path, std::unique_ptr<Store> &store);

/// Connects to a TCP store; rank 0 also serves it as long as the returned
/// object or a clone of it lives, on `listening` if that is a socket. Waits for
/// the server up to `timeout`.
Status openTcpStore(const StoreAddress &address, int rank, Milliseconds timeout,
                    std::unique_ptr<Store> &store, int listening = -1);

/// Opens the store that the launch names.
Status openStore(const Launch &launch, Milliseconds timeout,
                 std::unique_ptr<Store> &store);

} // namespace dfa::rt

#endif // DFA_COMM_STORE_H
