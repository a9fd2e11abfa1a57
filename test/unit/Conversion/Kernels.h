// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that the tests compile, as text, and a context to parse them in.

#ifndef DFA_TEST_UNIT_CONVERSION_KERNELS_H
#define DFA_TEST_UNIT_CONVERSION_KERNELS_H

#include "dfa/Target/Host.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace dfa_test {

/// AdamW on bf16 gradients and f32 states, with a bf16 copy of the parameter.
/// Derived values: 1 - beta1, 1 - beta2, rate, root, eps, decay.
extern const char *const adamwText;
/// Sum of squares and largest magnitude of gradients of type `type`.
std::string normText(const std::string &type);
/// Reads and writes in a reduction: halves an f32 array, adds what it was.
extern const char *const halveText;
/// A sum and a maximum, kept in the control block and in scratch slots.
extern const char *const controlText;
/// One sum, and one sum a group.
extern const char *const groupText;
/// Powers of a hyper-parameter; counts the step.
extern const char *const rowsText;
/// Combines a sum and a maximum of each segment.
extern const char *const segmentSumText;

/// A module in a context that knows what kernels are written with.
class Parsed {
public:
  explicit Parsed(const std::string &text);
  mlir::ModuleOp get() { return *module; }
  /// Diagnostics since construction, one a line.
  std::string diagnostics;

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Compiles `text`; fails the test and returns null with a reason if it
/// cannot.
std::unique_ptr<mlir::dfa::HostKernels> compile(const std::string &text,
                                                unsigned width);

} // namespace dfa_test

#endif // DFA_TEST_UNIT_CONVERSION_KERNELS_H
