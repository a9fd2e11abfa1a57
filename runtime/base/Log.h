// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages to stderr, filtered by DFA_LOG=off|error|warn|info|debug. The level
// is the only global state of the runtime.

#ifndef DFA_BASE_LOG_H
#define DFA_BASE_LOG_H

namespace dfa::rt {

enum class LogLevel : int { Off, Error, Warn, Info, Debug };

/// The current level: DFA_LOG's, or `warn`.
LogLevel logLevel();
/// Overrides DFA_LOG for this process.
void setLogLevel(LogLevel level);
/// Writes one line in printf style.
void log(LogLevel level, const char *pattern, ...)
    __attribute__((format(printf, 2, 3)));

} // namespace dfa::rt

/// Logs without evaluating its arguments when the level is off.
#define DFA_RT_LOG(level, ...)                                                 \
  do {                                                                         \
    if (::dfa::rt::logLevel() >= ::dfa::rt::LogLevel::level)                   \
      ::dfa::rt::log(::dfa::rt::LogLevel::level, __VA_ARGS__);                 \
  } while (false)

#endif // DFA_BASE_LOG_H
