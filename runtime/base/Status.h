// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the runtime reports failure inside: a status with code, message and
// place. The C codes that users see are in dfa_rt.h and have the same values.

#ifndef DFA_BASE_STATUS_H
#define DFA_BASE_STATUS_H

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace dfa::rt {

enum class Code : int32_t {
  Ok = 0,
  InvalidArgument = 1,    // the caller passed something wrong
  ParseError = 2,         // a program text is malformed
  NotFound = 3,           // no such kernel, field, entry, library
  Unsupported = 4,        // well-formed, but this build or device cannot
  OutOfMemory = 5,        //
  FailedPrecondition = 6, // a call in the wrong state or order
  DeviceError = 7,        // the driver reported a failure
  CollectiveError = 8,    // a peer died, is late, or disagrees
  Internal = 9,           // a broken invariant of ours
};

/// Returns the word printed for `code`, such as "invalid argument".
const char *codeName(Code code);

/// Success, or a code with a message and the place that raised it. Success is
/// one null pointer, so passing it costs nothing on the hot path.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message, const char *file, int line);

  bool ok() const { return !detail; }
  Code code() const { return detail ? detail->code : Code::Ok; }
  /// The message without place; empty for success.
  const std::string &message() const;
  const char *file() const { return detail ? detail->file : ""; }
  int line() const { return detail ? detail->line : 0; }
  /// "device error: MESSAGE (File.cpp:12)", or "ok".
  std::string str() const;

private:
  struct Detail {
    Code code;
    std::string message;
    const char *file;
    int line;
  };
  // Shared, so that a sticky error can be reported more than once.
  std::shared_ptr<const Detail> detail;
};

/// A value, or the status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : held(std::move(value)), present(true) {}
  Result(Status status) : error(std::move(status)) {}

  bool ok() const { return present; }
  const Status &status() const { return error; }
  T &operator*() { return held; }
  const T &operator*() const { return held; }
  T *operator->() { return &held; }

private:
  T held{};
  bool present = false;
  Status error;
};

/// Formats like printf into a string (for messages).
std::string format(const char *pattern, ...)
    __attribute__((format(printf, 1, 2)));

} // namespace dfa::rt

/// Makes a failing status: DFA_RT_ERROR(InvalidArgument, "expects %d", n).
#define DFA_RT_ERROR(code, ...)                                                \
  ::dfa::rt::Status(::dfa::rt::Code::code, ::dfa::rt::format(__VA_ARGS__),     \
                    __FILE__, __LINE__)

/// Returns from the enclosing function when `expression` failed.
#define DFA_RT_TRY(expression)                                                 \
  do {                                                                         \
    ::dfa::rt::Status dfaRtStatus = (expression);                              \
    if (!dfaRtStatus.ok())                                                     \
      return dfaRtStatus;                                                      \
  } while (false)

#endif // DFA_BASE_STATUS_H
