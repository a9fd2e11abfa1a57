// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every rank publishes the addresses of its ends of all pairs, then connects
// them in rank order. A second thread closes the pairs if the wait is over:
// a closed pair wakes whoever waits for its connection.

#include "comm/GlooMesh.h"

#include "comm/StoreWire.h"

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;

/// Polls `over` on a thread and closes all pairs once it is true.
class Interrupter {
public:
  Interrupter(gloo::transport::Context &context, std::function<bool()> over)
      : thread([this, &context, over = std::move(over)] {
          while (!stopping.load()) {
            if (over()) {
              interrupted.store(true);
              for (int peer = 0; peer < context.size; ++peer)
                if (peer != context.rank)
                  context.getPair(peer)->close();
              return;
            }
            std::this_thread::sleep_for(Milliseconds(10));
          }
        }) {}
  ~Interrupter() {
    stopping.store(true);
    thread.join();
  }

  std::atomic<bool> stopping{false};
  std::atomic<bool> interrupted{false};

private:
  std::thread thread; // last: the others are there when it starts
};

void check(const Status &status) {
  if (!status.ok())
    throw std::runtime_error(status.message());
}

/// The addresses of one rank's pair ends, one behind the other with lengths.
std::vector<char> addressFor(int rank, const std::string &blob) {
  size_t at = 0;
  for (int i = 0;; ++i) {
    if (blob.size() - at < 4)
      break;
    size_t bytes = wire::readU32(blob.data() + at);
    if (blob.size() - at - 4 < bytes)
      break;
    if (i == rank)
      return std::vector<char>(blob.begin() + long(at + 4),
                               blob.begin() + long(at + 4 + bytes));
    at += 4 + bytes;
  }
  throw std::runtime_error("a peer published no address for this rank");
}

} // namespace

void GlooMesh::connect(Store &store,
                       std::shared_ptr<gloo::transport::Device> device,
                       Milliseconds timeout,
                       const std::function<bool()> &cancelled) {
  Clock::time_point deadline = Clock::now() + timeout;
  std::shared_ptr<gloo::transport::Context> transport =
      device->createContext(rank, size);
  // The deadline above is ours to keep; Gloo's only has to be later.
  setTimeout(timeout);
  transport->setTimeout(timeout);
  std::string mine;
  for (int peer = 0; peer < size; ++peer) {
    std::vector<char> bytes;
    if (peer != rank)
      bytes = transport->createPair(peer)->address().bytes();
    wire::appendU32(mine, uint32_t(bytes.size()));
    mine.append(bytes.begin(), bytes.end());
  }
  check(store.set("pairs/" + std::to_string(rank), mine));

  auto over = [&] { return Clock::now() >= deadline || cancelled(); };
  auto giveUp = [&] {
    if (cancelled())
      throw std::runtime_error("");
    throw GlooTimedOut(
        format("not connected within %lld ms", (long long)timeout.count()));
  };
  Interrupter interrupter(*transport, over);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank)
      continue;
    std::string blob;
    bool found = false;
    Milliseconds pause(1);
    while (true) {
      check(store.tryGet("pairs/" + std::to_string(peer), blob, found));
      if (found)
        break;
      if (over())
        giveUp();
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, Milliseconds(20));
    }
    try {
      transport->getPair(peer)->connect(addressFor(rank, blob));
    } catch (...) {
      if (interrupter.interrupted.load())
        giveUp();
      throw;
    }
    if (interrupter.interrupted.load())
      giveUp();
  }
  device_ = std::move(device);
  transportContext_ = std::move(transport);
}

} // namespace dfa::rt
