// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-verify-lowered: what the phases below level C may leave, on hosts and on
// GPUs, and that the program's kernels are there as the runtime calls them.

#include "dfa/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAVERIFYLOWERED
#include "dfa/Conversion/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

/// Arguments of the kernels of each kind, in dfa-rt/abi.h.
static constexpr unsigned kElementArguments = 10, kControlArguments = 11,
                          kSegmentArguments = 12;

namespace {

class VerifyLowered : public dfa::impl::DfaVerifyLoweredBase<VerifyLowered> {
public:
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult verifyOps();
  LogicalResult verifyOp(Operation *op);
  LogicalResult verifyFunction(FunctionOpInterface function);
  LogicalResult verifyLaunch(Operation *launch, FlatSymbolRefAttr kernel,
                             unsigned arguments);

  bool isLast() const { return phase == "llvm"; }

  /// Functions of the module and of its GPU modules, by name.
  llvm::StringMap<FunctionOpInterface> functions;
};

} // namespace

/// What level C and those above it are made of; the program stays to the end.
static bool isLowered(Operation *op) {
  if (!isa_and_nonnull<DfaDialect>(op->getDialect()))
    return false;
  if (op->getParentOfType<ProgramOp>() || op->getParentOfType<LayoutOp>())
    return false;
  return !isa<ProgramOp, LayoutOp, MeshOp>(op);
}

LogicalResult VerifyLowered::verifyOp(Operation *op) {
  if (isLowered(op))
    return op->emitError("'")
           << op->getName() << "' op expects to be lowered by now";
  if (isa<UnrealizedConversionCastOp>(op))
    return op->emitError("expects no conversion between types of two levels");
  if (!isLast() || !op->getParentOfType<FunctionOpInterface>() ||
      isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
    return success();
  return op->emitError("'") << op->getName()
                            << "' op expects to be of dialect 'llvm' or "
                               "'nvvm' by now";
}

LogicalResult VerifyLowered::verifyFunction(FunctionOpInterface function) {
  functions[function.getName()] = function;
  if (!isLast() || isa<LLVM::LLVMFuncOp>(function))
    return success();
  return function.emitError("'")
         << function->getName() << "' op expects to be an 'llvm.func' by now";
}

LogicalResult VerifyLowered::verifyOps() {
  WalkResult result =
      getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
        LogicalResult ok = verifyOp(op);
        if (auto function = dyn_cast<FunctionOpInterface>(op);
            function && ok.succeeded())
          ok = verifyFunction(function);
        return failed(ok) ? WalkResult::interrupt() : WalkResult::advance();
      });
  return failure(result.wasInterrupted());
}

LogicalResult VerifyLowered::verifyLaunch(Operation *launch,
                                          FlatSymbolRefAttr kernel,
                                          unsigned arguments) {
  auto it = functions.find(kernel.getValue());
  if (it == functions.end())
    return launch->emitError("'") << launch->getName() << "' op expects "
                                  << kernel << " to be a function by now";
  FunctionOpInterface function = it->second;
  if (function.getNumArguments() != arguments) {
    InFlightDiagnostic diag = function.emitError("expects ")
                              << arguments << " arguments, as the runtime's "
                              << "interface has them, but got "
                              << function.getNumArguments();
    diag.attachNote(launch->getLoc()) << "launched here";
    return diag;
  }
  if (!function.getResultTypes().empty() &&
      !isa<LLVM::LLVMVoidType>(function.getResultTypes().front()))
    return function.emitError("expects a kernel to return nothing");
  return success();
}

void VerifyLowered::runOnOperation() {
  functions.clear();
  if (phase != "loops" && phase != "llvm") {
    getOperation().emitError("expects phase 'loops' or 'llvm', but got '")
        << phase << "'";
    return signalPassFailure();
  }
  if (failed(verifyOps()))
    return signalPassFailure();
  WalkResult result =
      getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
        LogicalResult ok = success();
        if (auto launch = dyn_cast<LaunchElementsOp>(op))
          ok = verifyLaunch(op, launch.getKernelAttr(), kElementArguments);
        else if (auto launch = dyn_cast<LaunchControlOp>(op))
          ok = verifyLaunch(op, launch.getKernelAttr(), kControlArguments);
        else if (auto launch = dyn_cast<LaunchSegmentsOp>(op))
          ok = verifyLaunch(op, launch.getKernelAttr(), kSegmentArguments);
        return failed(ok) ? WalkResult::interrupt() : WalkResult::advance();
      });
  if (result.wasInterrupted())
    signalPassFailure();
}
