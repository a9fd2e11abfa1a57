// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The GPUs we compile for. LLVM ends the process, or goes on with another
// target, where it does not know a name; so names are checked here before.

#ifndef DFA_TARGET_CHIPS_H
#define DFA_TARGET_CHIPS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::dfa {

struct Chip {
  llvm::StringLiteral name;
  /// Architecture family, for people.
  llvm::StringLiteral family;
};

/// The chip of that name; null if it is not in the table.
const Chip *findChip(llvm::StringRef name);

/// Names of all chips, for diagnostics.
std::string listChips();

} // namespace mlir::dfa

#endif // DFA_TARGET_CHIPS_H
