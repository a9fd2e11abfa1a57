// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks the kernel: getifaddrs for named interfaces, a connected UDP socket (no
// packet is sent) for routes.

#include "comm/Interface.h"

#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dfa::rt {

namespace {

std::string numeric(const sockaddr *address) {
  char text[NI_MAXHOST] = "";
  socklen_t bytes = address->sa_family == AF_INET ? sizeof(sockaddr_in)
                                                  : sizeof(sockaddr_in6);
  ::getnameinfo(address, bytes, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

bool isLoopback(const sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in *>(address)
                      ->sin_addr.s_addr) >>
            24) == 127;
  return IN6_IS_ADDR_LOOPBACK(
      &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

/// IPv4 first, so that all ranks choose the same family; link-local IPv6
/// addresses need a scope that means nothing on another host.
int preference(const sockaddr *address) {
  if (!address)
    return 0;
  if (address->sa_family == AF_INET)
    return 2;
  if (address->sa_family != AF_INET6)
    return 0;
  const auto *v6 = reinterpret_cast<const sockaddr_in6 *>(address);
  return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 0 : 1;
}

/// Calls `visit` for each address of each interface that is up.
template <typename Visit> void forEachAddress(Visit visit) {
  ifaddrs *list = nullptr;
  if (::getifaddrs(&list) != 0)
    return;
  for (ifaddrs *it = list; it; it = it->ifa_next)
    if ((it->ifa_flags & IFF_UP) && preference(it->ifa_addr) > 0)
      visit(it->ifa_name, it->ifa_addr);
  ::freeifaddrs(list);
}

bool addressOf(const std::string &interface, LocalAddress &address) {
  int best = 0;
  forEachAddress([&](const char *name, const sockaddr *candidate) {
    if (interface != name || preference(candidate) <= best)
      return;
    best = preference(candidate);
    address.address = numeric(candidate);
    address.interface = name;
    address.loopback = isLoopback(candidate);
  });
  return best > 0;
}

std::string interfaceOf(const std::string &address) {
  std::string found = "?";
  forEachAddress([&](const char *name, const sockaddr *candidate) {
    if (numeric(candidate) == address)
      found = name;
  });
  return found;
}

/// Finds the source address of packets to host:port.
bool routeTo(const std::string &host, int port, LocalAddress &address) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints,
                    &found) != 0)
    return false;
  bool routed = false;
  // Two passes: an IPv4 route wins, whatever order the resolver likes.
  for (int family : {AF_INET, AF_INET6}) {
    for (addrinfo *it = found; it && !routed; it = it->ai_next) {
      if (it->ai_family != family)
        continue;
      int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      sockaddr_storage local = {};
      socklen_t bytes = sizeof(local);
      sockaddr *source = reinterpret_cast<sockaddr *>(&local);
      if (fd >= 0 && ::connect(fd, it->ai_addr, it->ai_addrlen) == 0 &&
          ::getsockname(fd, source, &bytes) == 0 && preference(source) > 0) {
        routed = true;
        address.address = numeric(source);
        address.loopback = isLoopback(source);
        address.interface = interfaceOf(address.address);
      }
      if (fd >= 0)
        ::close(fd);
    }
  }
  ::freeaddrinfo(found);
  return routed;
}

} // namespace

Status chooseLocalAddress(const Launch &launch, const Environment &env,
                          LocalAddress &address) {
  address = LocalAddress();
  for (const char *variable : {"DFA_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const char *value = env(variable);
    if (!value || !*value)
      continue;
    std::string names = value;
    for (size_t begin = 0; begin <= names.size();) {
      size_t comma = std::min(names.find(',', begin), names.size());
      if (addressOf(names.substr(begin, comma - begin), address)) {
        address.reason = variable;
        return Status();
      }
      begin = comma + 1;
    }
    return DFA_RT_ERROR(InvalidArgument,
                        "%s: expected an interface that is up and has an "
                        "address, found '%s'",
                        variable, value);
  }
  if (launch.store.kind == StoreAddress::Kind::Tcp) {
    if (routeTo(launch.store.host, launch.store.port, address)) {
      address.reason = "route to " + launch.store.str();
      return Status();
    }
    return DFA_RT_ERROR(CollectiveError,
                        "no route to the store %s; name an interface with "
                        "DFA_SOCKET_IFNAME",
                        launch.store.str().c_str());
  }
  const char *master = env("MASTER_ADDR");
  if (master && *master && routeTo(master, 9, address)) {
    address.reason = "route to MASTER_ADDR";
    return Status();
  }
  if (launch.localWorldSize == launch.worldSize) {
    address = {"127.0.0.1", "lo", "one node", true};
    return Status();
  }
  return DFA_RT_ERROR(InvalidArgument,
                      "several nodes and no store address to find a route to: "
                      "expected DFA_SOCKET_IFNAME to name an interface");
}

} // namespace dfa::rt
