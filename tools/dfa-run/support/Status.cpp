// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How names of unknown origin are shown in diagnostics.
#include "support/Status.h"

std::string dfa::run::quoted(const std::string &name) {
  constexpr size_t longest = 200;
  static const char digits[] = "0123456789abcdef";
  std::string result = "'";
  for (size_t i = 0; i < name.size() && i < longest; ++i) {
    unsigned char byte = static_cast<unsigned char>(name[i]);
    if (byte >= 0x20 && byte != 0x7f) {
      result += name[i];
      continue;
    }
    result += "\\x";
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  if (name.size() > longest)
    result += "...";
  return result + "'";
}
