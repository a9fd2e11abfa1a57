// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON as a tree that knows where each value stands. Parsing is nlohmann's;
// its own tree has no positions.
#ifndef DFA_TOOLS_LAYOUT_JSONTREE_H
#define DFA_TOOLS_LAYOUT_JSONTREE_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dfa {
namespace tools {

/// A JSON value and the byte at which it starts.
struct JsonValue {
  enum class Kind { Null, Bool, Integer, Number, String, List, Object };

  Kind kind = Kind::Null;
  size_t offset = 0;
  int64_t integer = 0; // Integer: its value
  std::string text;    // String: its value, as UTF-8
  std::vector<JsonValue> items;
  std::vector<std::pair<std::string, JsonValue>> members;

  /// The member of an object, or null.
  const JsonValue *find(const std::string &key) const;

  /// "a list", "a string", ... for messages.
  const char *kindName() const;
};

/// A text that is not JSON: what is wrong, and at which byte.
struct JsonError {
  std::string message;
  size_t offset = 0;
};

/// Parses `text`; false with an error. Integers beyond 64 bits count as
/// Number, as do fractions.
bool parseJson(const std::string &text, JsonValue &root, JsonError &error);

} // namespace tools
} // namespace dfa

#endif // DFA_TOOLS_LAYOUT_JSONTREE_H
