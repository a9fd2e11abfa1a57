// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives between threads.

#include "ThreadCommunicator.h"

#include <algorithm>
#include <cstring>

namespace dfa::rt::test {

void ThreadGroup::meet() {
  std::unique_lock<std::mutex> lock(mutex);
  uint64_t mine = round;
  if (++arrived == size) {
    arrived = 0;
    ++round;
    met.notify_all();
    return;
  }
  met.wait(lock, [&] { return round != mine; });
}

Status ThreadGroup::enter(int rank, const void *from,
                          const std::string &collective) {
  send[rank] = from;
  what[rank] = collective;
  meet();
  for (const std::string &other : what)
    if (other != collective)
      return DFA_RT_ERROR(CollectiveError, "rank %d does '%s', another '%s'",
                          rank, collective.c_str(), other.c_str());
  return Status();
}

void ThreadGroup::leave() { meet(); }

template <typename T>
static void reduce(const std::vector<const void *> &parts, int64_t begin,
                   int64_t count, ReduceOp op, std::vector<char> &result) {
  result.resize(count * sizeof(T));
  T *out = reinterpret_cast<T *>(result.data());
  for (int64_t index = 0; index < count; ++index) {
    T value = static_cast<const T *>(parts[0])[begin + index];
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      T other = static_cast<const T *>(parts[rank])[begin + index];
      value = op == ReduceOp::Sum ? value + other : std::max(value, other);
    }
    out[index] = value;
  }
}

static void reduceAs(DataType type, const std::vector<const void *> &parts,
                     int64_t begin, int64_t count, ReduceOp op,
                     std::vector<char> &result) {
  if (type == DataType::F32)
    reduce<float>(parts, begin, count, op, result);
  else if (type == DataType::F64)
    reduce<double>(parts, begin, count, op, result);
  else
    reduce<uint32_t>(parts, begin, count, op, result);
}

void ThreadCommunicator::label(const char *collective, int64_t bucket) {
  labelled = format("%s bucket %lld", collective, (long long)bucket);
}

Status ThreadCommunicator::post(const std::string &word, const void *send,
                                int64_t count, Stream stream,
                                std::function<void(ThreadGroup &)> read) {
  std::string collective = labelled + format(" count %lld", (long long)count);
  log.push_back(collective);
  collective += " " + word;
  std::string channel = word + format(" %lld", (long long)count);
  uint64_t capture = 0;
  DFA_RT_TRY(device.captureId(stream, capture));
  if (!capture)
    connected.insert(channel);
  else if (lazy && !connected.count(channel))
    return DFA_RT_ERROR(CollectiveError, "'%s' connects in a recording",
                        collective.c_str());
  return device.enqueueHost(
      [=, group = group, own = own] {
        DFA_RT_TRY(group->enter(own, send, collective));
        read(*group);
        return Status();
      },
      stream);
}

// Results are written only after all ranks have read: buffers may be shared
// between the two sides of a collective.
Status ThreadCommunicator::reduceScatter(const void *send, void *recv,
                                         int64_t count, DataType type,
                                         ReduceOp op, Stream stream) {
  return post(format("reduceScatter type %d", int(type)), send, count, stream,
              [=, own = own](ThreadGroup &group) {
                std::vector<char> result;
                reduceAs(type, group.send, own * count, count, op, result);
                group.leave();
                std::memcpy(recv, result.data(), result.size());
              });
}

Status ThreadCommunicator::allReduce(const void *send, void *recv,
                                     int64_t count, DataType type, ReduceOp op,
                                     Stream stream) {
  return post(format("allReduce type %d", int(type)), send, count, stream,
              [=](ThreadGroup &group) {
                std::vector<char> result;
                reduceAs(type, group.send, 0, count, op, result);
                group.leave();
                std::memcpy(recv, result.data(), result.size());
              });
}

Status ThreadCommunicator::allGather(const void *send, void *recv,
                                     int64_t count, DataType type,
                                     Stream stream) {
  return post(format("allGather type %d", int(type)), send, count, stream,
              [=](ThreadGroup &group) {
                size_t bytes = count * sizeOf(type);
                std::vector<char> result(bytes * group.size);
                for (int rank = 0; rank < group.size; ++rank)
                  std::memcpy(result.data() + rank * bytes, group.send[rank],
                              bytes);
                group.leave();
                std::memcpy(recv, result.data(), result.size());
              });
}

Status ThreadCommunicator::broadcast(const void *send, void *recv,
                                     int64_t count, DataType type, int root,
                                     Stream stream) {
  return post(format("broadcast type %d", int(type)), send, count, stream,
              [=](ThreadGroup &group) {
                std::vector<char> result(count * sizeOf(type));
                std::memcpy(result.data(), group.send[root], result.size());
                group.leave();
                std::memcpy(recv, result.data(), result.size());
              });
}

Status ThreadCommunicator::allocateShared(size_t bytes, void **memory) {
  *memory = nullptr;
  if (!shares)
    return Status();
  // Not zero, as that of a driver is not.
  shared.emplace_back(bytes, char(0x7f));
  *memory = shared.back().data();
  return Status();
}

Status ThreadCommunicator::barrier(Stream stream) {
  return post("barrier", nullptr, 0, stream,
              [](ThreadGroup &group) { group.leave(); });
}

} // namespace dfa::rt::test
