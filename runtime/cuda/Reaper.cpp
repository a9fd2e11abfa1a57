// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reaper's queue and thread.

#include "cuda/Reaper.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace dfa::rt::cuda {

struct Reaper::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<Held>> items;
  bool closed = false;
};

struct Reaper::Held {
  std::shared_ptr<void> resource;
  std::shared_ptr<Queue> queue;
};

Reaper::Reaper() : queue(std::make_shared<Queue>()) {
  // Detached: the last resource may own the device, and with it this reaper.
  std::thread(work, queue).detach();
}

Reaper::~Reaper() {
  std::lock_guard<std::mutex> lock(queue->mutex);
  queue->closed = true;
  queue->changed.notify_all();
}

void *Reaper::hold(std::shared_ptr<void> resource) {
  return new Held{std::move(resource), queue};
}

void Reaper::post(void *pointer) {
  std::unique_ptr<Held> held(static_cast<Held *>(pointer));
  std::shared_ptr<Queue> queue = held->queue;
  std::lock_guard<std::mutex> lock(queue->mutex);
  queue->items.push_back(std::move(held));
  queue->changed.notify_all();
}

void Reaper::work(std::shared_ptr<Queue> queue) {
  std::unique_lock<std::mutex> lock(queue->mutex);
  for (;;) {
    queue->changed.wait(lock,
                        [&] { return queue->closed || !queue->items.empty(); });
    if (queue->items.empty())
      return;
    std::unique_ptr<Held> held = std::move(queue->items.front());
    queue->items.pop_front();
    lock.unlock();
    held.reset();
    lock.lock();
  }
}

} // namespace dfa::rt::cuda
