// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A parser for the few Python literals that a .npy header may have, and its
// inverse. It allocates nothing that the header's length does not bound.
#include "support/NpyHeader.h"

#include <cstring>

using namespace dfa::run;

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/// NumPy's own limit on the number of dimensions.
static constexpr size_t maxRank = 64;

/// Real headers have some 120 bytes; more than this is damage.
static constexpr size_t maxText = 1 << 20;

Status dfa::run::parseNpyPrefix(const unsigned char *prefix, size_t &textBegin,
                                size_t &textLength) {
  if (std::memcmp(prefix, magic, sizeof(magic)) != 0)
    return Status::expects("the magic bytes of a .npy file",
                           quoted(std::string(prefix, prefix + 6)));
  unsigned major = prefix[6], minor = prefix[7];
  if (major < 1 || major > 3 || minor != 0)
    return Status::expects("npy format version 1.0, 2.0 or 3.0",
                           std::to_string(major) + "." + std::to_string(minor));
  textBegin = major == 1 ? 10 : 12;
  textLength = prefix[8] | prefix[9] << 8;
  if (major > 1)
    textLength |= static_cast<size_t>(prefix[10]) << 16 |
                  static_cast<size_t>(prefix[11]) << 24;
  if (textLength > maxText)
    return Status::expects("an npy header of at most " +
                               std::to_string(maxText) + " bytes",
                           std::to_string(textLength));
  return Status();
}

namespace {
/// Reads Python literals from left to right. Every method fails with the
/// column at which it stands.
class LiteralParser {
public:
  explicit LiteralParser(const std::string &text) : text(text) {}

  bool atEnd() {
    skipBlanks();
    return position == text.size();
  }

  /// Takes `c` if it comes next.
  bool take(char c) {
    skipBlanks();
    if (position == text.size() || text[position] != c)
      return false;
    ++position;
    return true;
  }

  Status require(char c) {
    return take(c) ? Status() : unexpected(std::string("'") + c + "'");
  }

  Status parseString(std::string &value) {
    skipBlanks();
    char quote = position < text.size() ? text[position] : '\0';
    if (quote != '\'' && quote != '"')
      return unexpected("a string");
    size_t close = text.find(quote, position + 1);
    if (close == std::string::npos)
      return unexpected("a closed string");
    value = text.substr(position + 1, close - position - 1);
    position = close + 1;
    return Status();
  }

  Status parseBool(bool &value) {
    skipBlanks();
    for (bool candidate : {false, true}) {
      const char *word = candidate ? "True" : "False";
      if (text.compare(position, std::strlen(word), word) != 0)
        continue;
      position += std::strlen(word);
      value = candidate;
      return Status();
    }
    return unexpected("True or False");
  }

  Status parseInteger(int64_t &value) {
    skipBlanks();
    size_t begin = position;
    value = 0;
    for (; position < text.size() && isDigit(text[position]); ++position)
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(text[position] - '0'), &value))
        return unexpected("an extent of less than 2^63");
    if (position == begin)
      return unexpected("a non-negative integer");
    // Python 2 wrote long integers with a suffix.
    if (position < text.size() && text[position] == 'L')
      ++position;
    return Status();
  }

  Status unexpected(const std::string &what) const {
    std::string found = position == text.size()
                            ? "the end of the header"
                            : quoted(text.substr(position, 16));
    return Status::expects(what + " at column " + std::to_string(position + 1) +
                               " of the npy header",
                           found);
  }

private:
  static bool isDigit(char c) { return c >= '0' && c <= '9'; }

  void skipBlanks() {
    while (position < text.size() &&
           (text[position] == ' ' || text[position] == '\n' ||
            text[position] == '\t'))
      ++position;
  }

  const std::string &text;
  size_t position = 0;
};
} // namespace

static Status parseShape(LiteralParser &parser, std::vector<int64_t> &shape) {
  Status status = parser.require('(');
  shape.clear();
  while (status.ok() && !parser.take(')')) {
    if (shape.size() == maxRank)
      return parser.unexpected("at most 64 extents");
    int64_t extent = 0;
    status = parser.parseInteger(extent);
    if (!status.ok())
      return status;
    shape.push_back(extent);
    if (parser.take(','))
      continue;
    // Without its comma, "(3)" is an integer in Python, not a tuple.
    if (shape.size() == 1)
      return parser.unexpected("','");
    return parser.require(')');
  }
  return status;
}

static Status parseType(const std::string &descr, ElementType &type) {
  static const ElementType all[] = {
      ElementType::F16, ElementType::F32, ElementType::F64,
      ElementType::I32, ElementType::I64, ElementType::U16,
      ElementType::U32, ElementType::U64, ElementType::Bool};
  char order = descr.empty() ? '\0' : descr[0];
  for (ElementType candidate : all) {
    if (descr.size() != 3 || descr.compare(1, 2, elementName(candidate)) != 0)
      continue;
    if (order == '>' && elementBytes(candidate) > 1)
      return Status::expects("little-endian data ('<" + descr.substr(1) + "')",
                             "big-endian " + quoted(descr));
    if (std::strchr("<=|>", order) == nullptr || order == '\0')
      break;
    type = candidate;
    return Status();
  }
  std::string hint;
  if (descr.size() == 3 && descr.compare(1, 2, "V2") == 0)
    hint = " (bf16 arrays are stored as their uint16 bits under 'NAME:bf16')";
  return Status::expects("dtype f2, f4, f8, i4, i8, u2, u4, u8 or b1",
                         quoted(descr) + hint);
}

Status dfa::run::parseNpyText(const std::string &text, ArrayInfo &info) {
  LiteralParser parser(text);
  bool haveType = false, haveOrder = false, haveShape = false;
  Status status = parser.require('{');
  while (status.ok() && !parser.take('}')) {
    std::string key;
    status = parser.parseString(key);
    if (status.ok())
      status = parser.require(':');
    if (!status.ok())
      return status;
    bool *seen = nullptr;
    if (key == "descr") {
      seen = &haveType;
      std::string descr;
      status = parser.parseString(descr);
      if (status.ok())
        status = parseType(descr, info.type);
    } else if (key == "fortran_order") {
      seen = &haveOrder;
      status = parser.parseBool(info.fortranOrder);
    } else if (key == "shape") {
      seen = &haveShape;
      status = parseShape(parser, info.shape);
    } else {
      return Status::expects(
          "the npy header keys 'descr', 'fortran_order' and 'shape'",
          quoted(key));
    }
    if (!status.ok())
      return status;
    if (*seen)
      return Status::expects("each npy header key once",
                             quoted(key) + " twice");
    *seen = true;
    if (!parser.take(',')) {
      status = parser.require('}');
      break;
    }
  }
  if (!status.ok())
    return status;
  if (!parser.atEnd())
    return parser.unexpected("nothing behind the dictionary");
  if (!haveType || !haveOrder || !haveShape)
    return Status::expects(
        "the npy header keys 'descr', 'fortran_order' and 'shape'",
        quoted(text));
  return info.check();
}

std::string dfa::run::formatNpyHeader(const ArrayInfo &info) {
  std::string text = "{'descr': '";
  text += elementBytes(info.type) == 1 ? "|" : "<";
  text += elementName(info.type);
  text += "', 'fortran_order': ";
  text += info.fortranOrder ? "True" : "False";
  text += ", 'shape': (";
  for (size_t d = 0; d < info.shape.size(); ++d)
    text += (d ? ", " : "") + std::to_string(info.shape[d]);
  text += info.shape.size() == 1 ? ",), }" : "), }";

  constexpr size_t alignment = 64;
  size_t begin = text.size() + 1 + 10 + alignment > 0xffff ? 12 : 10;
  size_t total = (begin + text.size() + 1 + alignment - 1) / alignment;
  total *= alignment;
  text.append(total - begin - text.size() - 1, ' ');
  text += '\n';

  std::string header(magic, magic + sizeof(magic));
  header += static_cast<char>(begin == 10 ? 1 : 2);
  header += '\0';
  for (size_t shift = 0; shift < (begin - 8) * 8; shift += 8)
    header += static_cast<char>(text.size() >> shift & 0xff);
  return header + text;
}
