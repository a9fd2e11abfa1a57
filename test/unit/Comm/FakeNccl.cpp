// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for libnccl.so.2: ranks are threads of one process that meet in
// shared memory, and "device" pointers are host pointers. Built several times
// with other versions or with a symbol left out. The environment variable
// FAKE_NCCL_LOG names a file that gets one line a call.

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#ifndef FAKE_VERSION
#define FAKE_VERSION 22809
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// The ranks of one communicator.
struct Group {
  explicit Group(int size)
      : size(size), sends(size_t(size)), colors(size_t(size)),
        keys(size_t(size)) {}

  /// Waits for all members; false if the group was aborted.
  bool meet() {
    std::unique_lock<std::mutex> lock(mutex);
    uint64_t round = rounds;
    if (++arrived == size) {
      arrived = 0;
      ++rounds;
      changed.notify_all();
      return !aborted;
    }
    changed.wait(lock, [&] { return rounds != round || aborted; });
    return !aborted;
  }

  void abort() {
    std::lock_guard<std::mutex> lock(mutex);
    aborted = true;
    changed.notify_all();
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  uint64_t rounds = 0;
  bool aborted = false;
  std::vector<const void *> sends;
  std::vector<int> colors, keys;
  std::map<int, std::shared_ptr<Group>> made;
};

struct Comm {
  std::shared_ptr<Group> group;
  int rank;
};

struct Id {
  char bytes[128];
};

// Never destroyed: a thread may still wait in here when the process ends.
std::mutex &registryMutex = *new std::mutex;
std::map<std::string, std::shared_ptr<Group>> &registry =
    *new std::map<std::string, std::shared_ptr<Group>>;
// Whoever is not destroyed stays reachable: what was aborted, and what its
// owner leaves to the end of the process.
std::set<Comm *> &communicators = *new std::set<Comm *>;

Comm *add(std::shared_ptr<Group> group, int rank) {
  std::lock_guard<std::mutex> lock(registryMutex);
  return *communicators.insert(new Comm{std::move(group), rank}).first;
}

void note(const char *call) {
  if (const char *path = std::getenv("FAKE_NCCL_LOG"))
    if (std::FILE *file = std::fopen(path, "a")) {
      std::fprintf(file, "%s\n", call);
      std::fclose(file);
    }
}

constexpr int kSystemError = 2;

} // namespace

/// A test's say before a collective or an abort: not 0 is the call's result.
EXPORT int (*fake_nccl_hook)(const char *call, int rank, void *stream);
int (*fake_nccl_hook)(const char *call, int rank, void *stream) = nullptr;

namespace {

int ask(const char *call, int rank, void *stream) {
  return fake_nccl_hook ? fake_nccl_hook(call, rank, stream) : 0;
}

size_t widthOf(int type) {
  constexpr size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return widths[type];
}

template <typename T>
void reduce(const Group &group, size_t first, size_t count, int op,
            void *target) {
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i) {
    T value = static_cast<const T *>(group.sends[0])[first + i];
    for (int r = 1; r < group.size; ++r) {
      T next = static_cast<const T *>(group.sends[size_t(r)])[first + i];
      value = op == 0 ? T(value + next) : (next > value ? next : value);
    }
    result[i] = value;
  }
  std::memcpy(target, result.data(), count * sizeof(T));
}

bool reduceAs(int type, const Group &group, size_t first, size_t count, int op,
              void *target) {
  switch (type) {
  case 2:
    reduce<int32_t>(group, first, count, op, target);
    return true;
  case 3:
    reduce<uint32_t>(group, first, count, op, target);
    return true;
  case 7:
    reduce<float>(group, first, count, op, target);
    return true;
  case 8:
    reduce<double>(group, first, count, op, target);
    return true;
  default:
    return false; // not needed by the tests
  }
}

} // namespace

EXPORT int ncclGetVersion(int *version) {
  *version = FAKE_VERSION;
  return 0;
}

EXPORT const char *ncclGetErrorString(int result) {
  return result == 0 ? "no error" : "fake system error";
}

EXPORT const char *ncclGetLastError(Comm *) { return "fake detail"; }

EXPORT int ncclGetUniqueId(Id *id) {
  static int counter = 0;
  std::lock_guard<std::mutex> lock(registryMutex);
  std::memset(id->bytes, 0, sizeof(id->bytes));
  std::snprintf(id->bytes, sizeof(id->bytes), "fake-%d", ++counter);
  return 0;
}

EXPORT int ncclCommInitRank(Comm **comm, int ranks, Id id, int rank) {
  note("init");
  std::shared_ptr<Group> group;
  {
    std::lock_guard<std::mutex> lock(registryMutex);
    std::shared_ptr<Group> &entry = registry[id.bytes];
    if (!entry)
      entry = std::make_shared<Group>(ranks);
    group = entry;
  }
  if (!group->meet())
    return kSystemError;
  *comm = add(group, rank);
  return 0;
}

#ifndef FAKE_WITHOUT_SPLIT
EXPORT int ncclCommSplit(Comm *comm, int color, int key, Comm **made,
                         void *config) {
  note("split");
  if (config)
    return 4;
  Group &group = *comm->group;
  group.colors[size_t(comm->rank)] = color;
  group.keys[size_t(comm->rank)] = key;
  if (!group.meet())
    return kSystemError;
  int size = 0, rank = 0;
  for (int r = 0; r < group.size; ++r)
    if (group.colors[size_t(r)] == color) {
      ++size;
      rank += group.keys[size_t(r)] < key;
    }
  std::shared_ptr<Group> part;
  {
    std::lock_guard<std::mutex> lock(group.mutex);
    std::shared_ptr<Group> &entry = group.made[color];
    if (!entry)
      entry = std::make_shared<Group>(size);
    part = entry;
  }
  if (!group.meet())
    return kSystemError;
  {
    std::lock_guard<std::mutex> lock(group.mutex);
    group.made.clear(); // everybody has taken its part, or is about to
  }
  if (!group.meet())
    return kSystemError;
  *made = add(part, rank);
  return 0;
}
#endif

EXPORT int ncclCommDestroy(Comm *comm) {
  note("destroy");
  std::lock_guard<std::mutex> lock(registryMutex);
  communicators.erase(comm);
  delete comm;
  return 0;
}

EXPORT int ncclCommAbort(Comm *comm) {
  note("abort");
  ask("abort", comm->rank, nullptr);
  comm->group->abort(); // kept: a collective may still use it
  return 0;
}

EXPORT int ncclCommGetAsyncError(Comm *, int *error) {
  *error = 0;
  return 0;
}

EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int type,
                         int op, Comm *comm, void *stream) {
  if (int result = ask("all_reduce", comm->rank, stream))
    return result;
  Group &group = *comm->group;
  group.sends[size_t(comm->rank)] = send;
  std::vector<char> result(count * widthOf(type) + 1);
  bool fine =
      group.meet() && reduceAs(type, group, 0, count, op, result.data());
  if (!group.meet() || !fine)
    return kSystemError;
  std::memcpy(recv, result.data(), count * widthOf(type));
  return 0;
}

EXPORT int ncclReduceScatter(const void *send, void *recv, size_t count,
                             int type, int op, Comm *comm, void *stream) {
  if (int result = ask("reduce_scatter", comm->rank, stream))
    return result;
  Group &group = *comm->group;
  group.sends[size_t(comm->rank)] = send;
  std::vector<char> result(count * widthOf(type) + 1);
  bool fine = group.meet() && reduceAs(type, group, size_t(comm->rank) * count,
                                       count, op, result.data());
  if (!group.meet() || !fine)
    return kSystemError;
  std::memcpy(recv, result.data(), count * widthOf(type));
  return 0;
}

EXPORT int ncclAllGather(const void *send, void *recv, size_t count, int type,
                         Comm *comm, void *stream) {
  if (int result = ask("all_gather", comm->rank, stream))
    return result;
  Group &group = *comm->group;
  size_t bytes = count * widthOf(type);
  std::string mine(static_cast<const char *>(send), bytes);
  group.sends[size_t(comm->rank)] = mine.data();
  if (!group.meet())
    return kSystemError;
  for (int r = 0; r < group.size; ++r)
    std::memcpy(static_cast<char *>(recv) + size_t(r) * bytes,
                group.sends[size_t(r)], bytes);
  return group.meet() ? 0 : kSystemError;
}

EXPORT int ncclBroadcast(const void *send, void *recv, size_t count, int type,
                         int root, Comm *comm, void *stream) {
  if (int result = ask("broadcast", comm->rank, stream))
    return result;
  Group &group = *comm->group;
  group.sends[size_t(comm->rank)] = send;
  if (!group.meet())
    return kSystemError;
  if (comm->rank != root)
    std::memcpy(recv, group.sends[size_t(root)], count * widthOf(type));
  else if (recv != send)
    std::memcpy(recv, send, count * widthOf(type));
  return group.meet() ? 0 : kSystemError;
}
