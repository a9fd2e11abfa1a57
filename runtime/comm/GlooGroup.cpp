// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives as direct exchanges between all pairs. A reduction is an
// all-to-all followed by a local sum in rank order, so its bits depend on
// nothing but the ranks' inputs; an all-reduce reduces a slice on each rank and
// gathers the slices, so it has the same bits.

#include "comm/GlooGroup.h"

#include "comm/GlooMesh.h"
#include "comm/LocalReduce.h"

#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;
using Buffer = gloo::transport::UnboundBuffer;

/// Below this many bytes an all-reduce sends everything to everybody: one
/// round instead of two.
constexpr int64_t kSmallBytes = 16384;

class Group : public GlooGroup {
public:
  Group(std::shared_ptr<gloo::Context> context, Milliseconds timeout)
      : context(std::move(context)), timeout(timeout) {}

  int rank() const override { return context->rank; }
  int size() const override { return context->size; }
  void begin(uint64_t value) override { identity = value; }

  bool reduceScatter(const void *send, void *recv, int64_t count, DataType type,
                     ReduceOp op, GlooError &error) override {
    return guarded(error, [&] {
      int64_t bytes = count * int64_t(sizeOf(type));
      std::vector<int64_t> slices(size_t(size()), bytes);
      reduceSlices(send, recv, slices, count, type, op);
    });
  }

  bool allReduce(const void *send, void *recv, int64_t count, DataType type,
                 ReduceOp op, GlooError &error) override {
    return guarded(error, [&] { allReduce(send, recv, count, type, op); });
  }

  bool allGather(const void *send, void *recv, int64_t bytes,
                 GlooError &error) override {
    return guarded(error, [&] {
      gather(send, recv, std::vector<int64_t>(size_t(size()), bytes));
    });
  }

  bool allGatherV(const void *send, void *recv,
                  const std::vector<int64_t> &bytes,
                  GlooError &error) override {
    return guarded(error, [&] { gather(send, recv, bytes); });
  }

  bool broadcast(const void *send, void *recv, int64_t bytes, int root,
                 GlooError &error) override {
    return guarded(error, [&] {
      std::vector<Piece> out, in;
      if (rank() == root) {
        for (int peer = 0; peer < size(); ++peer)
          if (peer != root)
            out.push_back({peer, const_cast<void *>(send), bytes});
      } else {
        in.push_back({root, recv, bytes});
      }
      exchange(out, in);
      if (rank() == root && recv != send && bytes > 0)
        std::memmove(recv, send, size_t(bytes));
    });
  }

  bool barrier(GlooError &error) override {
    return guarded(error, [&] {
      char token = 1;
      std::vector<char> tokens(static_cast<size_t>(size()));
      gather(&token, tokens.data(), std::vector<int64_t>(tokens.size(), 1));
    });
  }

  void abort() override {
    aborted.store(true);
    std::lock_guard<std::mutex> guard(mutex);
    for (Buffer *buffer : receiving)
      buffer->abortWaitRecv();
    for (Buffer *buffer : sending)
      buffer->abortWaitSend();
  }

private:
  /// A message to or from one peer.
  struct Piece {
    int peer;
    void *memory;
    int64_t bytes;
  };

  template <typename Body> bool guarded(GlooError &error, Body body) {
    try {
      body();
      return true;
    } catch (const GlooTimedOut &caught) {
      error = {caught.what(), true};
    } catch (const std::exception &caught) {
      // Gloo says the same of a timeout and of a broken pipe: text decides.
      std::string text = caught.what();
      error = {text, text.find("imed out") != std::string::npos};
    }
    return false;
  }

  void exchange(const std::vector<Piece> &out, const std::vector<Piece> &in);
  void waitFor(std::vector<std::unique_ptr<Buffer>> &buffers, bool receives,
               Clock::time_point deadline);
  void gather(const void *send, void *recv, const std::vector<int64_t> &bytes);
  void allReduce(const void *send, void *recv, int64_t count, DataType type,
                 ReduceOp op);
  /// slices[i] bytes of `send` go to rank i; this rank's slice (`count`
  /// elements) of the result lands in `recv`.
  void reduceSlices(const void *send, void *recv,
                    const std::vector<int64_t> &slices, int64_t count,
                    DataType type, ReduceOp op);
  char *reserve(int64_t bytes) {
    if (int64_t(scratch.size()) < bytes)
      scratch.resize(size_t(bytes));
    return scratch.data();
  }

  std::shared_ptr<gloo::Context> context;
  const Milliseconds timeout;
  /// The channel of one message. Sizes are part of it for the same reason as
  /// the identity: a longer message than expected ends the process in Gloo.
  uint64_t slotOf(const Piece &piece) const {
    uint64_t slot = identity + exchanges * 0x9e3779b97f4a7c15ull;
    slot = (slot ^ slot >> 31) * 0xbf58476d1ce4e5b9ull;
    slot = (slot ^ uint64_t(piece.bytes)) * 0x94d049bb133111ebull;
    return slot ^ slot >> 29;
  }

  uint64_t identity = 0;     // of the collective in progress
  uint64_t exchanges = 0;    // so far; the same on all ranks
  std::vector<char> scratch; // grows to the largest reduction and stays

  std::atomic<bool> aborted{false};
  std::mutex mutex; // guards the two lists
  std::vector<Buffer *> receiving, sending;
};

void Group::exchange(const std::vector<Piece> &out,
                     const std::vector<Piece> &in) {
  if (aborted.load())
    throw std::runtime_error("");
  Clock::time_point deadline = Clock::now() + timeout;
  ++exchanges;
  // One buffer a message: a shared one forgets which of two peers completed.
  std::vector<std::unique_ptr<Buffer>> receives, sends;
  for (const Piece &piece : in)
    receives.push_back(
        context->createUnboundBuffer(piece.memory, size_t(piece.bytes)));
  for (const Piece &piece : out)
    sends.push_back(
        context->createUnboundBuffer(piece.memory, size_t(piece.bytes)));

  /// Registers the buffers for abort() as long as this call runs.
  struct Registration {
    Registration(Group &group, std::vector<std::unique_ptr<Buffer>> &receives,
                 std::vector<std::unique_ptr<Buffer>> &sends)
        : group(group) {
      std::lock_guard<std::mutex> guard(group.mutex);
      for (std::unique_ptr<Buffer> &buffer : receives)
        group.receiving.push_back(buffer.get());
      for (std::unique_ptr<Buffer> &buffer : sends)
        group.sending.push_back(buffer.get());
    }
    ~Registration() {
      std::lock_guard<std::mutex> guard(group.mutex);
      group.receiving.clear();
      group.sending.clear();
    }
    Group &group;
  } registration(*this, receives, sends);

  for (size_t i = 0; i < in.size(); ++i)
    receives[i]->recv(in[i].peer, slotOf(in[i]), 0, size_t(in[i].bytes));
  for (size_t i = 0; i < out.size(); ++i)
    sends[i]->send(out[i].peer, slotOf(out[i]), 0, size_t(out[i].bytes));
  waitFor(receives, true, deadline);
  waitFor(sends, false, deadline);
}

void Group::waitFor(std::vector<std::unique_ptr<Buffer>> &buffers,
                    bool receives, Clock::time_point deadline) {
  for (std::unique_ptr<Buffer> &buffer : buffers) {
    Milliseconds left =
        std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    left = std::max(left, Milliseconds(1));
    bool completed =
        !aborted.load() && (receives ? buffer->waitRecv(nullptr, left)
                                     : buffer->waitSend(nullptr, left));
    if (!completed)
      throw std::runtime_error("");
  }
}

void Group::gather(const void *send, void *recv,
                   const std::vector<int64_t> &bytes) {
  char *target = static_cast<char *>(recv);
  std::vector<char *> places(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    places[i] = target;
    target += bytes[i];
  }
  int64_t mine = bytes[size_t(rank())];
  std::vector<Piece> out, in;
  // Start behind oneself, so that not everybody writes to rank 0 first.
  for (int step = 1; step < size(); ++step) {
    int to = (rank() + step) % size();
    int from = (rank() + size() - step) % size();
    if (mine > 0)
      out.push_back({to, const_cast<void *>(send), mine});
    if (bytes[size_t(from)] > 0)
      in.push_back({from, places[size_t(from)], bytes[size_t(from)]});
  }
  exchange(out, in);
  if (mine > 0 && places[size_t(rank())] != send)
    std::memmove(places[size_t(rank())], send, size_t(mine));
}

void Group::reduceSlices(const void *send, void *recv,
                         const std::vector<int64_t> &slices, int64_t count,
                         DataType type, ReduceOp op) {
  int64_t mine = slices[size_t(rank())];
  char *room = reserve(mine * (size() - 1));
  std::vector<int64_t> offsets(slices.size());
  for (size_t i = 1; i < slices.size(); ++i)
    offsets[i] = offsets[i - 1] + slices[i - 1];
  char *source = static_cast<char *>(const_cast<void *>(send));

  std::vector<const void *> inputs(slices.size());
  inputs[size_t(rank())] = source + offsets[size_t(rank())];
  std::vector<Piece> out, in;
  for (int step = 1; step < size(); ++step) {
    int to = (rank() + step) % size();
    int from = (rank() + size() - step) % size();
    if (slices[size_t(to)] > 0)
      out.push_back({to, source + offsets[size_t(to)], slices[size_t(to)]});
    char *place = room + (step - 1) * mine;
    inputs[size_t(from)] = place;
    if (mine > 0)
      in.push_back({from, place, mine});
  }
  exchange(out, in);
  reduceInOrder(inputs, recv, count, type, op);
}

void Group::allReduce(const void *send, void *recv, int64_t count,
                      DataType type, ReduceOp op) {
  int64_t width = int64_t(sizeOf(type));
  if (count * width <= kSmallBytes || count < size()) {
    int64_t bytes = count * width;
    char *room = reserve(bytes * size());
    gather(send, room, std::vector<int64_t>(size_t(size()), bytes));
    std::vector<const void *> inputs;
    for (int i = 0; i < size(); ++i)
      inputs.push_back(room + i * bytes);
    return reduceInOrder(inputs, recv, count, type, op);
  }
  std::vector<int64_t> slices;
  int64_t offset = 0;
  for (int i = 0; i < size(); ++i) {
    int64_t elements = count / size() + (i < count % size() ? 1 : 0);
    slices.push_back(elements * width);
    if (i < rank())
      offset += slices.back();
  }
  // In place this overwrites only our own slice, which everybody has already
  // received or does not need.
  char *mine = static_cast<char *>(recv) + offset;
  int64_t elements = slices[size_t(rank())] / width;
  reduceSlices(send, mine, slices, elements, type, op);
  gather(mine, recv, slices);
}

} // namespace

bool GlooGroup::connect(int rank, int size, const std::string &address,
                        Store &store, Milliseconds timeout,
                        const std::function<bool()> &cancelled,
                        std::unique_ptr<GlooGroup> &group, GlooError &error) {
  try {
    gloo::transport::tcp::attr attributes(address.c_str());
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(attributes);
    std::shared_ptr<GlooMesh> context = std::make_shared<GlooMesh>(rank, size);
    context->connect(store, device, timeout, cancelled);
    group = std::make_unique<Group>(std::move(context), timeout);
    return true;
  } catch (const GlooTimedOut &caught) {
    error = {caught.what(), true};
  } catch (const std::exception &caught) {
    std::string text = caught.what();
    error = {text, text.find("imeout") != std::string::npos ||
                       text.find("imed out") != std::string::npos};
  }
  return false;
}

} // namespace dfa::rt
