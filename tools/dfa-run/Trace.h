// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A time line of the run in the format that trace viewers (Perfetto,
// chrome://tracing) read.
#ifndef DFA_TOOLS_DFA_RUN_TRACE_H
#define DFA_TOOLS_DFA_RUN_TRACE_H

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace dfa::run {

class Trace {
public:
  /// Measures from its construction to its destruction.
  class Span {
  public:
    Span(Trace &trace, std::string name)
        : trace(trace), name(std::move(name)), begin(trace.now()) {}
    Span(const Span &) = delete;
    ~Span() { trace.events.push_back({name, begin, trace.now() - begin, 0}); }

  private:
    Trace &trace;
    std::string name;
    double begin;
  };

  /// Remembers now as a moment that all ranks share, nearly: other machines'
  /// clocks are compared by it.
  void mark() { marked = now(); }
  /// The spans as a text, for append() on another rank.
  std::string text() const;
  /// Adds the spans of another rank, of which the texts are text()'s.
  void append(int64_t rank, const std::string &text);

  /// Writes all spans; false if the file cannot be written.
  bool write(const std::string &path) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Event {
    std::string name;
    double begin, length; // microseconds
    int64_t rank;
  };
  double now() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - start)
        .count();
  }

  Clock::time_point start = Clock::now();
  double marked = 0;
  std::vector<Event> events;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_TRACE_H
