// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass dfa-convert-kernels-to-loops: kernels become host functions. What they
// compute is in the files of the kinds of kernels.

#include "HostKernels.h"
#include "dfa-rt/abi.h"
#include "dfa/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFACONVERTKERNELSTOLOOPS
#include "dfa/Conversion/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

static LogicalResult emitBody(Emitter &emitter, Operation *kernel,
                              ValueRange arguments, unsigned width) {
  FailureOr<KernelLayout> layout = getKernelLayout(kernel);
  if (failed(layout))
    return failure();
  if (KernelOp element = dyn_cast<KernelOp>(kernel))
    return emitHostElementKernel(emitter, element, *layout, arguments, width);
  if (ControlKernelOp control = dyn_cast<ControlKernelOp>(kernel))
    return emitHostControlKernel(emitter, control, arguments, width);
  return emitHostSegmentKernel(emitter, cast<SegmentKernelOp>(kernel), *layout,
                               arguments, width);
}

/// Replaces a kernel by a function of its name. Call sites are in the program
/// only, which names kernels, so nothing else changes.
static LogicalResult convert(Operation *kernel, unsigned width) {
  OpBuilder builder(kernel);
  MLIRContext *context = kernel->getContext();
  StringRef name = SymbolTable::getSymbolName(kernel).getValue();
  FunctionType type = FunctionType::get(context, getArgumentTypes(kernel), {});
  func::FuncOp function =
      func::FuncOp::create(builder, kernel->getLoc(), name, type);
  for (unsigned i = 0; i < type.getNumInputs(); ++i)
    if (isa<LLVM::LLVMPointerType>(type.getInput(i)))
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                          builder.getUnitAttr());
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  Emitter emitter(kernel->getLoc(), builder, /*addressSpace=*/0);
  if (failed(emitBody(emitter, kernel, entry->getArguments(), width)))
    return failure();
  func::ReturnOp::create(emitter);
  kernel->erase();
  return success();
}

namespace {

class KernelsToLoops
    : public dfa::impl::DfaConvertKernelsToLoopsBase<KernelsToLoops> {
public:
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!llvm::isPowerOf2_32(vectorWidth) ||
        vectorWidth > DFA_RT_SEGMENT_COMBINE_COLUMNS) {
      module.emitError("expects a vector-width that is a power of two up to ")
          << DFA_RT_SEGMENT_COMBINE_COLUMNS << ", but got "
          << vectorWidth.getValue();
      return signalPassFailure();
    }
    SmallVector<Operation *> kernels;
    for (Operation &op : *module.getBody())
      if (isa<KernelOpInterface>(op))
        kernels.push_back(&op);
    for (Operation *kernel : kernels)
      if (failed(convert(kernel, vectorWidth)))
        return signalPassFailure();
  }
};

} // namespace
