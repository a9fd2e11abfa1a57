// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A key-value store for ranks that are threads of one process.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_LOCALSTORE_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_LOCALSTORE_H

#include "dfa-rt/dfa_rt.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

namespace dfa::run {

class LocalStore {
public:
  LocalStore();
  LocalStore(const LocalStore &) = delete;

  /// For dfa_rt_group_options_t; valid as long as this object.
  const dfa_rt_store_t *callbacks() const { return &functions; }

private:
  int set(const char *key, const void *data, size_t bytes);
  int get(const char *key, void *data, size_t capacity, size_t *bytes,
          int64_t timeoutMs);
  int add(const char *key, int64_t delta, int64_t *sum);

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  std::map<std::string, int64_t> counters;
  dfa_rt_store_t functions;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_LOCALSTORE_H
