// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan as canonical text, its hash, and where two texts part: how ranks
// agree on a layout before the first collective, and say why they do not.
#ifndef DFA_LAYOUT_DUMP_H
#define DFA_LAYOUT_DUMP_H

#include "layout/Plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dfa {
namespace layout {

/// The plan as text, one fact a line. Equal layouts give equal texts, on every
/// machine; nothing in it depends on the rank.
std::string planText(const Plan &plan);

/// textHash(planText(plan)), without holding the text.
uint64_t planHash(const Plan &plan);

/// FNV-1a, 64 bits: against mistakes, not against attackers.
uint64_t textHash(std::string_view text);

/// The first line in which two texts differ, counted from 1. A text that ended
/// has an empty line there.
struct TextDifference {
  int64_t line = 0;
  std::string left;
  std::string right;
};

/// Nothing if the texts are equal.
std::optional<TextDifference> firstDifference(std::string_view left,
                                              std::string_view right);

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_DUMP_H
