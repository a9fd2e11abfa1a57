// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands SLURM's node and task lists. A list is cut at the commas outside
// brackets; each name is a sequence of literal text and bracketed number sets.

#include "comm/SlurmNodeList.h"

#include <cctype>

namespace dfa::rt {

namespace {

/// More names than any machine has: a typo such as n[1-999999999] must not
/// eat the memory.
constexpr size_t kMaxNames = size_t(1) << 20;

Status malformed(const std::string &list, size_t at, const char *what) {
  return DFA_RT_ERROR(InvalidArgument,
                      "list '%s': expected %s at character %zu", list.c_str(),
                      what, at + 1);
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Reads decimal digits from `at` on; the width keeps leading zeros.
bool readNumber(const std::string &text, size_t &at, uint64_t &value,
                size_t &width) {
  size_t begin = at;
  value = 0;
  while (at < text.size() && isDigit(text[at]) && at - begin < 18)
    value = value * 10 + uint64_t(text[at++] - '0');
  width = at - begin;
  return width > 0;
}

std::string padded(uint64_t value, size_t width) {
  std::string digits = std::to_string(value);
  if (digits.size() < width)
    digits.insert(0, width - digits.size(), '0');
  return digits;
}

/// Expands the inside of one bracket; `at` stands behind '[' and ends behind
/// ']'.
Status readBracket(const std::string &list, size_t &at,
                   std::vector<std::string> &numbers) {
  while (true) {
    uint64_t first = 0, last = 0;
    size_t width = 0, lastWidth = 0;
    if (!readNumber(list, at, first, width))
      return malformed(list, at, "a number");
    last = first;
    if (at < list.size() && list[at] == '-') {
      ++at;
      if (!readNumber(list, at, last, lastWidth))
        return malformed(list, at, "a number");
      if (last < first)
        return malformed(list, at, "a range that does not run backwards");
    }
    if (last - first >= kMaxNames || numbers.size() > kMaxNames)
      return malformed(list, at, "at most 1048576 names");
    for (uint64_t value = first; value <= last; ++value)
      numbers.push_back(padded(value, width));
    if (at >= list.size())
      return malformed(list, at, "']'");
    char c = list[at++];
    if (c == ']')
      return Status();
    if (c != ',')
      return malformed(list, at - 1, "',' or ']'");
  }
}

/// Expands one name up to the next comma outside brackets.
Status readName(const std::string &list, size_t &at,
                std::vector<std::string> &hosts) {
  size_t begin = at;
  std::vector<std::string> names(1);
  while (at < list.size() && list[at] != ',') {
    char c = list[at];
    if (c == ']' || std::isspace(static_cast<unsigned char>(c)))
      return malformed(list, at, "a name");
    if (c != '[') {
      for (std::string &name : names)
        name += c;
      ++at;
      continue;
    }
    ++at;
    std::vector<std::string> numbers;
    DFA_RT_TRY(readBracket(list, at, numbers));
    if (names.size() * numbers.size() > kMaxNames)
      return malformed(list, at, "at most 1048576 names");
    std::vector<std::string> product;
    product.reserve(names.size() * numbers.size());
    for (const std::string &name : names)
      for (const std::string &number : numbers)
        product.push_back(name + number);
    names.swap(product);
  }
  if (at == begin)
    return malformed(list, at, "a name");
  hosts.insert(hosts.end(), names.begin(), names.end());
  return Status();
}

} // namespace

Status expandNodeList(const std::string &list,
                      std::vector<std::string> &hosts) {
  hosts.clear();
  size_t at = 0;
  while (true) {
    DFA_RT_TRY(readName(list, at, hosts));
    if (hosts.size() > kMaxNames)
      return malformed(list, at, "at most 1048576 names");
    if (at == list.size())
      return Status();
    ++at; // the comma
  }
}

Status expandTaskCounts(const std::string &list, std::vector<int> &counts) {
  counts.clear();
  size_t at = 0;
  while (true) {
    uint64_t tasks = 0, repeat = 1;
    size_t width = 0;
    if (!readNumber(list, at, tasks, width) || tasks > kMaxNames)
      return malformed(list, at, "a task count");
    if (list.compare(at, 2, "(x") == 0) {
      at += 2;
      if (!readNumber(list, at, repeat, width) || repeat == 0 ||
          repeat > kMaxNames)
        return malformed(list, at, "a repetition");
      if (at >= list.size() || list[at] != ')')
        return malformed(list, at, "')'");
      ++at;
    }
    counts.insert(counts.end(), size_t(repeat), int(tasks));
    if (at == list.size())
      return Status();
    if (list[at] != ',' || counts.size() > kMaxNames)
      return malformed(list, at, "','");
    ++at;
  }
}

} // namespace dfa::rt
