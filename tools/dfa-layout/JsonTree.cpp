// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the tree from the parser's events. The parser reports no positions,
// so it reads through an iterator that counts what it consumed.
#include "JsonTree.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace dfa {
namespace tools {

const JsonValue *JsonValue::find(const std::string &key) const {
  for (const std::pair<std::string, JsonValue> &member : members)
    if (member.first == key)
      return &member.second;
  return nullptr;
}

const char *JsonValue::kindName() const {
  switch (kind) {
  case Kind::Null:
    return "null";
  case Kind::Bool:
    return "a boolean";
  case Kind::Integer:
  case Kind::Number:
    return "a number";
  case Kind::String:
    return "a string";
  case Kind::List:
    return "a list";
  case Kind::Object:
    return "an object";
  }
  return "nothing";
}

namespace {

constexpr size_t maxDepth = 64;

/// An input iterator that adds what it passes to a counter outside.
class CountingIterator {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  CountingIterator(const char *at, size_t *consumed)
      : at(at), consumed(consumed) {}

  reference operator*() const { return *at; }
  CountingIterator &operator++() {
    ++at;
    ++*consumed;
    return *this;
  }
  bool operator==(const CountingIterator &other) const {
    return at == other.at;
  }
  bool operator!=(const CountingIterator &other) const {
    return at != other.at;
  }

private:
  const char *at;
  size_t *consumed;
};

/// Receives the parser's events.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  TreeBuilder(const std::string &text, const size_t &consumed, JsonValue &root,
              JsonError &error)
      : text(text), consumed(consumed), root(root), error(error) {}

  bool null() override { return scalar(JsonValue::Kind::Null); }
  bool boolean(bool) override { return scalar(JsonValue::Kind::Bool); }
  bool number_integer(number_integer_t value) override {
    return scalar(JsonValue::Kind::Integer, value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return scalar(JsonValue::Kind::Number);
    return scalar(JsonValue::Kind::Integer, static_cast<int64_t>(value));
  }
  bool number_float(number_float_t, const string_t &) override {
    return scalar(JsonValue::Kind::Number);
  }
  bool string(string_t &value) override {
    JsonValue &place = add(JsonValue::Kind::String);
    place.text = std::move(value);
    return true;
  }
  bool binary(binary_t &) override { return false; }

  bool start_object(std::size_t) override {
    return open(JsonValue::Kind::Object);
  }
  bool key(string_t &value) override {
    pendingKey = std::move(value);
    last = consumed;
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(JsonValue::Kind::List); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &exception) override {
    // Their text is "[json.exception...] parse error at line 1, column 2:
    // what"; only the last part is news beside our own location.
    std::string what = exception.what();
    size_t colon = what.find(": ");
    error.message = colon == std::string::npos ? what : what.substr(colon + 2);
    error.offset = position == 0 ? 0 : position - 1;
    return false;
  }

private:
  /// Where the value starts that the parser has just read: behind the last
  /// event and what may stand between two values.
  size_t startOffset() const {
    return std::min(text.find_first_not_of(" \t\r\n,:", last), text.size());
  }

  JsonValue &add(JsonValue::Kind kind) {
    JsonValue value;
    value.kind = kind;
    value.offset = startOffset();
    last = consumed;
    if (stack.empty()) {
      root = std::move(value);
      return root;
    }
    JsonValue &parent = *stack.back();
    if (parent.kind == JsonValue::Kind::List) {
      parent.items.push_back(std::move(value));
      return parent.items.back();
    }
    parent.members.emplace_back(std::move(pendingKey), std::move(value));
    return parent.members.back().second;
  }

  bool scalar(JsonValue::Kind kind, int64_t integer = 0) {
    add(kind).integer = integer;
    return true;
  }

  bool open(JsonValue::Kind kind) {
    // The tree is destroyed by recursion.
    if (stack.size() == maxDepth) {
      error.message = "expected at most " + std::to_string(maxDepth) +
                      " nested lists and objects";
      error.offset = startOffset();
      return false;
    }
    // A parent grows only when its open child is closed, so the pointer holds.
    JsonValue *place = &add(kind);
    stack.push_back(place);
    return true;
  }

  bool close() {
    stack.pop_back();
    last = consumed;
    return true;
  }

  const std::string &text;
  const size_t &consumed;
  JsonValue &root;
  JsonError &error;
  std::vector<JsonValue *> stack;
  std::string pendingKey;
  size_t last = 0;
};

} // namespace

bool parseJson(const std::string &text, JsonValue &root, JsonError &error) {
  size_t consumed = 0;
  TreeBuilder builder(text, consumed, root, error);
  const char *begin = text.data();
  return nlohmann::json::sax_parse(
      CountingIterator(begin, &consumed),
      CountingIterator(begin + text.size(), &consumed), &builder);
}

} // namespace tools
} // namespace dfa
