// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The outcome of an operation on user data: success, or a one-line message
// that says where, what was expected and what was found. No exceptions, no
// LLVM; exit codes are chosen by the tool, not here.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_STATUS_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_STATUS_H

#include <string>
#include <utility>

namespace dfa::run {

/// Success, or a lower-case message for the user. A new Status is a success.
class [[nodiscard]] Status {
public:
  Status() = default;

  /// A failure with this message.
  static Status failure(std::string message) {
    Status status;
    status.failed = true;
    status.text = std::move(message);
    return status;
  }

  /// "expects WHAT, but got FOUND", the form of all our diagnostics.
  static Status expects(const std::string &what, const std::string &found) {
    return failure("expects " + what + ", but got " + found);
  }

  bool ok() const { return !failed; }

  /// The message; empty on success.
  const std::string &message() const { return text; }

  /// The same outcome, a failure located in `place`: "PLACE: message".
  Status in(const std::string &place) const {
    return failed ? failure(place + ": " + text) : *this;
  }

private:
  bool failed = false;
  std::string text;
};

/// `name` in single quotes, with bytes that a terminal would interpret written
/// as \xNN, cut after 200 bytes: names in damaged files are arbitrary bytes.
std::string quoted(const std::string &name);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_STATUS_H
