// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a module at levels A and B to a StepGraph, before any pass of ours. All
// complaints are MLIR diagnostics with locations.
#ifndef DFA_TOOLS_DFA_RUN_STEP_IMPORT_H
#define DFA_TOOLS_DFA_RUN_STEP_IMPORT_H

#include "dfa/IR/Dfa.h"
#include "mlir/IR/BuiltinOps.h"
#include "step/StepGraph.h"

namespace dfa::run {

/// The function that a step file must have.
constexpr llvm::StringLiteral stepName = "step";

/// Reads layout and step function of a module.
mlir::FailureOr<StepGraph> importStep(mlir::ModuleOp module);

// Parts of it, one file each.

/// Reads mesh, classes, groups and parameters.
mlir::LogicalResult importLayout(mlir::dfa::LayoutOp layout, StepGraph &graph);

/// Reads a region of scalar ops that ends in a dfa.yield.
mlir::FailureOr<ScalarProgram> importRegion(mlir::Region &region);

/// Reads one scalar op; operands and result are left to the caller.
mlir::FailureOr<Instruction> importScalarOp(mlir::Operation *op);

/// Default values of the hyper-parameters of named rules, as torch has them.
double defaultHyper(mlir::Operation *rule, llvm::StringRef name);

Format importFormat(mlir::dfa::Format format);
Format formatOfType(mlir::Type type);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_STEP_IMPORT_H
