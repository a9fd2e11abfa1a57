// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that NCCL moves by copy engines instead of by blocks of a kernel,
// which would have to share the device with an update that fills it.

#ifndef DFA_COMM_NCCLMEMORY_H
#define DFA_COMM_NCCLMEMORY_H

#include "comm/NcclLibrary.h"
#include "comm/Transport.h"

#include <memory>
#include <vector>

namespace dfa::rt {

/// What the ranks of a run ask of their communicators, all the same.
struct NcclChoices {
  /// Blocks of a collective; 0: NCCL's own choice.
  int blocks = 0;
  /// Gathers in shared memory use copy engines.
  bool engines = false;

  /// From the library's version, the environment, and where the ranks are.
  static NcclChoices of(const CommContext &context, const NcclLibrary &library);
  nccl::Config config() const;
};

class NcclMemory {
public:
  /// Allocates and registers memory; every rank of `comm` calls it with the
  /// same size, in the same order.
  Status allocate(const CommContext &context,
                  const std::shared_ptr<const NcclLibrary> &library,
                  nccl::Comm comm, size_t bytes, void **memory);
  /// Frees all of it, once no communicator is left.
  Status release(const CommContext &context,
                 const std::shared_ptr<const NcclLibrary> &library);

private:
  std::vector<void *> owned;
};

} // namespace dfa::rt

#endif // DFA_COMM_NCCLMEMORY_H
