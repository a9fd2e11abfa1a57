// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spells a step in the dfa dialect. The tool has no MLIR: what it prints is
// checked by dfa-opt in the tests.
#ifndef DFA_TOOLS_LAYOUT_STEPTEXT_H
#define DFA_TOOLS_LAYOUT_STEPTEXT_H

#include "Step.h"

#include <string>

namespace dfa {
namespace tools {

/// The whole module: mesh, layout, and `func.func @step`.
std::string stepText(const Step &step);

/// Mesh and layout only.
std::string layoutText(const Step &step);

/// `func.func @step` only, behind aliases for its types.
std::string functionText(const Step &step);

/// An MLIR float literal that reads back as `value`, such as 1.0e-08.
std::string floatText(double value);

/// An MLIR string literal.
std::string stringText(const std::string &value);

} // namespace tools
} // namespace dfa

#endif // DFA_TOOLS_LAYOUT_STEPTEXT_H
