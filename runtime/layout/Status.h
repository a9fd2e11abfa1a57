// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the layout library reports mistakes: a message, never an exception. Not
// the runtime's status codes, which its C ABI defines.
#ifndef DFA_LAYOUT_STATUS_H
#define DFA_LAYOUT_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace dfa {
namespace layout {

/// Success, or a lower-case message that says what was expected, what was
/// found, and for which parameter, class or option.
class [[nodiscard]] Status {
public:
  Status() = default;

  static Status error(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }

  bool ok() const { return !text.has_value(); }

  /// The message of an error; empty on success.
  const std::string &message() const {
    static const std::string none;
    return text ? *text : none;
  }

private:
  std::optional<std::string> text;
};

/// A value, or the Status that says why there is none. The value may be read
/// only after ok() was seen to be true.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : content(std::move(value)) {}
  Expected(Status error) : failure(std::move(error)) {}

  bool ok() const { return content.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status &status() const { return failure; }
  const std::string &message() const { return failure.message(); }

  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

private:
  std::optional<T> content;
  Status failure;
};

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_STATUS_H
