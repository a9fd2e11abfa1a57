// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Set-up shared by the tests of transports: a communicator set of one rank in a
// test process.

#ifndef DFA_TEST_COMM_RANKS_H
#define DFA_TEST_COMM_RANKS_H

#include "Processes.h"

#include "comm/CommSet.h"

#include <memory>
#include <string>
#include <vector>

/// One rank of a test run.
struct Rank {
  std::shared_ptr<dfa::rt::Store> store;
  std::unique_ptr<dfa::rt::CommSet> set;
};

/// How the ranks of a test meet.
struct World {
  int size = 1;
  std::vector<dfa::rt::MeshAxis> axes;
  std::vector<int> ranks; ///< of the mesh; empty: all
  dfa::rt::StoreAddress store;
  double timeoutSeconds = 20;
  dfa::rt::TransportKind transport = dfa::rt::TransportKind::Gloo;
  std::string nccl; ///< path of the stand-in library
  dfa::rt::Device *device = nullptr;

  /// Over a TCP store on a free loopback port.
  static World tcp(int size, std::vector<dfa::rt::MeshAxis> axes);
  /// Over a directory.
  static World file(int size, std::vector<dfa::rt::MeshAxis> axes,
                    const std::string &path);
};

/// Opens the store only.
dfa::rt::Status openWorldStore(const World &world, int rank,
                               std::shared_ptr<dfa::rt::Store> &store);

/// Opens the store and connects.
dfa::rt::Status join(const World &world, int rank, Rank &joined);

/// Waits for all ranks of the world through the store, so that the one that
/// serves it does not leave early.
dfa::rt::Status meet(const World &world, int rank, Rank &joined,
                     const std::string &name);

#endif // DFA_TEST_COMM_RANKS_H
