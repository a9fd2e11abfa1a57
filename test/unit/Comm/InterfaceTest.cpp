// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which local address a transport takes.

#include "comm/Interface.h"

#include <gtest/gtest.h>

#include <map>

using namespace dfa::rt;

namespace {

LocalAddress choose(std::map<std::string, std::string> variables,
                    const Launch &launch, Status &status) {
  LocalAddress address;
  status = chooseLocalAddress(
      launch,
      [&](const char *name) -> const char * {
        auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      address);
  return address;
}

Launch launchWith(const std::string &store, int world = 2, int local = 2) {
  Launch launch;
  launch.worldSize = world;
  launch.localWorldSize = local;
  EXPECT_TRUE(parseStoreAddress(store, launch.store).ok());
  return launch;
}

TEST(Interface, FollowsTheVariablesInTheirOrder) {
  Status status;
  LocalAddress address = choose({{"DFA_SOCKET_IFNAME", "lo"}},
                                launchWith("tcp://192.0.2.1:1"), status);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(address.address, "127.0.0.1");
  EXPECT_EQ(address.interface, "lo");
  EXPECT_EQ(address.reason, "DFA_SOCKET_IFNAME");
  EXPECT_TRUE(address.loopback);
  address = choose({{"GLOO_SOCKET_IFNAME", "nosuch0,lo"}},
                   launchWith("tcp://192.0.2.1:1"), status);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(address.reason, "GLOO_SOCKET_IFNAME");
  EXPECT_EQ(address.interface, "lo");
  choose({{"DFA_SOCKET_IFNAME", "nosuch0"}, {"GLOO_SOCKET_IFNAME", "lo"}},
         launchWith("tcp://127.0.0.1:1"), status);
  EXPECT_EQ(status.message(),
            "DFA_SOCKET_IFNAME: expected an interface that is up and has an "
            "address, found 'nosuch0'");
}

TEST(Interface, TakesTheRouteToTheStore) {
  Status status;
  LocalAddress address =
      choose({}, launchWith("tcp://127.0.0.1:29501"), status);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(address.address, "127.0.0.1");
  EXPECT_EQ(address.reason, "route to tcp://127.0.0.1:29501");
  address = choose({}, launchWith("tcp://[::1]:29501"), status);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(address.address, "::1");
  EXPECT_TRUE(address.loopback);
}

TEST(Interface, WithoutAStoreAddress) {
  Status status;
  LocalAddress address =
      choose({{"MASTER_ADDR", "127.0.0.1"}}, launchWith("file:/x"), status);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(address.reason, "route to MASTER_ADDR");
  address = choose({}, launchWith("file:/x"), status);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(address.address, "127.0.0.1");
  choose({}, launchWith("file:/x", 4, 2), status);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_NE(status.message().find("DFA_SOCKET_IFNAME"), std::string::npos);
}

} // namespace
