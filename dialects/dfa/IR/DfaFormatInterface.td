// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a storage format must say of itself, so that ops and passes need not
// know which formats there are.

#ifndef DFA_IR_DFAFORMATINTERFACE_TD
#define DFA_IR_DFAFORMATINTERFACE_TD

include "mlir/IR/Interfaces.td"

def Dfa_StorageFormatInterface : AttrInterface<"StorageFormatInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{
    A storage format: the element types it stores an f32 in, and the side data
    that its elements need to be read - a scale for each block or parameter,
    say - with what each of them is taken over. Formats without side data are
    exact to decode and cost nothing to encode in the pass that makes the
    value; a statistic of a parameter needs a pass of its own before.
  }];
  let methods = [
    InterfaceMethod<"Element types of the stored arrays, in order.",
      "::llvm::SmallVector<::mlir::Type>", "getStoredElementTypes">,
    InterfaceMethod<"Side data, in order; none for most formats.",
      "::llvm::SmallVector<::mlir::dfa::SideData>", "getSideData">
  ];
}

#endif // DFA_IR_DFAFORMATINTERFACE_TD
