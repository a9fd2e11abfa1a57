// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a compiled step costs, read from level C: bytes an element, launches,
// bytes on the wire, memory. Arithmetic only; printing is in dfa-report.

#ifndef DFA_ANALYSIS_STEPCOST_H
#define DFA_ANALYSIS_STEPCOST_H

#include "dfa/IR/Dfa.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>

namespace mlir::dfa {

struct ArrayCost {
  std::string name;
  double bytesPerElement = 0;
};

struct KernelCost {
  std::string name;
  int64_t launches = 0;       // in one step
  double bytesPerElement = 0; // of its class; 0 for scalar kernels
  SmallVector<ArrayCost> reads, writes;
  int64_t localElements = 0; // on one rank, over all launches
};

struct CollectiveCost {
  std::string kind;
  std::string axis;
  int64_t ranks = 1;
  double bytesOnWirePerRank = 0;
};

struct CostOptions {
  double bandwidth = 4200; // GB/s of device memory, read plus write
  double link = 200;       // GB/s of one rank's link, each way
  /// Mesh sizes to assume; 0: those of the mesh op.
  int64_t replicate = 0, shard = 0;
};

struct StepCost {
  /// Elements of all parameters, if the layout lists any.
  std::optional<int64_t> elements;
  int64_t launches = 0;
  double bytesPerElement = 0;
  double stateBytesPerParameter = 0;
  SmallVector<KernelCost> kernels;
  SmallVector<CollectiveCost> collectives;
  double peakBytesPerRank = 0;
  /// No step of these bytes is faster: the larger of memory time and wire
  /// time, in ms.
  double floorMs = 0;
};

/// The cost of the module's one program; an error if there is none.
FailureOr<StepCost> computeStepCost(ModuleOp module,
                                    const CostOptions &options);

} // namespace mlir::dfa

#endif // DFA_ANALYSIS_STEPCOST_H
