// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A look at the text before MLIR parses it. MLIR's parser and printer recurse
// without a bound, so text that nests deeply would end in a stack overflow.

#ifndef DFA_SUPPORT_NESTING_H
#define DFA_SUPPORT_NESTING_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir::dfa {

/// How deep brackets may nest in text that is given to the parser, aliases
/// counted with what they stand for. Real steps stay below 20.
inline constexpr unsigned kMaxNesting = 256;

/// How many words may follow each other without punctuation: each operator of
/// an affine expression is a level of recursion too.
inline constexpr unsigned kMaxWords = 1024;

/// Succeeds if the parser can take `text`; else prints a diagnostic with file,
/// line and column to `errors`. Bytecode always passes.
LogicalResult checkNesting(llvm::MemoryBufferRef text,
                           llvm::raw_ostream &errors);

} // namespace mlir::dfa

#endif // DFA_SUPPORT_NESTING_H
