// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who is to blame: the order of evidence as a pure function, and the text form
// of heartbeats, plans and sequence numbers.

#include "comm/Heartbeat.h"
#include "comm/PlanAgreement.h"
#include "comm/SequenceLog.h"

#include <gtest/gtest.h>

using namespace dfa::rt;
using State = Heartbeat::State;

namespace {

PeerView peer(int rank, uint64_t begun = 7, uint64_t ended = 6,
              State state = State::Running) {
  PeerView view;
  view.rank = rank;
  view.seen = true;
  view.heartbeat.begun = begun;
  view.heartbeat.ended = ended;
  view.heartbeat.state = state;
  view.heartbeat.what = "all_gather of bucket 3, 64 bytes";
  return view;
}

const Stuck kStuck = {7, "all_gather of bucket 3, 64 bytes", false};
const Stuck kTimedOut = {7, "all_gather of bucket 3, 64 bytes", true};

TEST(Heartbeat, SurvivesItsTextForm) {
  Heartbeat in;
  in.beat = 18446744073709551615ull;
  in.state = State::Failed;
  in.begun = uint64_t(1) << 63 | 5;
  in.ended = 3;
  in.what = "reduce_scatter of bucket 1 over axis 'shard', 12 bytes";
  in.text = "ValueError: two\nlines";
  Heartbeat out;
  ASSERT_TRUE(Heartbeat::decode(in.encode(), out));
  EXPECT_EQ(out.beat, in.beat);
  EXPECT_EQ(out.state, in.state);
  EXPECT_EQ(out.begun, in.begun);
  EXPECT_EQ(out.ended, in.ended);
  EXPECT_EQ(out.what, in.what);
  EXPECT_EQ(out.text, in.text);
  for (const char *bad : {"", "1 r 2 3", "x r 2 3\n\n", "1 r\n\n"})
    EXPECT_FALSE(Heartbeat::decode(bad, out)) << bad;
}

TEST(Culprit, NobodyWithoutEvidence) {
  EXPECT_EQ(findCulprit({peer(0), peer(2)}, kStuck).rank, -1);
  // Lateness is none before the timeout.
  EXPECT_EQ(findCulprit({peer(0), peer(2, 5, 5)}, kStuck).rank, -1);
}

// A transport that failed everywhere is nobody's fault, and known at once.
TEST(Culprit, NobodyWhereAllTransportsFailed) {
  Stuck stuck = kStuck;
  stuck.transportSays = true;
  std::vector<PeerView> peers = {peer(0, 7, 6, State::Stuck),
                                 peer(2, 7, 6, State::Stuck)};
  peers[0].heartbeat.text = "connection refused";
  Culprit culprit = findCulprit(peers, stuck);
  EXPECT_EQ(culprit.rank, -1);
  EXPECT_EQ(culprit.reason,
            "the transport failed on all ranks; rank 0 saw: connection "
            "refused");
  // One that has not said so may be the dead one.
  peers[1].heartbeat.state = State::Running;
  EXPECT_EQ(findCulprit(peers, stuck).reason, "");
  peers[1] = peer(2, 6, 6, State::Stuck);
  EXPECT_EQ(findCulprit(peers, stuck).reason, "");
  peers[1].member = false;
  EXPECT_NE(findCulprit(peers, stuck).reason, "");
  peers[1].lostOrder = 0;
  EXPECT_EQ(findCulprit(peers, stuck).rank, 2);
}

TEST(Culprit, FirstDeathWins) {
  std::vector<PeerView> peers = {peer(0), peer(1), peer(2), peer(3)};
  peers[1].lostOrder = 1;
  peers[3].lostOrder = 0;
  peers[0].silent = true;
  Culprit culprit = findCulprit(peers, kStuck);
  EXPECT_EQ(culprit.rank, 3);
  EXPECT_NE(culprit.reason.find("died"), std::string::npos);
  EXPECT_NE(culprit.reason.find("collective 7, all_gather of bucket 3"),
            std::string::npos);
}

TEST(Culprit, SurvivorsThatQuitAreNotBlamed) {
  std::vector<PeerView> peers = {peer(0), peer(1), peer(2)};
  peers[0].heartbeat.state = State::Informed;
  peers[0].lostOrder = 0;
  peers[0].silent = true;
  peers[2].silent = true;
  peers[2].silentSeconds = 2.5;
  Culprit culprit = findCulprit(peers, kStuck);
  EXPECT_EQ(culprit.rank, 2);
  EXPECT_NE(culprit.reason.find("no heartbeat for 2.5 s"), std::string::npos);
}

TEST(Culprit, AReportedErrorIsTheReasonOfADeath) {
  std::vector<PeerView> peers = {peer(0), peer(1, 7, 6, State::Failed)};
  peers[1].heartbeat.text = "ValueError: shape";
  EXPECT_EQ(findCulprit(peers, kStuck).reason, "failed: ValueError: shape");
  peers[1].lostOrder = 0;
  EXPECT_EQ(findCulprit(peers, kStuck).reason, "failed: ValueError: shape");
}

TEST(Culprit, LeavingBeforeIsBlamedAndAfterIsNot) {
  EXPECT_EQ(findCulprit({peer(4, 6, 6, State::Closed)}, kStuck).rank, 4);
  EXPECT_EQ(findCulprit({peer(4, 7, 7, State::Closed)}, kStuck).rank, -1);
  std::vector<PeerView> outsider = {peer(4, 6, 6, State::Closed)};
  outsider[0].member = false;
  EXPECT_EQ(findCulprit(outsider, kStuck).rank, -1);
}

TEST(Culprit, TheLatestMemberAtTheTimeout) {
  std::vector<PeerView> peers = {peer(0), peer(1, 5, 5), peer(2, 4, 4),
                                 peer(3, 1, 1)};
  peers[3].member = false;
  Culprit culprit = findCulprit(peers, kTimedOut);
  EXPECT_EQ(culprit.rank, 2);
  EXPECT_NE(culprit.reason.find("has not entered it"), std::string::npos);
  EXPECT_NE(culprit.reason.find("(2 ranks are behind)"), std::string::npos);
  PeerView never;
  never.rank = 9;
  culprit = findCulprit({peer(0), never}, kTimedOut);
  EXPECT_EQ(culprit.rank, 9);
  EXPECT_NE(culprit.reason.find("never reported"), std::string::npos);
}

TEST(Culprit, ADifferentCollectiveOfTheSameNumber) {
  std::vector<PeerView> peers = {peer(0), peer(1)};
  peers[1].heartbeat.what = "all_gather of bucket 4, 64 bytes";
  Culprit culprit = findCulprit(peers, kStuck);
  EXPECT_EQ(culprit.rank, 1);
  EXPECT_EQ(culprit.reason,
            "does something else: expected all_gather of bucket 3, 64 bytes, "
            "found all_gather of bucket 4, 64 bytes");
}

TEST(SequenceLog, NumbersEagerAndRecordedCollectives) {
  SequenceLog log;
  CollectiveInfo info, found;
  info.collective = "reduce_scatter";
  info.axis = "shard";
  info.bucket = 4;
  EXPECT_EQ(log.issue(info), 1u);
  info.collective = "all_reduce";
  info.bucket = -1;
  EXPECT_EQ(log.issue(info), 2u);
  ASSERT_TRUE(log.lookup(1, found));
  EXPECT_EQ(found.str(), "reduce_scatter of bucket 4 over axis 'shard'");
  ASSERT_TRUE(log.lookup(2, found));
  EXPECT_EQ(found.str(), "all_reduce of the control exchange over axis "
                         "'shard'");
  EXPECT_FALSE(log.lookup(0, found));
  EXPECT_FALSE(log.lookup(3, found));

  uint32_t recording = log.beginRecording();
  info.bucket = 9;
  uint64_t recorded = log.issueRecorded(recording, info);
  ASSERT_TRUE(log.lookup(recorded, found));
  EXPECT_EQ(found.bucket, 9);
  EXPECT_EQ(SequenceLog::numberName(recorded), "1 of recording 1");
  EXPECT_FALSE(log.lookup(recorded + 1, found));
  log.dropRecording(recording);
  EXPECT_FALSE(log.lookup(recorded, found));

  for (int i = 0; i < 5000; ++i)
    log.issue(info);
  EXPECT_FALSE(log.lookup(1, found)) << "long ended: forgotten";
  EXPECT_TRUE(log.lookup(5002, found));
}

TEST(Plan, HashesDiffer) {
  EXPECT_EQ(planHash("abc"), planHash("abc"));
  EXPECT_NE(planHash("abc"), planHash("abd"));
  EXPECT_NE(planHash("ab"), planHash("ab\n"));
  EXPECT_NE(planHash(""), planHash(std::string(1, '\0')));
}

TEST(Plan, FindsTheFirstDifferingLine) {
  EXPECT_EQ(firstDifference("a\nb\nc\n", 0, "a\nb\nc\n", 2), "");
  EXPECT_EQ(firstDifference("a\nb\nc\n", 0, "a\nx\ny\n", 2),
            "plans differ in line 2: rank 0 has 'b', rank 2 has 'x'");
  EXPECT_EQ(firstDifference("a\n", 0, "a\nb\n", 2),
            "plans differ in line 2: rank 0 has the end, rank 2 has 'b'");
  EXPECT_EQ(firstDifference("a\n\n", 0, "a\n", 2),
            "plans differ in line 2: rank 0 has '', rank 2 has the end");
  EXPECT_EQ(firstDifference("a", 0, "a\n", 2),
            "plans differ in their last line break");
}

} // namespace
