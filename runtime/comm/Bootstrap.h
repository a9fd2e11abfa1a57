// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who am I, how many are we, where is the store: flags, then torchrun's
// variables, then SLURM's. A pure function of flags and an environment lookup;
// nothing is opened or connected here (see Store.h).

#ifndef DFA_COMM_BOOTSTRAP_H
#define DFA_COMM_BOOTSTRAP_H

#include "base/Status.h"

#include <functional>
#include <optional>
#include <string>

namespace dfa::rt {

/// Looks up an environment variable; null if it is not set.
using Environment = std::function<const char *(const char *)>;

/// Returns the lookup in this process's environment.
Environment processEnvironment();

/// Where the key-value store lies.
struct StoreAddress {
  enum class Kind { None, Tcp, File };
  Kind kind = Kind::None;
  std::string host; ///< Tcp: name or address, without brackets
  int port = 0;     ///< Tcp
  std::string path; ///< File

  /// Returns the address in the form that parseStoreAddress reads.
  std::string str() const;
};

/// Parses tcp://host:port, tcp://[v6]:port or file:path.
Status parseStoreAddress(const std::string &text, StoreAddress &address);

/// What the command line says; an unset field leaves it to the environment.
struct LaunchFlags {
  std::optional<int> rank;
  std::optional<int> worldSize;
  std::optional<int> localRank;
  std::optional<int> localWorldSize;
  std::string store; ///< as DFA_STORE
  std::string runId;
};

/// This process's place among all processes of the run.
struct Launch {
  int rank = 0;
  int worldSize = 1;
  int localRank = 0;
  int localWorldSize = 1;
  StoreAddress store; ///< Kind::None if there is one process
  /// A socket that listens on the store's port already, inherited from a
  /// launcher that chose the port (DFA_STORE_FD), or -1.
  int storeSocket = -1;
  std::string runId;  ///< same on all ranks of a run
  int restart = 0;    ///< elastic restarts of the run so far
  std::string source; ///< who said rank and size: for --check and errors
};

/// Derives the place of this process; fails with the variable's name if one is
/// malformed or contradicts another.
Status resolveLaunch(const LaunchFlags &flags, const Environment &env,
                     Launch &launch);

/// Returns the prefix of all keys of one communicator set: run id, restart and
/// instance number, so that an elastic restart or a second optimizer finds no
/// stale key.
std::string keyPrefix(const Launch &launch, int instance);

/// Reads DFA_TIMEOUT_S (seconds, 300 by default; fractions allowed).
Status timeoutFromEnvironment(const Environment &env, double &seconds);

} // namespace dfa::rt

#endif // DFA_COMM_BOOTSTRAP_H
