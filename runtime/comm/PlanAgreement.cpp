// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cheap for many ranks: each reads one hash and adds to one counter. The last
// to agree, or the first to differ, writes the outcome that all wait for.

#include "comm/PlanAgreement.h"

#include <algorithm>

namespace dfa::rt {

static uint64_t hashWith(uint64_t seed, const std::string &text) {
  for (unsigned char c : text) {
    seed = (seed ^ c) * 0x9e3779b97f4a7c15ull;
    seed ^= seed >> 29;
  }
  return seed;
}

std::string planHash(const std::string &text) {
  return format("%zu-%016llx%016llx", text.size(),
                (unsigned long long)hashWith(0x243f6a8885a308d3ull, text),
                (unsigned long long)hashWith(0x13198a2e03707344ull, text));
}

/// Cuts the line at `at` off `text`; false at the end.
static bool nextLine(const std::string &text, size_t &at, std::string &line) {
  if (at >= text.size())
    return false;
  size_t end = std::min(text.find('\n', at), text.size());
  line = text.substr(at, end - at);
  at = end + 1;
  return true;
}

std::string firstDifference(const std::string &expected, int expectedRank,
                            const std::string &found, int foundRank) {
  size_t expectedAt = 0, foundAt = 0;
  for (int line = 1;; ++line) {
    std::string want = "the end", have = "the end";
    bool wants = nextLine(expected, expectedAt, want);
    bool has = nextLine(found, foundAt, have);
    if (!wants && !has)
      return expected == found
                 ? std::string()
                 : std::string("plans differ in their last line break");
    if (wants && has && want == have)
      continue;
    if (wants)
      want = "'" + want + "'";
    if (has)
      have = "'" + have + "'";
    return format("plans differ in line %d: rank %d has %s, rank %d has %s",
                  line, expectedRank, want.c_str(), foundRank, have.c_str());
  }
}

Status agreeOnPlan(const CommContext &context, int round,
                   const std::string &plan) {
  CollectiveInfo info;
  info.collective = "plan agreement";
  info.ranks = context.ranks;
  uint64_t number = context.log->issue(info);
  context.log->begin(number);

  Store &store = *context.store;
  std::string prefix = "plan/" + std::to_string(round) + "/";
  int first = context.ranks.front();
  bool agrees = true;
  if (context.launch.rank == first) {
    DFA_RT_TRY(store.set(prefix + "text", plan));
    DFA_RT_TRY(store.set(prefix + "hash", planHash(plan)));
  } else {
    std::string hash, text;
    DFA_RT_TRY(waitForKey(context, number, prefix + "hash", hash));
    if (hash != planHash(plan)) {
      agrees = false;
      DFA_RT_TRY(waitForKey(context, number, prefix + "text", text));
      DFA_RT_TRY(
          store.set(prefix + "outcome",
                    firstDifference(text, first, plan, context.launch.rank)));
    }
  }
  if (agrees) {
    int64_t agreed = 0;
    DFA_RT_TRY(store.add(prefix + "agreed", 1, agreed));
    if (agreed == int64_t(context.ranks.size()))
      DFA_RT_TRY(store.set(prefix + "outcome", "equal"));
  }
  std::string outcome;
  DFA_RT_TRY(waitForKey(context, number, prefix + "outcome", outcome));
  context.log->end(number);
  if (outcome == "equal")
    return Status();
  return DFA_RT_ERROR(CollectiveError, "%s", outcome.c_str());
}

} // namespace dfa::rt
