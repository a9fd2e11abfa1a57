// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interfaces through which passes see ops, so that no pass knows a rule.

#ifndef DFA_IR_DFAINTERFACES_TD
#define DFA_IR_DFAINTERFACES_TD

include "mlir/IR/OpBase.td"

def Dfa_RuleOpInterface : OpInterface<"RuleOpInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{
    A named update rule: an op that can be written as generic ops
    (`dfa.update` and, where a rule needs norms of its own, reductions).
  }];
  let methods = [
    InterfaceMethod<
      "Names of the hyper-parameters it reads, in the order of use.",
      "::llvm::SmallVector<::llvm::StringRef>", "getHyperNames">,
    InterfaceMethod<
      "Builds the generic form before this op; returns one value a result.",
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder)>
  ];
}

def Dfa_ElementwiseOpInterface : OpInterface<"ElementwiseOpInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{
    An op on `!dfa.flat` values whose result element i depends on element i
    of the flat operands and on scalars only. Fusion is free to compute it
    anywhere, several times, next to its users.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the scalar computation of one element. `elements` are the values
      of the flat operands, in operand order; `scalars` the values of the
      other operands that `getUniformOperands` names, in its order. Returns
      one value a flat result.
    }],
      "::llvm::SmallVector<::mlir::Value>", "emitElement",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$elements,
           "::mlir::ValueRange":$scalars)>,
    InterfaceMethod<
      "Operands that are scalars or one scalar a group or parameter.",
      "::llvm::SmallVector<::mlir::Value>", "getUniformOperands",
      (ins), [{}], [{
        ::llvm::SmallVector<::mlir::Value> uniform;
        for (::mlir::Value v : $_op->getOperands())
          if (::mlir::isa<::mlir::FloatType, ::mlir::dfa::PerType>(v.getType()))
            uniform.push_back(v);
        return uniform;
      }]>,
    InterfaceMethod<[{
      Without this flag set on the device the op's results equal its
      destination operands (null: always applied).
    }],
      "::mlir::Value", "getUnlessFlag", (ins), [{}], [{ return {}; }]>
  ];
}

def Dfa_ReductionOpInterface : OpInterface<"ReductionOpInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{
    An op from one flat value to a partial: what each element contributes, and
    how contributions combine. Zero is the identity of both combinations.
  }];
  let methods = [
    InterfaceMethod<"How two accumulators become one.",
      "::mlir::dfa::Combine", "getCombine">,
    InterfaceMethod<"Emits one element's contribution, an f64.",
      "::mlir::Value", "emitContribution",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$element)>
  ];
}

def Dfa_ScalarOpInterface : OpInterface<"ScalarOpInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{
    An op on scalars, or on one scalar a group or parameter: the same
    computation once, or once a group or parameter.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the computation on plain scalars: one operand a operand of the op
      (an accumulator for a partial), one result a result.
    }],
      "::mlir::Value", "emitScalar",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>
  ];
}

def Dfa_ControlOpInterface : OpInterface<"ControlOpInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{
    An op that reads a control value or makes a new one.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the computation: reads and writes fields through `fields`, which
      stands for the control operand and then for the control result.
      `operands` are the values of the op's scalar operands, in order. Returns
      the scalar result, or null if the result is the new control value.
    }],
      "::mlir::Value", "emitControl",
      (ins "::mlir::OpBuilder &":$builder,
           "::mlir::dfa::ControlFields &":$fields,
           "::mlir::ValueRange":$operands)>
  ];
}

def Dfa_RecordableOpInterface : OpInterface<"RecordableOpInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{
    An op of a program that knows whether a device graph can record it. Ops
    without this interface are reported as not known to be recordable.
  }];
  let methods = [
    InterfaceMethod<
      "Why it cannot be recorded; an empty string if it can.",
      "::std::string", "whyNotRecordable">
  ];
}

def Dfa_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::mlir::dfa";
  let description = [{ A kernel: a symbol that a program launches. }];
  let methods = [
    InterfaceMethod<"Number of accumulator rows it writes or combines.",
      "unsigned", "getNumAccumulators">
  ];
}

#endif // DFA_IR_DFAINTERFACES_TD
