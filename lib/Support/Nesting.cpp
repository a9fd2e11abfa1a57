// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A scanner of MLIR text that knows brackets, strings, comments and aliases,
// and nothing else.

#include "dfa/Support/Nesting.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

class Scanner {
public:
  Scanner(StringRef name, StringRef text, raw_ostream &errors)
      : name(name), text(text), errors(errors) {}

  LogicalResult scan();

private:
  LogicalResult open(size_t at, unsigned inside);
  LogicalResult word(size_t at);
  LogicalResult fail(size_t at, const Twine &what) const;
  void skipComment();
  void skipString();
  LogicalResult alias();

  static bool isWord(char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
  }
  char peek(size_t ahead = 0) const {
    return pos + ahead < text.size() ? text[pos + ahead] : '\0';
  }

  StringRef name, text;
  raw_ostream &errors;
  size_t pos = 0;
  unsigned depth = 0;
  unsigned words = 0;
  /// How deep each alias nests, and the one that is being defined.
  llvm::StringMap<unsigned> aliases;
  StringRef defined;
  bool hasBody = false;
};

} // namespace

LogicalResult Scanner::fail(size_t at, const Twine &what) const {
  StringRef before = text.take_front(at);
  size_t line = before.count('\n') + 1;
  size_t column = at - (before.rfind('\n') + 1) + 1;
  errors << name << ":" << line << ":" << column << ": error: " << what << "\n";
  return failure();
}

/// Something `inside` levels deep begins at the present depth.
LogicalResult Scanner::open(size_t at, unsigned inside) {
  unsigned total = depth + inside;
  if (total > kMaxNesting)
    return fail(at, "expects at most " + Twine(kMaxNesting) +
                        " levels of nesting, but got more");
  if (!defined.empty())
    aliases[defined] = std::max(aliases[defined], total);
  return success();
}

LogicalResult Scanner::word(size_t at) {
  if (++words <= kMaxWords)
    return success();
  return fail(at, "expects at most " + Twine(kMaxWords) +
                      " words without punctuation, but got more");
}

void Scanner::skipComment() {
  size_t end = std::min(text.find('\n', pos), text.size());
  StringRef comment = text.slice(pos, end);
  // What --split-input-file takes apart does not nest.
  if (comment.starts_with("// -----")) {
    depth = words = 0;
    defined = {};
    aliases.clear();
  }
  pos = end;
}

void Scanner::skipString() {
  for (++pos; pos < text.size() && peek() != '\n'; ++pos) {
    if (peek() == '"') {
      ++pos;
      return;
    }
    if (peek() == '\\')
      ++pos;
  }
}

/// A use of an alias, or the start of its definition. Names of dialects look
/// the same and are not in the map.
LogicalResult Scanner::alias() {
  size_t at = pos++;
  while (isWord(peek()))
    ++pos;
  StringRef spelled = text.slice(at, pos);
  StringRef rest = text.drop_front(pos).ltrim(" \t\r\n");
  if (depth == 0 && rest.starts_with("=") && !rest.starts_with("==")) {
    defined = spelled;
    hasBody = false;
    // A name that is defined twice is an error of its own.
    aliases[defined] = 0;
    pos = text.size() - rest.size() + 1;
    return success();
  }
  hasBody = true;
  auto it = aliases.find(spelled);
  if (it == aliases.end() || spelled == defined)
    return success();
  return open(at, it->second + 1);
}

LogicalResult Scanner::scan() {
  while (pos < text.size()) {
    char c = peek();
    if (c == '\n' && depth == 0 && hasBody)
      defined = {};
    if (llvm::isSpace(c)) {
      ++pos;
      continue;
    }
    if (c == '/' && peek(1) == '/') {
      skipComment();
      continue;
    }
    if (isWord(c) || c == '+' || c == '*' || (c == '-' && peek(1) != '>')) {
      hasBody = true;
      if (failed(word(pos)))
        return failure();
      do
        ++pos;
      while (isWord(c) && isWord(peek()));
      continue;
    }
    words = 0;
    if (c == '#' || c == '!') {
      if (failed(alias()))
        return failure();
      continue;
    }
    hasBody = true;
    if (c == '"') {
      skipString();
      continue;
    }
    // Arrows and comparisons are no brackets.
    if ((c == '-' && peek(1) == '>') || (c == '<' && peek(1) == '=') ||
        (c == '>' && peek(1) == '=')) {
      pos += 2;
      continue;
    }
    if (StringRef("([{<").contains(c)) {
      ++depth;
      if (failed(open(pos, 0)))
        return failure();
    } else if (StringRef(")]}>").contains(c) && depth > 0) {
      --depth;
    }
    ++pos;
  }
  return success();
}

LogicalResult dfa::checkNesting(llvm::MemoryBufferRef text,
                                raw_ostream &errors) {
  if (isBytecode(text))
    return success();
  StringRef name = text.getBufferIdentifier();
  return Scanner(name, text.getBuffer(), errors).scan();
}
