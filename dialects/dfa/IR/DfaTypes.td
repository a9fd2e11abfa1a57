// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of step values.

#ifndef DFA_IR_DFATYPES_TD
#define DFA_IR_DFATYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "dfa/IR/DfaEnums.td"

class Dfa_Type<string name, string typeMnemonic> : TypeDef<Dfa_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Dfa_FlatType : Dfa_Type<"Flat", "flat"> {
  let summary = "all elements of one class of a layout, as one vector";
  let description = [{
    The elements of all parameters of class `$cls` of `$layout`, in layout
    order: all of them (`full`) or the ones this rank owns (`shard`). The
    element type is that of the stored element; padding is not part of it.

    ```mlir
    !dfa.flat<@unet, @w, shard, f32>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$layout,
                        "::mlir::FlatSymbolRefAttr":$cls,
                        EnumParameter<Dfa_Part>:$part,
                        "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $layout `,` $cls `,` $part `,` $elementType `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same layout, class and part with another element type.
    FlatType withElementType(::mlir::Type type) const {
      return FlatType::get(getContext(), getLayout(), getCls(), getPart(),
                           type);
    }
    /// The same layout, class and element type, but another part.
    FlatType withPart(Part part) const {
      return FlatType::get(getContext(), getLayout(), getCls(), part,
                           getElementType());
    }
  }];
}

def Dfa_ControlType : Dfa_Type<"Control", "control"> {
  let summary = "the optimizer's control block, at one point of the step";
  let description = [{
    A value of this type is one state of the control block on the device
    (loss scale, flags, counters). Ops that change the block return a new
    value, so the order of changes is in the SSA graph.
  }];
}

def Dfa_PartialType : Dfa_Type<"Partial", "partial"> {
  let summary = "accumulators of a reduction, not finished yet";
  let description = [{
    f64 accumulators of one kind, for the whole optimizer, for each group or
    for each parameter. `order` is the p of an `lp` norm and absent elsewhere.

    ```mlir
    !dfa.partial<l2, whole>
    !dfa.partial<lp, param, 3.0>
    ```
  }];
  let parameters = (ins EnumParameter<Dfa_Accumulation>:$kind,
                        EnumParameter<Dfa_Scope>:$scope,
                        OptionalParameter<"::mlir::FloatAttr">:$order);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [TypeBuilder<(ins "Accumulation":$kind, "Scope":$scope), [{
    return $_get($_ctxt, kind, scope, ::mlir::FloatAttr());
  }]>];
}

def Dfa_PerType : Dfa_Type<"Per", "per"> {
  let summary = "one scalar for each group or parameter";
  let description = [{
    ```mlir
    !dfa.per<param, f64>
    ```
  }];
  let parameters = (ins EnumParameter<Dfa_Scope>:$scope,
                        "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $scope `,` $elementType `>`";
  let genVerifyDecl = 1;
}

#endif // DFA_IR_DFATYPES_TD
