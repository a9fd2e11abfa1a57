// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level B: the step, as values. Rules have a file of their own.

#ifndef DFA_IR_DFASTEPOPS_TD
#define DFA_IR_DFASTEPOPS_TD

include "dfa/IR/DfaBase.td"

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

class Dfa_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Dfa_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<Dfa_ElementwiseOpInterface,
                                  ["emitElement"]>], traits)>;

def Dfa_UnscaleOp : Dfa_ElementwiseOp<"unscale"> {
  let summary = "multiplies by one factor";
  let description = [{
    Widens the elements to f32 and multiplies them by a scalar (an f64 factor
    is rounded to f32 once). Costs nothing after fusion.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, bf16>, %s: f32)
        -> !dfa.flat<@l, @w, full, f32> {
      %u = dfa.unscale %g by %s
        : !dfa.flat<@l, @w, full, bf16>, f32 -> !dfa.flat<@l, @w, full, f32>
      return %u : !dfa.flat<@l, @w, full, f32>
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input, Dfa_Factor:$factor);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    $input `by` $factor attr-dict `:` type($input) `,` type($factor) `->`
    type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Dfa_ClipOp : Dfa_ElementwiseOp<"clip", [
    TypesMatchWith<"result has the input's type", "input", "result",
                   "$_self">]> {
  let summary = "scales down to a norm";
  let description = [{
    Multiplies by `dfa.clip_factor`, where `norm` is the norm of the input. A norm of nan or inf gives the factor 1: such a step is
    skipped or propagated, never scaled. With one norm a group or parameter
    each of them is clipped by its own.

    Example:

    ```mlir
    func.func @f(%u: !dfa.flat<@l, @w, full, f32>, %n: f64, %max: f64)
        -> !dfa.flat<@l, @w, full, f32> {
      %c = dfa.clip %u with %n to %max
        : !dfa.flat<@l, @w, full, f32>, f64, f64
      return %c : !dfa.flat<@l, @w, full, f32>
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input, Dfa_Norm:$norm, F64:$max_norm);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    $input `with` $norm `to` $max_norm attr-dict `:` type($input) `,`
    type($norm) `,` type($max_norm)
  }];
  let hasVerifier = 1;
}

def Dfa_ClipValueOp : Dfa_ElementwiseOp<"clip_value", [
    TypesMatchWith<"result has the input's type", "input", "result",
                   "$_self">]> {
  let summary = "clamps each element to [-bound, bound]";
  let description = [{
    NaN stays NaN. `bound` is rounded to f32.

    Example:

    ```mlir
    func.func @f(%u: !dfa.flat<@l, @w, full, f32>, %b: f64)
        -> !dfa.flat<@l, @w, full, f32> {
      %c = dfa.clip_value %u to %b : !dfa.flat<@l, @w, full, f32>, f64
      return %c : !dfa.flat<@l, @w, full, f32>
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input, Dfa_Factor:$bound);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    $input `to` $bound attr-dict `:` type($input) `,` type($bound)
  }];
  let hasVerifier = 1;
}

def Dfa_EncodeOp : Dfa_ElementwiseOp<"encode"> {
  let summary = "rounds to a storage format";
  let description = [{
    f32 to the format's stored elements, rounding to nearest even. `remainder`
    gives two results: bf16 rounded to nearest with ties away from zero, and
    the low 16 bits; together they hold the f32 exactly.

    Example:

    ```mlir
    func.func @f(%p: !dfa.flat<@l, @w, full, f32>)
        -> (!dfa.flat<@l, @w, full, bf16>, !dfa.flat<@l, @w, full, i16>) {
      %hi, %lo = dfa.encode remainder %p : !dfa.flat<@l, @w, full, f32>
        -> !dfa.flat<@l, @w, full, bf16>, !dfa.flat<@l, @w, full, i16>
      return %hi, %lo
        : !dfa.flat<@l, @w, full, bf16>, !dfa.flat<@l, @w, full, i16>
    }
    ```
  }];
  let arguments = (ins Dfa_FormatAttr:$format, Dfa_Flat:$input);
  let results = (outs Variadic<Dfa_Flat>:$stored);
  let assemblyFormat = [{
    custom<EnumWord>($format) $input attr-dict `:` type($input) `->`
    type($stored)
  }];
  let hasVerifier = 1;
}

def Dfa_DecodeOp : Dfa_ElementwiseOp<"decode"> {
  let summary = "widens from a storage format";
  let description = [{
    The inverse of `dfa.encode`; exact for every format.

    Example:

    ```mlir
    func.func @f(%m: !dfa.flat<@l, @w, full, bf16>)
        -> !dfa.flat<@l, @w, full, f32> {
      %w = dfa.decode bf16 %m : !dfa.flat<@l, @w, full, bf16>
        -> !dfa.flat<@l, @w, full, f32>
      return %w : !dfa.flat<@l, @w, full, f32>
    }
    ```
  }];
  let arguments = (ins Dfa_FormatAttr:$format,
                       Variadic<Dfa_Flat>:$stored);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    custom<EnumWord>($format) $stored attr-dict `:` type($stored) `->`
    type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dfa_AccumulateOp : Dfa_ElementwiseOp<"accumulate", [
    AllTypesMatch<["bucket", "result"]>]> {
  let summary = "copies or adds a gradient contribution";
  let description = [{
    The first contribution since `dfa.zero_grad` copies, later ones add (in
    f32, rounded to the bucket's format). Which, the device decides by the
    segment's generation, so it is right in replays.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, bf16>,
                 %b: !dfa.flat<@l, @w, full, f32>)
        -> !dfa.flat<@l, @w, full, f32> {
      %r = dfa.accumulate %g into %b
        : !dfa.flat<@l, @w, full, bf16>, !dfa.flat<@l, @w, full, f32>
      return %r : !dfa.flat<@l, @w, full, f32>
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input, Dfa_Flat:$bucket);
  let results = (outs Dfa_Flat:$result);
  let assemblyFormat = [{
    $input `into` $bucket attr-dict `:` type($input) `,` type($bucket)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def Dfa_NormPartialOp : Dfa_Op<"norm_partial", [Pure]> {
  let summary = "this rank's part of a norm";
  let description = [{
    f64 accumulation over fixed atoms in a fixed tree: sum of |x| (l1), x^2
    (l2), |x|^p (lp) or the largest |x| (inf, nan if there is one).

    Example:

    ```mlir
    func.func @f(%u: !dfa.flat<@l, @w, full, f32>) -> f64 {
      %a = dfa.norm_partial %u
        : !dfa.flat<@l, @w, full, f32> -> !dfa.partial<l2, whole>
      %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
      return %n : f64
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input);
  let results = (outs Dfa_Partial:$result);
  let assemblyFormat =
    "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Dfa_NonFiniteOp : Dfa_Op<"non_finite", [Pure]> {
  let summary = "whether any element is inf or nan";
  let description = [{
    Exact: looks at elements, not at a norm.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>) -> i1 {
      %a = dfa.non_finite %g
        : !dfa.flat<@l, @w, full, f32> -> !dfa.partial<flag, whole>
      %i = dfa.flag_finish %a : !dfa.partial<flag, whole> -> i1
      return %i : i1
    }
    ```
  }];
  let arguments = (ins Dfa_Flat:$input);
  let results = (outs Dfa_Partial:$result);
  let assemblyFormat =
    "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Dfa_CombineOp : Dfa_Op<"combine", [Pure, SameOperandsAndResultType]> {
  let summary = "combines partials of classes, and of ranks";
  let description = [{
    Adds (or takes the maximum of) partials of several classes; with `over`
    also those of the ranks on the named axes, in rank order. All combines
    that are ready together become one small collective.

    Example:

    ```mlir
    func.func @f(%a: !dfa.partial<l2, whole>, %b: !dfa.partial<l2, whole>)
        -> !dfa.partial<l2, whole> {
      %c = dfa.combine %a, %b over ["shard"] : !dfa.partial<l2, whole>
      return %c : !dfa.partial<l2, whole>
    }
    ```
  }];
  let arguments = (ins Variadic<Dfa_Partial>:$partials,
                       OptionalAttr<StrArrayAttr>:$axes);
  let results = (outs Dfa_Partial:$result);
  let assemblyFormat =
    "$partials (`over` $axes^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dfa_NormFinishOp : Dfa_Op<"norm_finish", [Pure,
    DeclareOpInterfaceMethods<Dfa_ScalarOpInterface>]> {
  let summary = "the norm: the root of the combined partials";
  let description = [{
    Example: see `dfa.norm_partial`; one norm a parameter:

    ```mlir
    func.func @f(%a: !dfa.partial<l2, param>) -> !dfa.per<param, f64> {
      %n = dfa.norm_finish %a
        : !dfa.partial<l2, param> -> !dfa.per<param, f64>
      return %n : !dfa.per<param, f64>
    }
    ```
  }];
  let arguments = (ins Dfa_Partial:$partial);
  let results = (outs Dfa_Norm:$result);
  let assemblyFormat =
    "$partial attr-dict `:` type($partial) `->` type($result)";
  let hasVerifier = 1;
}

def Dfa_FlagFinishOp : Dfa_Op<"flag_finish", [Pure,
    DeclareOpInterfaceMethods<Dfa_ScalarOpInterface>]> {
  let summary = "the flag of the combined partials";
  let description = [{
    Example: see `dfa.non_finite`.

    ```mlir
    func.func @f(%a: !dfa.partial<flag, whole>) -> i1 {
      %i = dfa.flag_finish %a : !dfa.partial<flag, whole> -> i1
      return %i : i1
    }
    ```
  }];
  let arguments = (ins Dfa_Partial:$partial);
  let results = (outs I1:$result);
  let assemblyFormat =
    "$partial attr-dict `:` type($partial) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Scalars and control
//===----------------------------------------------------------------------===//

def Dfa_GradFactorOp : Dfa_Op<"grad_factor", [Pure,
    DeclareOpInterfaceMethods<Dfa_ControlOpInterface>]> {
  let summary = "the factor from raw to wanted gradients: average / scale";
  let description = [{
    Example:

    ```mlir
    func.func @f(%ctl: !dfa.control) -> f64 {
      %s = dfa.grad_factor %ctl : f64
      return %s : f64
    }
    ```
  }];
  let arguments = (ins Dfa_ControlType:$control);
  let results = (outs F64:$result);
  let assemblyFormat = "$control attr-dict `:` type($result)";
}

def Dfa_ReadOp : Dfa_Op<"read", [Pure,
    DeclareOpInterfaceMethods<Dfa_ControlOpInterface>]> {
  let summary = "reads a field of the control block";
  let description = [{
    Example:

    ```mlir
    func.func @f(%ctl: !dfa.control) -> f64 {
      %max = dfa.read %ctl["max_norm"] : f64
      return %max : f64
    }
    ```
  }];
  let arguments = (ins Dfa_ControlType:$control, StrAttr:$field);
  let results = (outs Dfa_Scalar:$result);
  let assemblyFormat =
    "$control `[` $field `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dfa_WriteOp : Dfa_Op<"write", [Pure,
    DeclareOpInterfaceMethods<Dfa_ControlOpInterface>,
    AllTypesMatch<["control", "result"]>]> {
  let summary = "sets a field of the control block";
  let description = [{
    Returns the new control value. A field of type i32 takes an i1 too.

    Example:

    ```mlir
    func.func @f(%ctl: !dfa.control, %n: f64) -> !dfa.control {
      %new = dfa.write %n, %ctl["norm"] : f64
      return %new : !dfa.control
    }
    ```
  }];
  let arguments = (ins Dfa_Scalar:$value, Dfa_ControlType:$control,
                       StrAttr:$field);
  let results = (outs Dfa_ControlType:$result);
  let assemblyFormat =
    "$value `,` $control `[` $field `]` attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Dfa_ScalerUpdateOp : Dfa_Op<"scaler_update", [Pure,
    DeclareOpInterfaceMethods<Dfa_ControlOpInterface>,
    AllTypesMatch<["control", "result"]>]> {
  let summary = "loss-scale update: growth, backoff, hysteresis";
  let description = [{
    With the flag set: the hysteresis tracker goes down by one; at zero (or
    below) scale *= backoff_factor. The growth tracker restarts. Without it: the
    growth tracker goes up; at growth_interval the scale grows by
    growth_factor - unless the product is not finite - the growth tracker
    restarts and the hysteresis tracker returns to `hysteresis`.

    Example:

    ```mlir
    func.func @f(%ctl: !dfa.control, %inf: i1) -> !dfa.control {
      %new = dfa.scaler_update %ctl, %inf
      return %new : !dfa.control
    }
    ```
  }];
  let arguments = (ins Dfa_ControlType:$control, I1:$found_inf);
  let results = (outs Dfa_ControlType:$result);
  let assemblyFormat = "$control `,` $found_inf attr-dict";
}

def Dfa_StepCountOp : Dfa_Op<"step_count", [Pure,
    DeclareOpInterfaceMethods<Dfa_ControlOpInterface>,
    AllTypesMatch<["control", "result"]>]> {
  let summary = "counts the step, or the skip";
  let description = [{
    `step` goes up by one, or, with the flag set, `skipped` does; `found_inf`
    keeps the flag. Step counts of parameters are part of their update.

    Example:

    ```mlir
    func.func @f(%ctl: !dfa.control, %inf: i1) -> !dfa.control {
      %new = dfa.step_count %ctl unless %inf
      return %new : !dfa.control
    }
    ```
  }];
  let arguments = (ins Dfa_ControlType:$control, Optional<I1>:$found_inf);
  let results = (outs Dfa_ControlType:$result);
  let assemblyFormat = "$control (`unless` $found_inf^)? attr-dict";
}

def Dfa_ZeroGradOp : Dfa_Op<"zero_grad", [
    DeclareOpInterfaceMethods<Dfa_ControlOpInterface>,
    AllTypesMatch<["control", "result"]>]> {
  let summary = "forgets the gradients";
  let description = [{
    `generation` moves no bytes: the next contribution copies instead of
    adding. `memset` also writes zeros, for gradients that the user sees.

    Example:

    ```mlir
    func.func @f(%ctl: !dfa.control, %g: !dfa.flat<@l, @w, full, f32>)
        -> !dfa.control {
      %new = dfa.zero_grad memset %ctl, %g : !dfa.flat<@l, @w, full, f32>
      return %new : !dfa.control
    }
    ```
  }];
  let arguments = (ins Dfa_ZeroModeAttr:$mode, Dfa_ControlType:$control,
                       Variadic<Dfa_Flat>:$grads);
  let results = (outs Dfa_ControlType:$result);
  let assemblyFormat = [{
    custom<EnumWord>($mode) $control (`,` $grads^ `:` type($grads))?
    attr-dict
  }];
  let hasVerifier = 1;
}

def Dfa_ClipFactorOp : Dfa_Op<"clip_factor", [Pure,
    DeclareOpInterfaceMethods<Dfa_ScalarOpInterface>,
    AllTypesMatch<["norm", "result"]>]> {
  let summary = "the factor that clips to a norm";
  let description = [{
    min(1, max_norm / (norm + 1e-6)) in f64; 1 for a norm of nan or inf.

    Example:

    ```mlir
    func.func @f(%n: f64, %max: f64) -> f64 {
      %c = dfa.clip_factor %n to %max : f64
      return %c : f64
    }
    ```
  }];
  let arguments = (ins Dfa_Norm:$norm, F64:$max_norm);
  let results = (outs Dfa_Norm:$result);
  let assemblyFormat = "$norm `to` $max_norm attr-dict `:` type($result)";
}

def Dfa_TrustRatioOp : Dfa_Op<"trust_ratio", [Pure,
    DeclareOpInterfaceMethods<Dfa_ScalarOpInterface>,
    AllTypesMatch<["param_norm", "update_norm", "result"]>]> {
  let summary = "quotient of two norms, 1 where one is zero";
  let description = [{
    LAMB's phi(|p|) / |u| with the identity as phi; 1 if either norm is 0.
    Source: You et al., arXiv:1904.00962, algorithm 2.

    Example:

    ```mlir
    func.func @f(%p: !dfa.per<param, f64>, %u: !dfa.per<param, f64>)
        -> !dfa.per<param, f64> {
      %r = dfa.trust_ratio %p, %u : !dfa.per<param, f64>
      return %r : !dfa.per<param, f64>
    }
    ```
  }];
  let arguments = (ins Dfa_Per:$param_norm, Dfa_Per:$update_norm);
  let results = (outs Dfa_Per:$result);
  let assemblyFormat =
    "$param_norm `,` $update_norm attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

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
    type($input) `->` type($result)
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
    type($input)
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
    $input `over` $axis attr-dict `:` type($input) `->` type($result)
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
    $input `from` $root `over` $axis attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

#endif // DFA_IR_DFASTEPOPS_TD
