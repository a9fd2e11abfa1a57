// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes that are more than one enumeration value.

#ifndef DFA_IR_DFAATTRS_TD
#define DFA_IR_DFAATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "dfa/IR/DfaEnums.td"

class Dfa_Attr<string name, string attrMnemonic>
    : AttrDef<Dfa_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Dfa_AxisAttr : Dfa_Attr<"Axis", "axis"> {
  let summary = "one axis of a mesh";
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size,
                        EnumParameter<Dfa_Transport>:$transport);
  let assemblyFormat = "`<` $name `,` $size `,` $transport `>`";
}

def Dfa_StateAttr : Dfa_Attr<"State", "state"> {
  let summary = "name and storage format of one optimizer state";
  let parameters = (ins "::mlir::StringAttr":$name,
                        EnumParameter<Dfa_Format>:$format);
  let assemblyFormat = "`<` $name `,` $format `>`";
}

def Dfa_KernelArrayAttr : Dfa_Attr<"KernelArray", "array"> {
  let summary = "one array that a kernel touches, and how";
  let description = [{
    `name` is the role of the array in the class (`grad`, `master`, ...),
    `type` its stored element type.

    ```mlir
    #dfa.array<"exp_avg", f32, readwrite>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::Type":$type,
                        EnumParameter<Dfa_Access>:$access);
  let assemblyFormat = "`<` $name `,` $type `,` $access `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isRead() const { return getAccess() != Access::Write; }
    bool isWritten() const { return getAccess() != Access::Read; }
  }];
}

#endif // DFA_IR_DFAATTRS_TD
