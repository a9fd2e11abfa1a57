// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the text form of a program: one record a line, in the fixed order of
// program.def. What a record may say about others is checked in Verify.cpp.

#include "dfa-rt/abi.h"
#include "program/Program.h"
#include "program/Verify.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace dfa::rt {

namespace {

// More would only come from a damaged text; it keeps allocation bounded.
constexpr int64_t maxCount = int64_t(1) << 20;

struct Line {
  int number = 0;
  std::vector<std::string_view> words;
};

using Pair = std::pair<std::string_view, std::string_view>;

class Parser {
public:
  Parser(std::string_view text, std::string_view source)
      : rest(text), source(source) {
    advance();
  }

  Result<Program> run() {
    DFA_RT_TRY(parseHeader());
    DFA_RT_TRY(parseClasses());
    DFA_RT_TRY(parseCount("accumulators", program.accumulators));
    DFA_RT_TRY(parseCount("group_stats", program.groupStats));
    DFA_RT_TRY(parseKernels());
    DFA_RT_TRY(parseEntries());
    if (!atEnd())
      return unexpected("'entry' or the end of the text");
    DFA_RT_TRY(verify(program, source));
    return std::move(program);
  }

private:
  bool atEnd() const { return line.words.empty(); }
  bool at(std::string_view word) const {
    return !atEnd() && line.words.front() == word;
  }

  // Moves to the next line that has words.
  void advance() {
    line.words.clear();
    while (line.words.empty() && !rest.empty()) {
      size_t end = rest.find('\n');
      std::string_view raw = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view()
                                           : rest.substr(end + 1);
      line.number = ++lineCount;
      raw = raw.substr(0, raw.find('#'));
      const char *blanks = " \t\r";
      for (size_t from = raw.find_first_not_of(blanks);
           from != std::string_view::npos;) {
        size_t to = std::min(raw.find_first_of(blanks, from), raw.size());
        line.words.push_back(raw.substr(from, to - from));
        from = raw.find_first_not_of(blanks, to);
      }
    }
    if (line.words.empty())
      line.number = lineCount + 1;
  }

  Status error(const std::string &message) const {
    return DFA_RT_ERROR(ParseError, "%.*s:%d: %s", int(source.size()),
                        source.data(), line.number, message.c_str());
  }

  Status unexpected(const std::string &wanted) const {
    if (atEnd())
      return error("expects " + wanted + ", but the text ends");
    return error("expects " + wanted + ", but got '" +
                 std::string(line.words.front()) + "'");
  }

  // Checks that the line is `word` with between `least` and `most` operands.
  Status expect(std::string_view word, size_t least, size_t most) const {
    if (!at(word))
      return unexpected("'" + std::string(word) + "'");
    size_t operands = line.words.size() - 1;
    if (operands >= least && operands <= most)
      return Status();
    return error("'" + std::string(word) + "' expects " +
                 (least == most ? "" : "at least ") + std::to_string(least) +
                 " words, but got " + std::to_string(operands));
  }

  Status parseInt(std::string_view word, std::string_view what, int64_t most,
                  int64_t &value) const {
    const char *end = word.data() + word.size();
    std::from_chars_result result = std::from_chars(word.data(), end, value);
    if (result.ec == std::errc() && result.ptr == end && value >= 0 &&
        value <= most)
      return Status();
    return error("expects '" + std::string(what) + "' from 0 to " +
                 std::to_string(most) + ", but got '" + std::string(word) +
                 "'");
  }

  Status parseVersion(std::string_view word, int64_t known) {
    DFA_RT_TRY(expect(word, 1, 1));
    int64_t version = 0;
    DFA_RT_TRY(parseInt(line.words[1], word, INT32_MAX, version));
    if (version != known)
      return error("expects '" + std::string(word) + "' version " +
                   std::to_string(known) + ", but got " +
                   std::to_string(version));
    advance();
    return Status();
  }

  Status parseCount(std::string_view word, int64_t &count) {
    DFA_RT_TRY(expect(word, 1, 1));
    DFA_RT_TRY(parseInt(line.words[1], word, maxCount, count));
    advance();
    return Status();
  }

  // Splits the words from `first` on at '='; keys must be unique.
  Status parsePairs(size_t first, std::vector<Pair> &pairs) const {
    pairs.clear();
    for (size_t index = first; index < line.words.size(); ++index) {
      std::string_view word = line.words[index];
      size_t equals = word.find('=');
      if (equals == std::string_view::npos || equals == 0 ||
          equals + 1 == word.size())
        return error("expects FIELD=VALUE, but got '" + std::string(word) +
                     "'");
      std::string_view key = word.substr(0, equals);
      for (const Pair &pair : pairs)
        if (pair.first == key)
          return error("field '" + std::string(key) + "' is given twice");
      pairs.emplace_back(key, word.substr(equals + 1));
    }
    return Status();
  }

  // Takes the value of a field out of `pairs`.
  Status take(std::vector<Pair> &pairs, std::string_view key,
              std::string_view &value) const {
    for (size_t index = 0; index < pairs.size(); ++index) {
      if (pairs[index].first != key)
        continue;
      value = pairs[index].second;
      pairs.erase(pairs.begin() + index);
      return Status();
    }
    return error("'" + std::string(line.words.front()) + "' expects a field '" +
                 std::string(key) + "'");
  }

  Status takeInt(std::vector<Pair> &pairs, std::string_view key, int64_t most,
                 int64_t &value) const {
    std::string_view word;
    DFA_RT_TRY(take(pairs, key, word));
    return parseInt(word, key, most, value);
  }

  Status noneLeft(const std::vector<Pair> &pairs) const {
    if (pairs.empty())
      return Status();
    return error("'" + std::string(line.words.front()) + "' has no field '" +
                 std::string(pairs.front().first) + "'");
  }

  Status parseHeader() {
    DFA_RT_TRY(parseVersion("dfa-program", DFA_RT_PROGRAM_VERSION));
    DFA_RT_TRY(parseVersion("abi", DFA_RT_ABI_VERSION));
    DFA_RT_TRY(expect("layout", 1, 1));
    program.layout = line.words[1];
    advance();
    DFA_RT_TRY(expect("hyper", 0, SIZE_MAX));
    program.hyper.assign(line.words.begin() + 1, line.words.end());
    advance();
    while (at("axis")) {
      DFA_RT_TRY(expect("axis", 2, 2));
      program.axes.push_back(
          {std::string(line.words[1]), std::string(line.words[2])});
      advance();
    }
    return Status();
  }

  Status parseClasses() {
    std::vector<Pair> pairs;
    while (at("class")) {
      DFA_RT_TRY(expect("class", 1, SIZE_MAX));
      ProgramClass record;
      record.name = line.words[1];
      DFA_RT_TRY(parsePairs(2, pairs));
      DFA_RT_TRY(takeInt(pairs, "derived", maxCount, record.derived));
      DFA_RT_TRY(takeInt(pairs, "stats", maxCount, record.stats));
      DFA_RT_TRY(noneLeft(pairs));
      advance();
      while (at("array"))
        DFA_RT_TRY(parseArray(record));
      program.classes.push_back(std::move(record));
    }
    return Status();
  }

  Status parseArray(ProgramClass &record) {
    std::vector<Pair> pairs;
    DFA_RT_TRY(expect("array", 1, SIZE_MAX));
    ProgramArray array;
    array.name = line.words[1];
    DFA_RT_TRY(parsePairs(2, pairs));
    std::string_view word;
    DFA_RT_TRY(take(pairs, "element", word));
    if (!parseDataType(word, array.element))
      return error("expects an element type, but got '" + std::string(word) +
                   "'");
    DFA_RT_TRY(take(pairs, "part", word));
    if (word != "full" && word != "shard")
      return error("expects part 'full' or 'shard', but got '" +
                   std::string(word) + "'");
    array.full = word == "full";
    DFA_RT_TRY(take(pairs, "side", word));
    array.side = word;
    DFA_RT_TRY(noneLeft(pairs));
    advance();
    record.arrays.push_back(std::move(array));
    return Status();
  }

  Status parseKernels() {
    std::vector<Pair> pairs;
    while (at("kernel")) {
      DFA_RT_TRY(expect("kernel", 1, SIZE_MAX));
      ProgramKernel kernel;
      kernel.name = line.words[1];
      DFA_RT_TRY(parsePairs(2, pairs));
      std::string_view word;
      DFA_RT_TRY(take(pairs, "kind", word));
      if (word == "element")
        kernel.kind = KernelKind::Element;
      else if (word == "control")
        kernel.kind = KernelKind::Control;
      else if (word == "segment")
        kernel.kind = KernelKind::Segment;
      else
        return error("expects kind 'element', 'control' or 'segment', but "
                     "got '" +
                     std::string(word) + "'");
      DFA_RT_TRY(take(pairs, "class", word));
      DFA_RT_TRY(resolveClass(word, kernel.classIndex));
      DFA_RT_TRY(takeInt(pairs, "accs", maxCount, kernel.accs));
      DFA_RT_TRY(takeInt(pairs, "block", 1024, kernel.block));
      DFA_RT_TRY(takeInt(pairs, "vector", 1024, kernel.vector));
      DFA_RT_TRY(noneLeft(pairs));
      advance();
      program.kernels.push_back(std::move(kernel));
    }
    return Status();
  }

  Status parseEntries() {
    while (at("entry")) {
      DFA_RT_TRY(expect("entry", 1, 1));
      ProgramEntry entry;
      entry.name = line.words[1];
      advance();
      while (!at("end")) {
        if (atEnd())
          return unexpected("a command or 'end'");
        CommandKind kind;
        if (!findCommand(line.words.front(), kind))
          return unexpected("a command or 'end'");
        Command command;
        DFA_RT_TRY(parseCommand(kind, command));
        entry.commands.push_back(command);
        advance();
      }
      DFA_RT_TRY(expect("end", 0, 0));
      advance();
      program.entries.push_back(std::move(entry));
    }
    return Status();
  }

  Status parseCommand(CommandKind kind, Command &command) {
    const CommandInfo &info = commandInfo(kind);
    command.kind = kind;
    command.line = line.number;
    std::vector<Pair> pairs;
    DFA_RT_TRY(parsePairs(1, pairs));
    // The class comes first: arrays are looked up in it.
    int64_t classIndex = noClass;
    for (int pass = 0; pass < 2; ++pass) {
      for (int index = 0; index < info.fieldCount; ++index) {
        int field = info.firstField + index;
        bool isClass = fieldInfo(field).kind == FieldKind::Class;
        if (isClass != (pass == 0))
          continue;
        std::string_view word = fieldInfo(field).init;
        bool given = std::any_of(pairs.begin(), pairs.end(), [&](Pair &pair) {
          return pair.first == fieldInfo(field).name;
        });
        if (given || word.empty())
          DFA_RT_TRY(take(pairs, fieldInfo(field).name, word));
        DFA_RT_TRY(resolve(field, word, classIndex, command.values[index]));
        if (isClass)
          classIndex = command.values[index];
      }
    }
    return noneLeft(pairs);
  }

  Status resolve(int field, std::string_view word, int64_t classIndex,
                 int64_t &value) {
    switch (fieldInfo(field).kind) {
    case FieldKind::Kernel:
      return lookUp("kernel", word, program.findKernel(word), value);
    case FieldKind::Class:
      return resolveClass(word, value);
    case FieldKind::Axis:
      return lookUp("axis", word, program.findAxis(word), value);
    case FieldKind::Array:
      if (word == "sums" || word == "presence") {
        value = word == "sums" ? sumsArray : presenceArray;
        return Status();
      }
      if (word == "stats" && classIndex != noClass) {
        value = statsArray;
        return Status();
      }
      if (classIndex == noClass)
        return error("expects 'sums' or 'presence' without a class, but got '" +
                     std::string(word) + "'");
      return lookUp("array", word, program.findArray(classIndex, word), value);
    case FieldKind::Table:
    case FieldKind::Enum:
      return resolveWord(field, word, value);
    case FieldKind::Name:
      value = internEvent(word);
      return Status();
    case FieldKind::Int:
      return parseInt(word, fieldInfo(field).name, maxCount, value);
    }
    return Status();
  }

  Status lookUp(const char *what, std::string_view word, int64_t found,
                int64_t &value) const {
    value = found;
    if (found >= 0)
      return Status();
    return error(
        "expects the name of " +
        std::string(std::string_view(what).front() == 'a' ? "an " : "a ") +
        what + ", but got '" + std::string(word) + "'");
  }

  Status resolveClass(std::string_view word, int64_t &value) const {
    value = noClass;
    if (word == "-")
      return Status();
    return lookUp("class", word, program.findClass(word), value);
  }

  Status resolveWord(int field, std::string_view word, int64_t &value) const {
    const std::vector<std::string_view> &words = enumWords(field);
    std::string known;
    for (size_t index = 0; index < words.size(); ++index) {
      if (words[index] == word) {
        value = static_cast<int64_t>(index);
        return Status();
      }
      known += (index ? ", '" : "'") + std::string(words[index]) + "'";
    }
    return error("expects '" + std::string(fieldInfo(field).name) +
                 "' to be one of " + known + ", but got '" + std::string(word) +
                 "'");
  }

  int64_t internEvent(std::string_view word) {
    std::vector<std::string> &events = program.events;
    std::vector<std::string>::iterator found =
        std::find(events.begin(), events.end(), word);
    if (found == events.end())
      found = events.insert(events.end(), std::string(word));
    return found - events.begin();
  }

  std::string_view rest;
  std::string_view source;
  int lineCount = 0;
  Line line;
  Program program;
};

} // namespace

Result<Program> Program::parse(std::string_view text, std::string_view source) {
  return Parser(text, source).run();
}

} // namespace dfa::rt
