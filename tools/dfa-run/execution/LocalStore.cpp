// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map and a lock, behind the C callbacks.
#include "execution/LocalStore.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace dfa::run;

LocalStore::LocalStore() {
  functions.context = this;
  functions.set = [](void *context, const char *key, const void *data,
                     size_t bytes) {
    return static_cast<LocalStore *>(context)->set(key, data, bytes);
  };
  functions.get = [](void *context, const char *key, void *data,
                     size_t capacity, size_t *bytes, int64_t timeoutMs) {
    return static_cast<LocalStore *>(context)->get(key, data, capacity, bytes,
                                                   timeoutMs);
  };
  functions.add = [](void *context, const char *key, int64_t delta,
                     int64_t *sum) {
    return static_cast<LocalStore *>(context)->add(key, delta, sum);
  };
}

int LocalStore::set(const char *key, const void *data, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  values[key].assign(static_cast<const char *>(data), bytes);
  changed.notify_all();
  return 0;
}

int LocalStore::get(const char *key, void *data, size_t capacity, size_t *bytes,
                    int64_t timeoutMs) {
  std::unique_lock<std::mutex> lock(mutex);
  std::string name = key;
  if (!changed.wait_for(lock, std::chrono::milliseconds(timeoutMs),
                        [&] { return values.count(name) != 0; }))
    return 1;
  const std::string &value = values[name];
  *bytes = value.size();
  if (capacity > 0 && !value.empty())
    std::memcpy(data, value.data(), std::min(capacity, value.size()));
  return 0;
}

int LocalStore::add(const char *key, int64_t delta, int64_t *sum) {
  std::lock_guard<std::mutex> lock(mutex);
  *sum = counters[key] += delta;
  return 0;
}
