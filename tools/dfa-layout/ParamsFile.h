// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PARAMS.json: the list of parameters that a user gives, with a place in the
// file for every mistake in it.
#ifndef DFA_TOOLS_LAYOUT_PARAMSFILE_H
#define DFA_TOOLS_LAYOUT_PARAMSFILE_H

#include "layout/Format.h"
#include "layout/Order.h"
#include "layout/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace dfa {
namespace tools {

/// A place in a text, both counted from 1; line 0 means none.
struct Location {
  int64_t line = 0;
  int64_t column = 0;
};

/// One parameter as given.
struct ParamEntry {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<layout::Format> dtype; // none: what the storage implies
  std::optional<layout::Order> order;  // none: what --memory-format says
  int32_t group = 0;
  Location where;
};

/// Groups are rows of a table, one for each number up to the highest.
constexpr int64_t maxGroups = 65536;

/// Parses the text of a parameter file. `file` names it in messages, which are
/// "FILE:LINE:COLUMN: error: ...".
layout::Expected<std::vector<ParamEntry>> parseParams(const std::string &file,
                                                      const std::string &text);

/// "FILE:LINE:COLUMN: error: MESSAGE", without a place if there is none.
std::string locatedMessage(const std::string &file, Location where,
                           const std::string &message);

/// The order of channels last for 4 or 5 dimensions; none for others, whose
/// memory the format does not change.
std::optional<layout::Order> channelsLastOrder(size_t rank);

} // namespace tools
} // namespace dfa

#endif // DFA_TOOLS_LAYOUT_PARAMSFILE_H
