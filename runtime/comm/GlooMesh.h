// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A Gloo context that connects all pairs through our store and can be
// interrupted while it does: Gloo's own waits for a dead peer until its
// timeout. Internal to GlooGroup.cpp; the only other file that knows Gloo.

#ifndef DFA_COMM_GLOOMESH_H
#define DFA_COMM_GLOOMESH_H

#include "comm/Store.h"

#include <gloo/context.h>
#include <gloo/transport/device.h>

#include <functional>
#include <memory>
#include <stdexcept>

namespace dfa::rt {

/// The time was up.
struct GlooTimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class GlooMesh : public gloo::Context {
public:
  GlooMesh(int rank, int size) : gloo::Context(rank, size) {}

  /// Connects all pairs or throws; gives up when `cancelled` says so.
  void connect(Store &store, std::shared_ptr<gloo::transport::Device> device,
               Milliseconds timeout, const std::function<bool()> &cancelled);
};

} // namespace dfa::rt

#endif // DFA_COMM_GLOOMESH_H
