// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text form of a heartbeat, and the order of evidence.

#include "comm/Heartbeat.h"

#include "base/Status.h"
#include "comm/SequenceLog.h"

#include <cinttypes>
#include <cstdio>

namespace dfa::rt {

std::string Heartbeat::encode() const {
  return format("%" PRIu64 " %c %" PRIu64 " %" PRIu64 "\n", beat, char(state),
                begun, ended) +
         what + "\n" + text;
}

bool Heartbeat::decode(const std::string &bytes, Heartbeat &heartbeat) {
  size_t first = bytes.find('\n');
  if (first == std::string::npos)
    return false;
  size_t second = bytes.find('\n', first + 1);
  if (second == std::string::npos)
    return false;
  char state = 0;
  if (std::sscanf(bytes.c_str(), "%" SCNu64 " %c %" SCNu64 " %" SCNu64,
                  &heartbeat.beat, &state, &heartbeat.begun,
                  &heartbeat.ended) != 4)
    return false;
  heartbeat.state = State(state);
  heartbeat.what = bytes.substr(first + 1, second - first - 1);
  heartbeat.text = bytes.substr(second + 1);
  return true;
}

namespace {

using State = Heartbeat::State;

/// A rank that gave up after somebody else's failure explains nothing.
bool gaveUp(const PeerView &peer) {
  return peer.seen && (peer.heartbeat.state == State::Informed ||
                       peer.heartbeat.state == State::Closed);
}

bool failed(const PeerView &peer) {
  return peer.seen && peer.heartbeat.state == State::Failed;
}

std::string lastWords(const PeerView &peer) {
  if (!peer.seen)
    return "it never reported";
  const Heartbeat &beat = peer.heartbeat;
  if (beat.begun == 0)
    return "it has not begun any collective";
  return format("its last is collective %s, %s, %s",
                SequenceLog::numberName(beat.begun).c_str(), beat.what.c_str(),
                beat.begun == beat.ended ? "ended" : "in flight");
}

Culprit findDead(const std::vector<PeerView> &peers) {
  const PeerView *first = nullptr;
  for (const PeerView &peer : peers)
    if (peer.lostOrder >= 0 && !gaveUp(peer) &&
        (!first || peer.lostOrder < first->lostOrder))
      first = &peer;
  if (!first)
    return {};
  if (failed(*first))
    return {first->rank, "failed: " + first->heartbeat.text};
  return {first->rank,
          "died (its connection to the store broke); " + lastWords(*first)};
}

Culprit findFailed(const std::vector<PeerView> &peers) {
  for (const PeerView &peer : peers)
    if (failed(peer))
      return {peer.rank, "failed: " + peer.heartbeat.text};
  return {};
}

Culprit findSilent(const std::vector<PeerView> &peers) {
  for (const PeerView &peer : peers)
    if (peer.silent && peer.seen && !gaveUp(peer))
      return {peer.rank, format("died or hangs (no heartbeat for %.1f s); %s",
                                peer.silentSeconds, lastWords(peer).c_str())};
  return {};
}

Culprit findLeft(const std::vector<PeerView> &peers, const Stuck &stuck) {
  for (const PeerView &peer : peers)
    if (peer.member && peer.seen && peer.heartbeat.state == State::Closed &&
        peer.heartbeat.begun < stuck.number)
      return {peer.rank, "left before it; " + lastWords(peer)};
  return {};
}

Culprit findLate(const std::vector<PeerView> &peers, const Stuck &stuck) {
  const PeerView *last = nullptr;
  int behind = 0;
  for (const PeerView &peer : peers) {
    if (!peer.member || gaveUp(peer))
      continue;
    uint64_t begun = peer.seen ? peer.heartbeat.begun : 0;
    if (begun >= stuck.number)
      continue;
    ++behind;
    if (!last || begun < (last->seen ? last->heartbeat.begun : 0))
      last = &peer;
  }
  if (last) {
    std::string others =
        behind > 1 ? format(" (%d ranks are behind)", behind) : std::string();
    return {last->rank, "has not entered it; " + lastWords(*last) + others};
  }
  return {};
}

/// Proof before any timeout: both are in the same number, with other words.
Culprit findDifferent(const std::vector<PeerView> &peers, const Stuck &stuck) {
  for (const PeerView &peer : peers)
    if (peer.member && peer.seen && peer.heartbeat.begun == stuck.number &&
        peer.heartbeat.what != stuck.what)
      return {peer.rank, "does something else: expected " + stuck.what +
                             ", found " + peer.heartbeat.what};
  return {};
}

/// Nobody is left who could be late or dead.
Culprit findNobody(const std::vector<PeerView> &peers, const Stuck &stuck) {
  const PeerView *first = nullptr;
  for (const PeerView &peer : peers) {
    if (!peer.member)
      continue;
    if (!peer.seen || peer.heartbeat.state != State::Stuck ||
        peer.heartbeat.begun != stuck.number)
      return {};
    if (!first)
      first = &peer;
  }
  if (!first)
    return {};
  return {-1, format("the transport failed on all ranks; rank %d saw: %s",
                     first->rank, first->heartbeat.text.c_str())};
}

} // namespace

Culprit findCulprit(const std::vector<PeerView> &peers, const Stuck &stuck) {
  Culprit culprit = findDead(peers);
  if (culprit.rank < 0)
    culprit = findFailed(peers);
  if (culprit.rank < 0)
    culprit = findSilent(peers);
  if (culprit.rank < 0)
    culprit = findLeft(peers, stuck);
  if (culprit.rank < 0)
    culprit = findDifferent(peers, stuck);
  if (culprit.rank < 0 && stuck.timedOut)
    culprit = findLate(peers, stuck);
  if (culprit.rank < 0 && stuck.transportSays)
    culprit = findNobody(peers, stuck);
  return culprit;
}

} // namespace dfa::rt
