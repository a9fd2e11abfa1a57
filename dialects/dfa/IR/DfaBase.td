// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all op files share: the op base class and type constraints.

#ifndef DFA_IR_DFABASE_TD
#define DFA_IR_DFABASE_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dfa/IR/DfaAttrs.td"
include "dfa/IR/DfaEnums.td"
include "dfa/IR/DfaInterfaces.td"
include "dfa/IR/DfaTypes.td"

class Dfa_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dfa_Dialect, mnemonic, traits>;

// Constraints rather than the types themselves: so they print in full.
class Dfa_Is<TypeDef type>
    : Type<type.predicate, type.summary,
           "::mlir::dfa::" # type.cppClassName>;
def Dfa_Flat : Dfa_Is<Dfa_FlatType>;
def Dfa_Partial : Dfa_Is<Dfa_PartialType>;
def Dfa_Per : Dfa_Is<Dfa_PerType>;

/// One f64 a group or parameter.
def Dfa_PerF64
    : Type<And<[Dfa_PerType.predicate,
                CPred<"::llvm::cast<::mlir::dfa::PerType>($_self)"
                      ".getElementType().isF64()">]>,
           "one f64 for each group or parameter", "::mlir::dfa::PerType">;

/// A factor: a scalar on every rank, or one a group or parameter.
def Dfa_Factor : AnyTypeOf<[F32, F64, Dfa_Per], "factor">;

/// A norm: f64, or one f64 a group or parameter.
def Dfa_Norm : AnyTypeOf<[F64, Dfa_PerF64], "norm">;

/// A scalar of the step.
def Dfa_Scalar : AnyTypeOf<[F32, F64, I1, I32, I64], "scalar">;

#endif // DFA_IR_DFABASE_TD
