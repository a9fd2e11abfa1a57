// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Status, its printed form, and the formatting helper.

#include "base/Status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace dfa::rt {

const char *codeName(Code code) {
  switch (code) {
  case Code::Ok:
    return "ok";
  case Code::InvalidArgument:
    return "invalid argument";
  case Code::ParseError:
    return "parse error";
  case Code::NotFound:
    return "not found";
  case Code::Unsupported:
    return "unsupported";
  case Code::OutOfMemory:
    return "out of memory";
  case Code::FailedPrecondition:
    return "failed precondition";
  case Code::DeviceError:
    return "device error";
  case Code::CollectiveError:
    return "collective error";
  case Code::Internal:
    return "internal error";
  }
  return "unknown code";
}

Status::Status(Code code, std::string message, const char *file, int line) {
  if (code == Code::Ok)
    return;
  // Build folders say nothing to a user, so only the file name is kept.
  const char *slash = std::strrchr(file, '/');
  detail = std::make_shared<Detail>(
      Detail{code, std::move(message), slash ? slash + 1 : file, line});
}

const std::string &Status::message() const {
  static const std::string empty;
  return detail ? detail->message : empty;
}

std::string Status::str() const {
  if (ok())
    return "ok";
  return format("%s: %s (%s:%d)", codeName(detail->code),
                detail->message.c_str(), detail->file, detail->line);
}

std::string format(const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  va_list measured;
  va_copy(measured, arguments);
  int size = std::vsnprintf(nullptr, 0, pattern, measured);
  va_end(measured);
  std::string text(size > 0 ? size : 0, '\0');
  if (size > 0)
    std::vsnprintf(text.data(), text.size() + 1, pattern, arguments);
  va_end(arguments);
  return text;
}

} // namespace dfa::rt
