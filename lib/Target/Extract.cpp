// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module of kernels only.

#include "Extract.h"
#include "dfa/IR/Dfa.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::dfa;

OwningOpRef<ModuleOp> dfa::extractKernels(ModuleOp module,
                                          SmallVectorImpl<std::string> &names) {
  OwningOpRef<ModuleOp> copy = module.clone();
  for (Operation &op : llvm::make_early_inc_range(*copy->getBody())) {
    if (isa<KernelOpInterface>(op))
      names.push_back(SymbolTable::getSymbolName(&op).getValue().str());
    else if (isa<FunctionOpInterface>(op))
      op.erase();
  }
  return copy;
}

void dfa::eraseProgram(ModuleOp module) {
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa_and_nonnull<DfaDialect>(op.getDialect()))
      op.erase();
}
