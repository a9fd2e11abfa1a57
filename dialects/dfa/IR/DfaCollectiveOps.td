// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level B: collectives on flat values.

#ifndef DFA_IR_DFACOLLECTIVEOPS_TD
#define DFA_IR_DFACOLLECTIVEOPS_TD

include "dfa/IR/DfaBase.td"

def Dfa_ReduceScatterOp : Dfa_Op<"reduce_scatter", [Pure]> {
  let summary = "reduces over an axis; each rank keeps its shard";
  let description = [{
    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, bf16>)
        -> !dfa.flat<@l, @w, shard, bf16> {
      %r = dfa.reduce_scatter sum %g over "shard"
        : !dfa.flat<@l, @w, full, bf16> -> !dfa.flat<@l, @w, shard, bf16>
      return %r : !dfa.flat<@l, @w, shard, bf16>
    }
    ```
  }];
  let arguments = (ins Dfa_ReductionAttr:$reduction, Dfa_Flat:$input,
                       StrAttr:$axis,
                       DefaultValuedAttr<Dfa_OrderAttr,
                                         "::mlir::dfa::Order::Any">:$order);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    custom<EnumWord>($reduction) $input `over` $axis attr-dict `:`
    qualified(type($input)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Dfa_AllReduceOp : Dfa_Op<"all_reduce", [Pure,
    AllTypesMatch<["input", "result"]>]> {
  let summary = "reduces over an axis; each rank gets the result";
  let description = [{
    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, shard, bf16>)
        -> !dfa.flat<@l, @w, shard, bf16> {
      %r = dfa.all_reduce sum %g over "replicate"
        : !dfa.flat<@l, @w, shard, bf16>
      return %r : !dfa.flat<@l, @w, shard, bf16>
    }
    ```
  }];
  let arguments = (ins Dfa_ReductionAttr:$reduction, Dfa_Flat:$input,
                       StrAttr:$axis,
                       DefaultValuedAttr<Dfa_OrderAttr,
                                         "::mlir::dfa::Order::Any">:$order);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    custom<EnumWord>($reduction) $input `over` $axis attr-dict `:`
    qualified(type($input))
  }];
  let hasVerifier = 1;
}

def Dfa_AllGatherOp : Dfa_Op<"all_gather", [Pure]> {
  let summary = "every rank gets all shards";
  let description = [{
    Example:

    ```mlir
    func.func @f(%p: !dfa.flat<@l, @w, shard, bf16>)
        -> !dfa.flat<@l, @w, full, bf16> {
      %r = dfa.all_gather %p over "shard"
        : !dfa.flat<@l, @w, shard, bf16> -> !dfa.flat<@l, @w, full, bf16>
      return %r : !dfa.flat<@l, @w, full, bf16>
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input, StrAttr:$axis);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    $input `over` $axis attr-dict `:` qualified(type($input)) `->`
    qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Dfa_BroadcastOp : Dfa_Op<"broadcast", [Pure,
    AllTypesMatch<["input", "result"]>]> {
  let summary = "every rank on an axis gets the elements of one";
  let description = [{
    Example:

    ```mlir
    func.func @f(%p: !dfa.flat<@l, @w, full, bf16>)
        -> !dfa.flat<@l, @w, full, bf16> {
      %r = dfa.broadcast %p from 0 over "replicate"
        : !dfa.flat<@l, @w, full, bf16>
      return %r : !dfa.flat<@l, @w, full, bf16>
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input, I64Attr:$root, StrAttr:$axis);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    $input `from` $root `over` $axis attr-dict `:` qualified(type($input))
  }];
  let hasVerifier = 1;
}

#endif // DFA_IR_DFACOLLECTIVEOPS_TD
