// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect itself. Types, attributes and ops have files of their own.

#ifndef DFA_IR_DFADIALECT_TD
#define DFA_IR_DFADIALECT_TD

include "mlir/IR/OpBase.td"

def Dfa_Dialect : Dialect {
  let name = "dfa";
  let cppNamespace = "::mlir::dfa";
  let summary = "Optimizer steps: what follows the backward pass.";
  let description = [{
    The dialect describes the tail of a training step - unscale, non-finite
    check, norm, clip, update, loss-scale update, collectives, zero-grad - at
    three levels:

    - A: *what the model has and where it lives*: symbols only
      (`dfa.mesh`, `dfa.layout`, `dfa.class`, `dfa.group`, `dfa.param`).
    - B: *the step, as values*: what each rank does, on `!dfa.flat` values.
    - C: *kernels and the program*: `dfa.kernel`, `dfa.control_kernel`,
      `dfa.segment_kernel`, and the `dfa.program` that launches them.

    `dialects/dfa/README.md` has the invariants of each level and the reasons.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"
  ];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

#endif // DFA_IR_DFADIALECT_TD
