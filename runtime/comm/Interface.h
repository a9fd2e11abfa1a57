// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which local address a transport binds to. A host name is never resolved for
// this: on many machines it means 127.0.1.1.

#ifndef DFA_COMM_INTERFACE_H
#define DFA_COMM_INTERFACE_H

#include "base/Status.h"
#include "comm/Bootstrap.h"

#include <string>

namespace dfa::rt {

/// A local address, and why it was chosen.
struct LocalAddress {
  std::string address;   ///< numeric, IPv4 or IPv6
  std::string interface; ///< its network interface
  std::string reason;    ///< e.g. "DFA_SOCKET_IFNAME", "route to host:29501"
  bool loopback = false;
};

/// Chooses by DFA_SOCKET_IFNAME, then GLOO_SOCKET_IFNAME (comma-separated
/// names, the first one that exists and has an address), then by the route to
/// the store, else to MASTER_ADDR; a run on one node without either takes the
/// loopback address.
Status chooseLocalAddress(const Launch &launch, const Environment &env,
                          LocalAddress &address);

} // namespace dfa::rt

#endif // DFA_COMM_INTERFACE_H
