// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The front half of the compiler, and the whole of it under the names that
// people type.

#ifndef DFA_PIPELINES_FRONTEND_H
#define DFA_PIPELINES_FRONTEND_H

#include "dfa/Pipelines/Backend.h"

namespace mlir::dfa {

struct StepCost;

/// Levels A and B to fused kernels and the program; each phase ends in a
/// verifier.
void buildToKernelsPipeline(OpPassManager &pm);

/// Makes --dfa-to-kernels, --dfa-to-cpu and --dfa-to-cuda known.
void registerDfaPipelines();

/// Makes --dfa-report known.
void registerDfaReportPass();

/// Writes what a step costs as --dfa-report=format=json does.
void printCostAsJson(const StepCost &cost, raw_ostream &os);

} // namespace mlir::dfa

#endif // DFA_PIPELINES_FRONTEND_H
