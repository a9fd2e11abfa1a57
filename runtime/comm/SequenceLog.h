// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequence numbers of collectives: two host-visible words say which one a rank
// last began and last ended, a table says what it was. Who writes the words
// (a worker thread, or the device into mapped memory) is the transport's
// business; who reads them is Watchdog.h's.

#ifndef DFA_COMM_SEQUENCELOG_H
#define DFA_COMM_SEQUENCELOG_H

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace dfa::rt {

/// What a collective is for, as errors and traces name it.
struct CollectiveInfo {
  std::string collective; ///< the program's word, e.g. "all_gather"
  std::string axis;       ///< mesh axis, or empty
  int64_t bucket = -1;    ///< -1: the control exchange
  int64_t bytes = 0;      ///< of this rank's contribution
  std::vector<int> ranks; ///< world ranks taking part

  /// "all_gather of bucket 3 over axis 'shard'".
  std::string str() const;
};

/// The words; a device may write them, so they can lie in mapped host memory.
struct SequenceWords {
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0};
};

/// One rank's record. Numbers count from 1 in the order of issue. A collective
/// in a recording has a number of its own (recording and position), written at
/// every replay.
class SequenceLog {
public:
  /// Uses words of its own.
  SequenceLog() : words(&ownWords) {}
  /// Uses words that the caller keeps alive.
  explicit SequenceLog(SequenceWords *words) : words(words) {}

  /// Notes the next collective and returns its number.
  uint64_t issue(CollectiveInfo info);
  /// Starts a recording; returns its id.
  uint32_t beginRecording();
  /// Notes the next collective of a recording and returns its number.
  uint64_t issueRecorded(uint32_t recording, CollectiveInfo info);
  /// Forgets a recording that can no longer be replayed.
  void dropRecording(uint32_t recording);

  /// Written by host transports around the work.
  void begin(uint64_t number) {
    words->begun.store(number, std::memory_order_release);
  }
  void end(uint64_t number) {
    words->ended.store(number, std::memory_order_release);
  }

  uint64_t begun() const {
    return words->begun.load(std::memory_order_acquire);
  }
  uint64_t ended() const {
    return words->ended.load(std::memory_order_acquire);
  }
  /// The memory that a device writes.
  SequenceWords *memory() { return words; }

  /// Whether a number is that of a collective in a recording.
  static bool isRecorded(uint64_t number) { return number & kRecorded; }

  /// Finds what a number stands for; false if it is unknown or forgotten.
  bool lookup(uint64_t number, CollectiveInfo &info) const;

  /// Printed form of a number: "17", or "3 of recording 1".
  static std::string numberName(uint64_t number);

private:
  /// As many as can be in flight, with room to spare.
  static constexpr uint64_t kRemembered = 4096;
  static constexpr uint64_t kRecorded = uint64_t(1) << 63;

  SequenceWords ownWords;
  SequenceWords *words;
  mutable std::mutex mutex;
  uint64_t issued = 0;
  uint32_t recordings = 0;
  std::vector<CollectiveInfo> ring = std::vector<CollectiveInfo>(kRemembered);
  std::map<uint32_t, std::vector<CollectiveInfo>> recorded;
};

} // namespace dfa::rt

#endif // DFA_COMM_SEQUENCELOG_H
