// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-verify-capturable: proves the program recordable, or points at what is
// not. An allow-list: an op is guilty until its interface says otherwise.

#include "dfa/Transforms/Passes.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAVERIFYCAPTURABLE
#include "dfa/Transforms/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

/// What a value on the host depends on, through pure computation.
enum class Origin { Constant, Device, Rank, Unknown };

static Origin findOrigin(Value value, DenseSet<Value> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return Origin::Unknown;
  if (!seen.insert(value).second)
    return Origin::Constant;
  if (isa<FetchOp>(op) || hasEffect<MemoryEffects::Read>(op))
    return Origin::Device;
  if (isa<RankOp>(op))
    return Origin::Rank;
  if (!isMemoryEffectFree(op))
    return Origin::Unknown;
  Origin worst = Origin::Constant;
  for (Value operand : op->getOperands())
    worst = std::max(worst, findOrigin(operand, seen));
  return worst;
}

/// Control flow is harmless only if it is the same in every replay on every
/// rank.
static std::string whyNotBranch(Operation *op) {
  for (Value operand : op->getOperands()) {
    DenseSet<Value> seen;
    switch (findOrigin(operand, seen)) {
    case Origin::Constant:
      continue;
    case Origin::Device:
      return "branches on a value loaded from the device";
    case Origin::Rank:
      return "branches on the rank; all ranks must record the same commands";
    case Origin::Unknown:
      return "branches on a value that may change between steps";
    }
  }
  return {};
}

static std::string whyNotRecordable(Operation *op) {
  if (auto recordable = dyn_cast<RecordableOpInterface>(op))
    return recordable.whyNotRecordable();
  if (isa<RegionBranchOpInterface, BranchOpInterface>(op))
    return whyNotBranch(op);
  // A terminator that does not just return decides where control goes next.
  if (isa<RegionBranchTerminatorOpInterface>(op) &&
      !op->hasTrait<OpTrait::ReturnLike>())
    return whyNotBranch(op);
  if (isa<CallOpInterface>(op))
    return "calls a function that is not known to be recordable";
  if (hasEffect<MemoryEffects::Allocate>(op) ||
      hasEffect<MemoryEffects::Free>(op))
    return "allocates or frees memory; do it before the capture";
  if (isMemoryEffectFree(op) || op->hasTrait<OpTrait::IsTerminator>())
    return {};
  return "is not known to be recordable";
}

namespace {

struct VerifyCapturable : dfa::impl::DfaVerifyCapturableBase<VerifyCapturable> {
  void runOnOperation() override {
    bool found = false, clean = true;
    getOperation().walk([&](EntryOp entry) {
      found = true;
      entry.getBody().walk([&](Operation *op) {
        std::string reason = whyNotRecordable(op);
        if (reason.empty())
          return;
        clean = false;
        InFlightDiagnostic diag = op->emitOpError("cannot be recorded: ")
                                  << reason;
        diag.attachNote(entry.getLoc())
            << "in entry '" << stringifyEntry(entry.getKind()) << "'";
      });
    });
    if (!found) {
      emitError(getOperation().getLoc(),
                "expects a 'dfa.program' with entries; run dfa-form-kernels "
                "first");
      clean = false;
    }
    if (!clean)
      signalPassFailure();
  }
};

} // namespace
