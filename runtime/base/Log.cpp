// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log level and the writing of lines.

#include "base/Log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dfa::rt {

static constexpr const char *levelNames[] = {"off", "error", "warn", "info",
                                             "debug"};

static LogLevel levelFromEnvironment() {
  const char *word = std::getenv("DFA_LOG");
  if (!word)
    return LogLevel::Warn;
  for (int level = 0; level < 5; ++level)
    if (std::strcmp(word, levelNames[level]) == 0)
      return static_cast<LogLevel>(level);
  std::fprintf(stderr,
               "dfa: warn: expects DFA_LOG to be off, error, warn, info or "
               "debug, but got '%s'\n",
               word);
  return LogLevel::Warn;
}

static std::atomic<LogLevel> &level() {
  static std::atomic<LogLevel> current{levelFromEnvironment()};
  return current;
}

LogLevel logLevel() { return level().load(std::memory_order_relaxed); }

void setLogLevel(LogLevel value) {
  level().store(value, std::memory_order_relaxed);
}

void log(LogLevel at, const char *pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  // One call, so that lines of several threads do not mix.
  std::fprintf(stderr, "dfa: %s: %s\n", levelNames[static_cast<int>(at)], text);
}

} // namespace dfa::rt
