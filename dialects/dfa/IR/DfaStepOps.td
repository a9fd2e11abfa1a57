// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level B: elementwise ops and reductions on flat values. Rules, control and
// collectives have files of their own.

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
    $input `by` $factor attr-dict `:` qualified(type($input)) `,`
    type($factor) `->` qualified(type($result))
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
    Multiplies by `dfa.clip_factor`, where `norm` is the norm of the input. A
    norm of nan or inf gives the factor 1: such a step is skipped or
    propagated, never scaled. With one norm a group or parameter
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
    $input `with` $norm `to` $max_norm attr-dict `:` qualified(type($input)) `,`
    qualified(type($norm)) `,` type($max_norm)
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
    $input `to` $bound attr-dict `:` qualified(type($input)) `,` type($bound)
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
    custom<EnumWord>($format) $input attr-dict `:` qualified(type($input)) `->`
    type($stored)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dfa_DecodeOp : Dfa_ElementwiseOp<"decode"> {
  let summary = "widens from a storage format";
  let description = [{
    The inverse of `dfa.encode`. Exact, but for f64, which is rounded to f32.

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
    qualified(type($result))
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
    segment's generation, so it is right in replays. Both operands are arguments
    of the step; this part of it runs once a contribution (entry `fill`).

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
    $input `into` $bucket attr-dict `:` qualified(type($input)) `,`
    qualified(type($bucket))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def Dfa_NormPartialOp : Dfa_Op<"norm_partial", [Pure,
    DeclareOpInterfaceMethods<Dfa_ReductionOpInterface>]> {
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
    "$input attr-dict `:` qualified(type($input)) `->` "
    "qualified(type($result))";
  let hasVerifier = 1;
}

def Dfa_NonFiniteOp : Dfa_Op<"non_finite", [Pure,
    DeclareOpInterfaceMethods<Dfa_ReductionOpInterface>]> {
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
    "$input attr-dict `:` qualified(type($input)) `->` "
    "qualified(type($result))";
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
    "$partials (`over` $axes^)? attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dfa_NormFinishOp : Dfa_Op<"norm_finish", [Pure,
    DeclareOpInterfaceMethods<Dfa_ScalarOpInterface>]> {
  let summary = "the norm: the root of the combined partials";
  let description = [{
    For the whole optimizer it is an f64; here one norm a parameter.

    Example:

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
    "$partial attr-dict `:` qualified(type($partial)) `->` "
    "qualified(type($result))";
  let hasVerifier = 1;
}

def Dfa_FlagFinishOp : Dfa_Op<"flag_finish", [Pure,
    DeclareOpInterfaceMethods<Dfa_ScalarOpInterface>]> {
  let summary = "the flag of the combined partials";
  let description = [{
    Example:

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
    "$partial attr-dict `:` qualified(type($partial)) `->` type($result)";
  let hasVerifier = 1;
}

#endif // DFA_IR_DFASTEPOPS_TD
