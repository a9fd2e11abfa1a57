// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A `dfa.layout` op as a plan of the runtime's layout library: the one place
// where the two meet.

#ifndef DFA_ANALYSIS_LAYOUTPLAN_H
#define DFA_ANALYSIS_LAYOUTPLAN_H

#include "dfa/IR/Dfa.h"
#include "layout/Plan.h"

namespace mlir::dfa {

/// Plans the layout; a mistake is an error at the op. Parameters are numbered
/// in the order of their ops, classes likewise.
FailureOr<::dfa::layout::Plan> planLayout(LayoutOp layout);

/// The same on another mesh than the layout's own.
FailureOr<::dfa::layout::Plan> planLayout(LayoutOp layout,
                                          const ::dfa::layout::Mesh &mesh);

/// The layout library's name of a stored format.
::dfa::layout::Format getLayoutFormat(Format format);

} // namespace mlir::dfa

#endif // DFA_ANALYSIS_LAYOUTPLAN_H
