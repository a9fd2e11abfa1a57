// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of arrays in .npz files: what the part before the slash and the
// suffix mean. Which keys a step wants is decided by dfa-run.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_KEYS_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_KEYS_H

#include "support/Status.h"

#include <string>

namespace dfa::run {

/// KIND/NAME or KIND/NAME:bf16. KIND is "param", "grad", "master", the name of
/// a state such as "exp_avg", or "control". NAME is a parameter's name (for
/// "control" a field's) and may hold slashes and colons.
struct Key {
  std::string kind;
  std::string name;
  /// The elements are bf16, stored as uint16 bits.
  bool bf16 = false;

  /// The key as text.
  std::string str() const;
};

/// Splits a key at its first slash and takes a ":bf16" suffix off. Fails if
/// kind or name is missing, or for a control field with the suffix.
Status parseKey(const std::string &text, Key &key);

/// The kind of the keys control/step, control/scale and so on.
constexpr const char *controlKind = "control";

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_KEYS_H
