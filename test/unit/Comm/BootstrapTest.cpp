// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launchers' variables, SLURM's lists and store addresses, as pure functions.

#include "comm/Bootstrap.h"
#include "comm/SlurmNodeList.h"

#include <gtest/gtest.h>

#include <map>

using namespace dfa::rt;

namespace {

/// An environment made of a map.
Environment environmentOf(std::map<std::string, std::string> variables) {
  return [variables](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::vector<std::string> nodes(const std::string &list) {
  std::vector<std::string> hosts;
  Status status = expandNodeList(list, hosts);
  EXPECT_TRUE(status.ok()) << status.str();
  return hosts;
}

using Names = std::vector<std::string>;

TEST(SlurmNodeList, ExpandsRangesWithTheirWidth) {
  EXPECT_EQ(nodes("n[01-03,7],m2"), (Names{"n01", "n02", "n03", "n7", "m2"}));
  EXPECT_EQ(nodes("a"), (Names{"a"}));
  EXPECT_EQ(nodes("n[8-11]"), (Names{"n8", "n9", "n10", "n11"}));
  EXPECT_EQ(nodes("n[098-101]"), (Names{"n098", "n099", "n100", "n101"}));
  EXPECT_EQ(nodes("gpu-a[1,3-4]-ib,b"),
            (Names{"gpu-a1-ib", "gpu-a3-ib", "gpu-a4-ib", "b"}));
}

TEST(SlurmNodeList, MultipliesSeveralBrackets) {
  EXPECT_EQ(nodes("r[1-2]n[1-3]"),
            (Names{"r1n1", "r1n2", "r1n3", "r2n1", "r2n2", "r2n3"}));
}

TEST(SlurmNodeList, RefusesMalformedLists) {
  Names hosts;
  for (const char *list :
       {"", "n[", "n[]", "n[1-", "n[3-1]", "n[1-2", "n]", "a,,b", "a,", "n[a]",
        "n[1-99999999]", "n[1;2]", "a b", "n[0-99999]m[0-99999]"}) {
    Status status = expandNodeList(list, hosts);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << list;
  }
  Status status = expandNodeList("n[1-2", hosts);
  EXPECT_EQ(status.message(), "list 'n[1-2': expected ']' at character 6");
}

TEST(SlurmNodeList, ExpandsTaskCounts) {
  std::vector<int> counts;
  ASSERT_TRUE(expandTaskCounts("4(x2),3", counts).ok());
  EXPECT_EQ(counts, (std::vector<int>{4, 4, 3}));
  ASSERT_TRUE(expandTaskCounts("1", counts).ok());
  EXPECT_EQ(counts, (std::vector<int>{1}));
  for (const char *list : {"", "x", "4(x", "4(x2", "4(x0)", "4,", "4x2"})
    EXPECT_FALSE(expandTaskCounts(list, counts).ok()) << list;
}

TEST(StoreAddress, ParsesAndPrints) {
  StoreAddress address;
  ASSERT_TRUE(parseStoreAddress("tcp://node1:29501", address).ok());
  EXPECT_EQ(address.kind, StoreAddress::Kind::Tcp);
  EXPECT_EQ(address.host, "node1");
  EXPECT_EQ(address.port, 29501);
  EXPECT_EQ(address.str(), "tcp://node1:29501");
  ASSERT_TRUE(parseStoreAddress("tcp://[fd00::2]:80", address).ok());
  EXPECT_EQ(address.host, "fd00::2");
  EXPECT_EQ(address.str(), "tcp://[fd00::2]:80");
  ASSERT_TRUE(parseStoreAddress("file:/tmp/x", address).ok());
  EXPECT_EQ(address.path, "/tmp/x");
  ASSERT_TRUE(parseStoreAddress("file:///tmp/x", address).ok());
  EXPECT_EQ(address.path, "/tmp/x");
  for (const char *text : {"", "tcp://", "tcp://h", "tcp://h:", "tcp://h:0",
                           "tcp://h:65536", "tcp://:1", "tcp://fd00::2:80",
                           "tcp://h:1x", "file:", "http://h:1", "h:1"})
    EXPECT_EQ(parseStoreAddress(text, address).code(), Code::InvalidArgument)
        << text;
}

Launch launchOf(std::map<std::string, std::string> variables,
                const LaunchFlags &flags = LaunchFlags()) {
  Launch launch;
  Status status = resolveLaunch(flags, environmentOf(variables), launch);
  EXPECT_TRUE(status.ok()) << status.str();
  return launch;
}

const std::map<std::string, std::string> kTorchrun = {
    {"RANK", "5"},
    {"WORLD_SIZE", "8"},
    {"LOCAL_RANK", "1"},
    {"LOCAL_WORLD_SIZE", "4"},
    {"MASTER_ADDR", "node0"},
    {"MASTER_PORT", "29500"},
    {"TORCHELASTIC_RUN_ID", "abc"},
    {"TORCHELASTIC_RESTART_COUNT", "2"}};

const std::map<std::string, std::string> kSlurm = {
    {"SLURM_PROCID", "3"},
    {"SLURM_NTASKS", "6"},
    {"SLURM_LOCALID", "1"},
    {"SLURM_NODEID", "1"},
    {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
    {"SLURM_STEP_NODELIST", "n[07-09]"},
    {"SLURM_JOB_ID", "1234"},
    {"SLURM_STEP_ID", "1"}};

TEST(Launch, ReadsTorchrun) {
  Launch launch = launchOf(kTorchrun);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.worldSize, 8);
  EXPECT_EQ(launch.localRank, 1);
  EXPECT_EQ(launch.localWorldSize, 4);
  // The agent itself listens on MASTER_PORT.
  EXPECT_EQ(launch.store.str(), "tcp://node0:29501");
  EXPECT_EQ(keyPrefix(launch, 3), "dfa/abc/2/3/");
}

TEST(Launch, ReadsSlurmStep) {
  Launch launch = launchOf(kSlurm);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.worldSize, 6);
  EXPECT_EQ(launch.localRank, 1);
  EXPECT_EQ(launch.localWorldSize, 2);
  EXPECT_EQ(launch.store.host, "n07");
  EXPECT_GE(launch.store.port, 20000);
  EXPECT_LT(launch.store.port, 30000);
  EXPECT_EQ(launch.runId, "1234.1");
  std::map<std::string, std::string> other = kSlurm;
  other["SLURM_STEP_ID"] = "2";
  EXPECT_NE(launchOf(other).store.port, launch.store.port);
}

TEST(Launch, IgnoresTheShellOfABatchScript) {
  std::map<std::string, std::string> shell = {
      {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}, {"SLURM_JOB_ID", "1234"}};
  Launch launch = launchOf(shell);
  EXPECT_EQ(launch.worldSize, 1);
  EXPECT_EQ(launch.store.kind, StoreAddress::Kind::None);
}

TEST(Launch, PrefersFlagsThenTorchrunThenSlurm) {
  std::map<std::string, std::string> both = kSlurm;
  both.insert(kTorchrun.begin(), kTorchrun.end());
  EXPECT_EQ(launchOf(both).rank, 5);
  EXPECT_EQ(launchOf(both).runId, "abc");
  LaunchFlags flags;
  flags.rank = 1;
  flags.worldSize = 2;
  flags.store = "file:/tmp/s";
  flags.runId = "mine";
  Launch launch = launchOf(both, flags);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.worldSize, 2);
  EXPECT_EQ(launch.localRank, 1);
  EXPECT_EQ(launch.store.str(), "file:/tmp/s");
  EXPECT_EQ(launch.runId, "mine");
}

TEST(Launch, TakesDfaStoreBeforeMasterAddr) {
  std::map<std::string, std::string> variables = kTorchrun;
  variables["DFA_STORE"] = "tcp://[::1]:4000";
  EXPECT_EQ(launchOf(variables).store.str(), "tcp://[::1]:4000");
}

TEST(Launch, NamesWhatIsWrong) {
  auto messageOf = [](std::map<std::string, std::string> variables,
                      LaunchFlags flags = LaunchFlags()) {
    Launch launch;
    Status status = resolveLaunch(flags, environmentOf(variables), launch);
    EXPECT_EQ(status.code(), Code::InvalidArgument);
    return status.message();
  };
  std::map<std::string, std::string> bad = kTorchrun;
  bad["RANK"] = "five";
  EXPECT_EQ(messageOf(bad),
            "RANK: expected an integer of at least 0, found 'five'");
  bad["RANK"] = "8";
  EXPECT_NE(messageOf(bad).find("found rank 8 of 8"), std::string::npos);
  bad.erase("RANK");
  EXPECT_EQ(messageOf(bad), "environment: expected both RANK and WORLD_SIZE, "
                            "found only WORLD_SIZE");
  bad = kTorchrun;
  bad["MASTER_PORT"] = "65535";
  EXPECT_NE(messageOf(bad).find("MASTER_PORT"), std::string::npos);
  bad.erase("MASTER_ADDR");
  EXPECT_NE(messageOf(bad).find("MASTER_ADDR"), std::string::npos);
  LaunchFlags flags;
  flags.rank = 0;
  EXPECT_NE(messageOf({}, flags).find("--world-size"), std::string::npos);
}

TEST(Launch, ReadsTheTimeout) {
  double seconds = 0;
  ASSERT_TRUE(timeoutFromEnvironment(environmentOf({}), seconds).ok());
  EXPECT_EQ(seconds, 300.0);
  ASSERT_TRUE(
      timeoutFromEnvironment(environmentOf({{"DFA_TIMEOUT_S", "2.5"}}), seconds)
          .ok());
  EXPECT_EQ(seconds, 2.5);
  for (const char *text : {"-1", "0", "x", "1s", "nan", "inf", "1e9"})
    EXPECT_FALSE(timeoutFromEnvironment(
                     environmentOf({{"DFA_TIMEOUT_S", text}}), seconds)
                     .ok())
        << text;
}

} // namespace
