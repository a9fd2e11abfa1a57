// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program: kernels and collectives of all stages as one command list,
// with entries and events.

#ifndef DFA_LIB_TRANSFORMS_FORMKERNELS_PROGRAMEMITTER_H
#define DFA_LIB_TRANSFORMS_FORMKERNELS_PROGRAMEMITTER_H

#include "StepSchedule.h"

namespace mlir::dfa {

/// One launch of an element or segment kernel.
struct LaunchPlan {
  FlatSymbolRefAttr kernel;
  FlatSymbolRefAttr cls;
  bool accumulates = false;
  int64_t firstRow = 0;
  /// Of segment kernels: the axis over whose ranks their accumulators are
  /// combined, if not null, and how many these are.
  StringAttr axis;
  int64_t rows = 0;
};

/// Kernels of one stage, in the order in which they run: the control kernel,
/// then segment kernels, then element kernels.
struct StagePlan {
  FlatSymbolRefAttr control;
  SmallVector<LaunchPlan> segments;
  SmallVector<LaunchPlan> elements;
};

struct ProgramPlan {
  SmallVector<StagePlan> stages;
  /// Segment kernels that follow the accumulation of gradients.
  SmallVector<LaunchPlan> marks;
  /// Columns of the group table, in order.
  SmallVector<StringRef> hyper;
  /// Derived values a segment of each class.
  llvm::DenseMap<StringAttr, int64_t> derived;
};

/// Builds the `dfa.program` at the builder's insertion point, and before it the
/// control kernel of its entry zero_grad, under the name `zeroGrad`.
LogicalResult emitProgram(OpBuilder &builder, StepSchedule &schedule,
                          const ProgramPlan &plan, StringRef zeroGrad);

} // namespace mlir::dfa

#endif // DFA_LIB_TRANSFORMS_FORMKERNELS_PROGRAMEMITTER_H
