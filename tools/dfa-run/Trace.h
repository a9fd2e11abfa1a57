// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A time line of the run in the format that trace viewers (Perfetto,
// chrome://tracing) read.
#ifndef DFA_TOOLS_DFA_RUN_TRACE_H
#define DFA_TOOLS_DFA_RUN_TRACE_H

#include <chrono>
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
    ~Span() { trace.events.push_back({name, begin, trace.now() - begin}); }

  private:
    Trace &trace;
    std::string name;
    double begin;
  };

  /// Writes all spans; false if the file cannot be written.
  bool write(const std::string &path) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Event {
    std::string name;
    double begin, length; // microseconds
  };
  double now() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - start)
        .count();
  }

  Clock::time_point start = Clock::now();
  std::vector<Event> events;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_TRACE_H
