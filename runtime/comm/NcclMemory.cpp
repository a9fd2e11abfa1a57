// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Symmetric windows of NCCL: allocated by it, registered with a communicator.
// docs/performance.md has the measurements behind the choices.

#include "comm/NcclMemory.h"

#include "comm/NcclHelper.h"

#include <cstdlib>
#include <string>

namespace dfa::rt {

/// The first version whose gathers use copy engines.
constexpr int engineVersion = 22800;
/// On one host, where links are as fast as NCCL's blocks can drive them.
constexpr int blocksOnOneHost = 32;

static bool isOff(const Environment &env, const char *name) {
  const char *value = env(name);
  return value && std::string(value) == "0";
}

NcclChoices NcclChoices::of(const CommContext &context,
                            const NcclLibrary &library) {
  NcclChoices choices;
  // NCCL_HOSTID makes one host look like several.
  bool oneHost = context.launch.localWorldSize == context.launch.worldSize &&
                 !context.env("NCCL_HOSTID");
  if (!oneHost || !library.commInitRankConfig)
    return choices;
  choices.blocks = blocksOnOneHost;
  if (const char *given = context.env("DFA_NCCL_CTAS"))
    choices.blocks = std::atoi(given);
  choices.engines = library.version >= engineVersion && library.memAlloc &&
                    library.memFree && library.windowRegister &&
                    context.device &&
                    context.device->kind() == Device::Kind::Cuda &&
                    !isOff(context.env, "DFA_NCCL_COPY_ENGINES") &&
                    !isOff(context.env, "NCCL_CUMEM_ENABLE");
  return choices;
}

nccl::Config NcclChoices::config() const {
  nccl::Config config;
  if (blocks > 0)
    config.minBlocks = config.maxBlocks = blocks;
  if (engines)
    config.policy = nccl::kPolicyZero;
  return config;
}

static Status failed(const NcclLibrary &library, const char *call,
                     nccl::Result result) {
  return DFA_RT_ERROR(CollectiveError, "%s: %s", call,
                      library.getErrorString(result));
}

Status NcclMemory::allocate(const CommContext &context,
                            const std::shared_ptr<const NcclLibrary> &library,
                            nccl::Comm comm, size_t bytes, void **memory) {
  *memory = nullptr;
  std::shared_ptr<void *> made = std::make_shared<void *>(nullptr);
  std::shared_ptr<HelperOutcome> outcome;
  bool returned = runOnHelper(
      context, library,
      [library, comm, bytes, made](nccl::Comm *) {
        nccl::Result result = library->memAlloc(made.get(), bytes);
        void *window = nullptr;
        // The window goes with the communicator.
        if (result == 0)
          result = library->windowRegister(comm, *made, bytes, &window,
                                           nccl::kWindowSymmetric);
        return result;
      },
      outcome);
  if (!returned)
    return DFA_RT_ERROR(CollectiveError, "ncclCommWindowRegister did not "
                                         "return in time");
  DFA_RT_TRY(outcome->device);
  if (*made)
    owned.push_back(*made);
  if (outcome->result != 0)
    return failed(*library, "ncclCommWindowRegister", outcome->result);
  *memory = *made;
  return Status();
}

Status NcclMemory::release(const CommContext &context,
                           const std::shared_ptr<const NcclLibrary> &library) {
  if (owned.empty())
    return Status();
  std::shared_ptr<HelperOutcome> outcome;
  bool returned = runOnHelper(
      context, library,
      [library, all = std::move(owned)](nccl::Comm *) {
        nccl::Result result = 0;
        for (void *memory : all)
          if (nccl::Result code = library->memFree(memory))
            result = code;
        return result;
      },
      outcome);
  owned.clear();
  if (!returned)
    return DFA_RT_ERROR(CollectiveError, "ncclMemFree did not return in time");
  return outcome->result == 0
             ? Status()
             : failed(*library, "ncclMemFree", outcome->result);
}

} // namespace dfa::rt
