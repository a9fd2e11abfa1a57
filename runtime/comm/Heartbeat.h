// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank says about itself in the store, and who is to blame, given what
// all ranks said. Pure functions; the reading and writing is in Watchdog.cpp.

#ifndef DFA_COMM_HEARTBEAT_H
#define DFA_COMM_HEARTBEAT_H

#include <cstdint>
#include <string>
#include <vector>

namespace dfa::rt {

/// One rank's word on itself, rewritten at every interval.
struct Heartbeat {
  enum class State : char {
    Running = 'r',
    Failed = 'f',   ///< by an error of its own; `text` says which
    Stuck = 's',    ///< its transport failed, as `text` says; looks for whom
    Informed = 'i', ///< knows the verdict and gives up: not a culprit
    Closed = 'c',   ///< left in good order
  };
  uint64_t beat = 0;
  State state = State::Running;
  uint64_t begun = 0; ///< sequence words
  uint64_t ended = 0;
  std::string what; ///< the collective `begun` stands for
  std::string text;

  std::string encode() const;
  /// False if `bytes` are no heartbeat.
  static bool decode(const std::string &bytes, Heartbeat &heartbeat);
};

/// What is known of one peer.
struct PeerView {
  int rank = -1;
  bool seen = false;   ///< has published at least once
  Heartbeat heartbeat; ///< valid if seen
  bool silent = false; ///< heartbeat too old
  double silentSeconds = 0;
  int lostOrder = -1; ///< place in the store's list of deaths, or -1
  bool member = true; ///< takes part in the collective in question
};

/// The collective that does not complete here.
struct Stuck {
  uint64_t number = 0;
  std::string what;
  bool timedOut = false;      ///< lateness counts as evidence only then
  bool transportSays = false; ///< it failed here too, not only ran out of time
};

/// Who is to blame, and why.
struct Culprit {
  int rank = -1; ///< -1: nobody yet
  std::string reason;
};

/// Weighs the evidence, strongest first: a process that vanished, one that
/// reported an error, one that fell silent, one that left, one that does
/// something else, one that is late. If the transport failed on all ranks, none
/// of them is to blame: then there is a reason and no rank.
Culprit findCulprit(const std::vector<PeerView> &peers, const Stuck &stuck);

} // namespace dfa::rt

#endif // DFA_COMM_HEARTBEAT_H
