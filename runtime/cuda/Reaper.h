// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Frees what recordings kept alive. The driver announces the end of a graph
// from a thread that may not call the driver, so the freeing happens on a
// thread of ours.

#ifndef DFA_CUDA_REAPER_H
#define DFA_CUDA_REAPER_H

#include <memory>

namespace dfa::rt::cuda {

class Reaper {
public:
  Reaper();
  /// Lets the thread end once it has freed everything. Does not wait for it,
  /// since it may be this thread.
  ~Reaper();

  /// Wraps a resource for the driver: pass the result to `post` exactly once.
  void *hold(std::shared_ptr<void> resource);
  /// Hands a held resource to the thread; the destructor of a user object.
  static void post(void *held);

private:
  struct Queue;
  struct Held;
  static void work(std::shared_ptr<Queue> queue);
  std::shared_ptr<Queue> queue;
};

} // namespace dfa::rt::cuda

#endif // DFA_CUDA_REAPER_H
