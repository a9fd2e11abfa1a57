// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns "a peer is gone" into an error that names rank, collective and bucket.
// Every rank publishes a heartbeat with its sequence words; whoever sees a
// collective fail, or stay in flight too long, finds the culprit from them, and
// the first verdict binds all ranks, so that survivors do not blame each other.

#ifndef DFA_COMM_WATCHDOG_H
#define DFA_COMM_WATCHDOG_H

#include "base/Status.h"
#include "comm/SequenceLog.h"
#include "comm/Store.h"

#include <functional>
#include <memory>
#include <vector>

namespace dfa::rt {

/// A collective that cannot complete.
struct CollectiveFailure {
  int rank = -1;          ///< the culprit, or -1 if no rank is to blame
  std::string collective; ///< the program's word
  int64_t bucket = -1;
  uint64_t number = 0; ///< sequence number
  std::string reason;

  /// The message of the status.
  std::string str() const;
};

struct WatchdogOptions {
  int rank = 0;
  std::vector<int> ranks; ///< all world ranks that take part
  Milliseconds timeout{300000};
  /// Zero: derived from the timeout and the number of ranks.
  Milliseconds interval{0};
  /// A heartbeat older than this is a death. Zero: derived.
  Milliseconds stale{0};
};

/// One rank's watchdog. Its thread never runs a collective and never waits for
/// a peer.
class Watchdog {
public:
  virtual ~Watchdog() = default;

  /// Starts publishing. `store` must be the same map on all ranks, with a
  /// prefix of this run and instance; it and `log` outlive the watchdog.
  static Status start(const WatchdogOptions &options, Store &store,
                      SequenceLog &log, std::unique_ptr<Watchdog> &watchdog);

  /// Finds out why collective `number` failed on this rank and returns the
  /// error that names the culprit. `transport` is what the library said;
  /// `timedOut` whether it only ran out of time. Waits for evidence, at most a
  /// few heartbeats. Later calls return the first verdict.
  virtual Status explain(uint64_t number, const std::string &transport,
                         bool timedOut) = 0;

  /// Success, or the sticky failure of this rank's collectives.
  virtual Status failure() = 0;
  /// As `failure`, as fields; false if there is none.
  virtual bool failure(CollectiveFailure &found) = 0;

  /// Tells the others that this rank cannot go on (an error outside of any
  /// collective), so they fail at once instead of at the timeout.
  virtual void reportLocalFailure(const std::string &reason) = 0;

  /// Calls `action` once, from the watchdog's thread, when a failure is known:
  /// to abort what is in flight. Set it before the first collective.
  virtual void onFailure(std::function<void()> action) = 0;

  /// Calls `probe` at every interval while a collective is in flight; a text it
  /// returns is an error of the transport. Set it before the first collective.
  virtual void setProbe(std::function<std::string()> probe) = 0;

  virtual Milliseconds interval() const = 0;
  virtual Milliseconds stale() const = 0;
};

} // namespace dfa::rt

#endif // DFA_COMM_WATCHDOG_H
