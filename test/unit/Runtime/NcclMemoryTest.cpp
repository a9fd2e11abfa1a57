// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is asked of NCCL's communicators where, and the memory that is
// registered with them. The library is a table of functions here.

#include "FakeDriver.h"

#include "comm/NcclMemory.h"
#include "cuda/CudaDevice.h"

#include <gtest/gtest.h>
#include <map>

namespace dfa::rt::test {
namespace {

struct Calls {
  int allocated = 0, registered = 0, freed = 0;
  size_t bytes = 0;
  int flags = 0;
  nccl::Result refuse = 0; // what a registration returns
};
Calls calls;
char memory[256];

class NcclShare : public ::testing::Test {
protected:
  NcclShare() : driver([](const char *) { return nullptr; }) {
    calls = Calls();
    device = std::move(*createCudaDevice(driver.api, 0));
    context.device = device.get();
    context.launch.worldSize = context.launch.localWorldSize = 2;
    context.env = [this](const char *name) -> const char * {
      std::map<std::string, std::string>::iterator it = variables.find(name);
      return it == variables.end() ? nullptr : it->second.c_str();
    };
    NcclLibrary library = {};
    library.version = 22803;
    library.getErrorString = [](nccl::Result) { return "a reason"; };
    library.commInitRankConfig = [](nccl::Comm *, int, nccl::UniqueId, int,
                                    nccl::Config *) { return 0; };
    library.memAlloc = [](void **address, size_t bytes) {
      ++calls.allocated;
      calls.bytes = bytes;
      *address = memory;
      return 0;
    };
    library.memFree = [](void *address) {
      ++calls.freed;
      return address == memory ? 0 : 4;
    };
    library.windowRegister = [](nccl::Comm, void *, size_t, void **,
                                int flags) {
      ++calls.registered;
      calls.flags = flags;
      return calls.refuse;
    };
    loaded = std::make_shared<NcclLibrary>(library);
  }

  NcclChoices choices() { return NcclChoices::of(context, *loaded); }

  FakeDriver driver;
  std::unique_ptr<Device> device;
  CommContext context;
  std::map<std::string, std::string> variables;
  std::shared_ptr<NcclLibrary> loaded;
};

TEST_F(NcclShare, EnginesAndBlocksOnOneHost) {
  EXPECT_TRUE(choices().engines);
  nccl::Config config = choices().config();
  EXPECT_EQ(config.policy, nccl::kPolicyZero);
  EXPECT_EQ(config.minBlocks, 32);
  EXPECT_EQ(config.maxBlocks, 32);
  EXPECT_EQ(config.blocking, 1);
  EXPECT_EQ(config.size, sizeof(config));
  EXPECT_EQ(config.trafficClass, nccl::Config::unset);
}

TEST_F(NcclShare, NothingIsAskedOfSeveralHosts) {
  context.launch.worldSize = 4;
  EXPECT_FALSE(choices().engines);
  EXPECT_EQ(choices().config().minBlocks, nccl::Config::unset);
  EXPECT_EQ(choices().config().policy, nccl::Config::unset);
  context.launch.worldSize = 2;
  variables["NCCL_HOSTID"] = "h0"; // pretends
  EXPECT_FALSE(choices().engines);
  EXPECT_EQ(choices().blocks, 0);
}

TEST_F(NcclShare, OldLibrariesAndVariablesTurnItOff) {
  loaded->version = 22705;
  EXPECT_FALSE(choices().engines);
  EXPECT_EQ(choices().blocks, 32);
  loaded->version = 22803;
  for (const char *name : {"DFA_NCCL_COPY_ENGINES", "NCCL_CUMEM_ENABLE"}) {
    variables = {{name, "0"}};
    EXPECT_FALSE(choices().engines) << name;
  }
  variables = {{"DFA_NCCL_CTAS", "0"}};
  EXPECT_TRUE(choices().engines);
  EXPECT_EQ(choices().config().maxBlocks, nccl::Config::unset);
  variables = {{"DFA_NCCL_CTAS", "16"}};
  EXPECT_EQ(choices().config().maxBlocks, 16);
  loaded->windowRegister = nullptr;
  EXPECT_FALSE(choices().engines);
  loaded->commInitRankConfig = nullptr; // nowhere to say it
  EXPECT_EQ(choices().blocks, 0);
}

TEST_F(NcclShare, MemoryIsFreedOnceAtTheEnd) {
  NcclMemory owner;
  void *found = nullptr;
  Status status = owner.allocate(context, loaded, nullptr, 256, &found);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(found, memory);
  EXPECT_EQ(calls.bytes, 256u);
  EXPECT_EQ(calls.flags, nccl::kWindowSymmetric);
  EXPECT_EQ(calls.freed, 0);
  EXPECT_TRUE(owner.release(context, loaded).ok());
  EXPECT_TRUE(owner.release(context, loaded).ok());
  EXPECT_EQ(calls.freed, 1);
}

TEST_F(NcclShare, ARefusedRegistrationIsAnError) {
  calls.refuse = 3;
  NcclMemory owner;
  void *found = nullptr;
  Status status = owner.allocate(context, loaded, nullptr, 256, &found);
  EXPECT_EQ(status.code(), Code::CollectiveError);
  EXPECT_EQ(status.message(), "ncclCommWindowRegister: a reason");
  EXPECT_EQ(found, nullptr);
  EXPECT_TRUE(owner.release(context, loaded).ok());
  EXPECT_EQ(calls.freed, 1);
}

} // namespace
} // namespace dfa::rt::test
