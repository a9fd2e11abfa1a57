// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level A: what the model has and where it lives. Symbols, no SSA values.

#ifndef DFA_IR_DFALAYOUTOPS_TD
#define DFA_IR_DFALAYOUTOPS_TD

include "dfa/IR/DfaBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

def Dfa_MeshOp : Dfa_Op<"mesh", [Symbol]> {
  let summary = "the ranks, as a product of named axes";
  let description = [{
    Axes are listed slowest first: rank = (index on the first axis) * size of
    the rest + ... "Shard within the node, replicate across nodes" is
    `(replicate = nodes, shard = ranks per node)`. A transport restricts what
    may carry the collectives of an axis: `library` (the collective library of
    the target) or `peer` (memory mapped between ranks).

    Example:

    ```mlir
    dfa.mesh @dp(replicate = 2, shard = 8)
    dfa.mesh @node(shard = 8 via peer)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypedArrayAttrBase<Dfa_AxisAttr, "mesh axes">:$axes);
  let assemblyFormat = "$sym_name custom<Axes>($axes) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The axis called `name`, or null.
    AxisAttr getAxis(::llvm::StringRef name);
    /// The product of all axis sizes.
    int64_t getRanks();
  }];
}

def Dfa_LayoutOp : Dfa_Op<"layout", [
    Symbol, SymbolTable, NoTerminator, SingleBlock, IsolatedFromAbove,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "parameters, their classes and groups, and the buckets";
  let description = [{
    Holds `dfa.class`, `dfa.group` and `dfa.param` ops. `on` names the mesh
    whose `shard` axis cuts the buckets; without it there is one rank.
    `bucket_bytes` bounds a bucket, in bytes of the gradient format.

    Example:

    ```mlir
    dfa.mesh @dp(replicate = 2, shard = 8)
    dfa.layout @unet on @dp bucket_bytes = 104857600 {
      dfa.class @w param = bf16 grad = bf16 master = f32
        states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
      dfa.group 0 {lr = 1.0e-3, weight_decay = 1.0e-2}
      dfa.param "conv_in.weight" : tensor<320x4x3x3xbf16>,
        order = [0, 2, 3, 1], class = @w, group = 0
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<FlatSymbolRefAttr>:$mesh,
                       OptionalAttr<I64Attr>:$bucket_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`on` $mesh^)? (`bucket_bytes` `=` $bucket_bytes^)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The class called `name`, or null.
    ClassOp getClass(::llvm::StringRef name);
    /// The mesh it is on, or null.
    MeshOp getMeshOp();
  }];
}

def Dfa_ClassOp : Dfa_Op<"class", [Symbol, HasParent<"LayoutOp">]> {
  let summary = "what changes the code: formats, states and rule";
  let description = [{
    All parameters of a class share one kernel. `param` and `grad` are the
    formats the framework sees; `master` is the exact copy the rule updates
    (`none`: the parameter itself; `remainder`: bf16 parameter plus 16 bits).

    Example:

    ```mlir
    dfa.layout @l {
      dfa.class @w param = bf16 grad = bf16 master = remainder
        states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Dfa_FormatAttr:$param,
                       Dfa_FormatAttr:$grad, Dfa_FormatAttr:$master,
                       TypedArrayAttrBase<Dfa_StateAttr, "states">:$states,
                       Dfa_RuleAttr:$rule);
  let assemblyFormat = [{
    $sym_name `param` `=` custom<EnumWord>($param)
    `grad` `=` custom<EnumWord>($grad)
    `master` `=` custom<EnumWord>($master)
    `states` `=` custom<States>($states) `rule` `=` custom<EnumWord>($rule)
    attr-dict
  }];
  let hasVerifier = 1;
}

def Dfa_GroupOp : Dfa_Op<"group", [HasParent<"LayoutOp">]> {
  let summary = "initial hyper-parameters of one group";
  let description = [{
    Hyper-parameters are f64 on the device and may change between steps; these
    are the values before the first one. Names are those of the rules (`lr`,
    `beta1`, ...); a name that is absent has its rule's default.

    Example:

    ```mlir
    dfa.layout @l {
      dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8}
    }
    ```
  }];
  let arguments = (ins I64Attr:$index, DictionaryAttr:$hyper);
  let assemblyFormat = "$index $hyper attr-dict";
  let hasVerifier = 1;
}

def Dfa_ParamOp : Dfa_Op<"param", [HasParent<"LayoutOp">]> {
  let summary = "one parameter";
  let description = [{
    `type` has the logical shape; `order` lists the dims slowest first (absent:
    row-major), so `[0, 2, 3, 1]` is NHWC. Any permutation is legal.

    Example:

    ```mlir
    dfa.layout @l {
      dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
      dfa.param "conv.weight" : tensor<64x3x7x7xf32>, order = [0, 2, 3, 1],
        class = @w, group = 0
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, TypeAttrOf<AnyRankedTensor>:$type,
                       OptionalAttr<DenseI64ArrayAttr>:$order,
                       FlatSymbolRefAttr:$cls, I64Attr:$group);
  let assemblyFormat = [{
    $name `:` $type `,` (`order` `=` $order^ `,`)? `class` `=` $cls
    `,` `group` `=` $group attr-dict
  }];
  let hasVerifier = 1;
}

#endif // DFA_IR_DFALAYOUTOPS_TD
