// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The server half of the TCP store: one thread that owns the map and answers
// requests. Clients are in TcpStore.cpp.

#ifndef DFA_COMM_TCPSTORESERVER_H
#define DFA_COMM_TCPSTORESERVER_H

#include "base/Status.h"
#include "comm/StoreWire.h"

#include <memory>
#include <string>

namespace dfa::rt {

/// Serves until destroyed.
class TcpStoreServer {
public:
  virtual ~TcpStoreServer() = default;

  /// The port it listens on.
  virtual int port() const = 0;

  /// Listens on `host`'s loopback address if it is one, else on all
  /// interfaces (a launcher's host name need not be an address of ours); port
  /// 0 picks a free one. Tries until the deadline while the port is taken.
  /// `listening` is a socket that listens already, of which a duplicate is
  /// used, or -1.
  static Status start(const std::string &host, int port,
                      wire::Deadline deadline, int listening,
                      std::shared_ptr<TcpStoreServer> &server);
};

} // namespace dfa::rt

#endif // DFA_COMM_TCPSTORESERVER_H
