// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes from level B to level C. Each has a file of its own name in
// lib/Dialect/Dfa/Transforms and in test/Transforms.

#ifndef DFA_TRANSFORMS_PASSES_TD
#define DFA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DfaAssignLayout : Pass<"dfa-assign-layout", "::mlir::ModuleOp"> {
  let summary = "Places parameters into buckets";
  let description = [{
    Computes, with the runtime's own layout library, where each parameter of
    each `dfa.layout` lies, and leaves it as attributes: `bucket` and `start`
    (elements) on `dfa.param`; `elements`, `padded`, `buckets` and `shard` (of
    the bucket sums, in elements) on `dfa.class`.

    Precondition: a verified level A. Postcondition: every `dfa.param` has a
    place. Limits: one plan a layout; the fill order is the reverse of the
    listed order.

    Before:

    ```mlir
    dfa.param "b" : tensor<3xf32>, class = @w, group = 0
    ```

    After:

    ```mlir
    dfa.param "b" : tensor<3xf32>, class = @w, group = 0
      {bucket = 0 : i64, start = 0 : i64}
    ```
  }];
}

def DfaVerifyStep : Pass<"dfa-verify-step", "::mlir::ModuleOp"> {
  let summary = "Checks what one op cannot: roles, layouts, combined partials";
  let description = [{
    Closes levels A and B. Every function named `step` has: values whose
    layout and class exist; one role an argument, each role once a class;
    result roles whose type agrees with the argument of that role; partials of
    shards that are combined over the shard axis before they are finished; and
    one chain of control values that ends in a result.

    Changes nothing.
  }];
}

def DfaGeneralizeRules : Pass<"dfa-generalize-rules", "::mlir::ModuleOp"> {
  let summary = "Writes named rules as dfa.update";
  let description = [{
    Replaces every op that implements `RuleOpInterface` by its generic form.

    Precondition: level B. Postcondition: no such op is left; nothing after
    this pass knows a rule by name. `docs/rules.md` shows each result.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def DfaDeferFactors : Pass<"dfa-defer-factors", "::mlir::ModuleOp"> {
  let summary = "Makes unscale, average and clip one factor";
  let description = [{
    - `dfa.clip` becomes a multiplication by `dfa.clip_factor`;
    - a multiplication of a multiplication becomes one, by the product in f64;
    - a norm of scaled values becomes the norm of the values, times the
      absolute factor;
    - a non-finite check looks through multiplications.

    So gradients are read as they came, multiplied once, by one f32 factor,
    where they are used. Factors that differ by parameter and whole-step ones
    stay apart.

    Before:

    ```mlir
    %u = dfa.unscale %g by %s : !dfa.flat<@l, @w, full, bf16>, f64
      -> !dfa.flat<@l, @w, full, f32>
    %a = dfa.norm_partial %u : !dfa.flat<@l, @w, full, f32>
      -> !dfa.partial<l2, whole>
    %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
    %c = dfa.clip %u with %n to %max : !dfa.flat<@l, @w, full, f32>, f64, f64
    ```

    After:

    ```mlir
    %a = dfa.norm_partial %g : !dfa.flat<@l, @w, full, bf16>
      -> !dfa.partial<l2, whole>
    %r = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
    %m = math.absf %s : f64
    %n = arith.mulf %r, %m : f64
    %f = dfa.clip_factor %n to %max : f64
    %k = arith.mulf %s, %f : f64
    %c = dfa.unscale %g by %k : !dfa.flat<@l, @w, full, bf16>, f64
      -> !dfa.flat<@l, @w, full, f32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def DfaFormKernels : Pass<"dfa-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Fuses the step into kernels and makes the program";
  let description = [{
    The step function becomes kernels and a `dfa.program`. Between two global
    barriers (a norm or flag that is needed, a collective) all work on a class
    is one `dfa.kernel`, which reads every input once and writes every output
    once. Values that are needed on both sides of a barrier are computed again
    from arrays where that is possible. Scalar work becomes control kernels
    (once) and segment kernels (once a parameter).

    Each decision is a remark: `passed` for what was fused and shared, `missed`
    for what was declined, with the reason.

    Precondition: no named rules (`dfa-generalize-rules`). Postcondition: no
    step function is left; level C. Limits: a value that is needed after the
    arrays it is made of were overwritten needs a buffer of its own: this is
    an error at that value.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def DfaVerifyKernels : Pass<"dfa-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Checks level C: kernels, tables and commands fit together";
  let description = [{
    Every launched symbol is a kernel of the right kind; its arrays are those
    of the program's class, with the same types; slots, columns and
    accumulator rows are in range; collectives name arrays of their class;
    waits follow records; no step function and no level B op is left.

    Changes nothing.
  }];
}

def DfaVerifyCapturable : Pass<"dfa-verify-capturable", "::mlir::ModuleOp"> {
  let summary = "Proves the program recordable, or points at what is not";
  let description = [{
    An allow-list: every op in an entry of a `dfa.program` must implement
    `RecordableOpInterface` and have no reason against it. Reported, each at
    its place: reading back a device value, allocation, an unknown call, a
    module load, communicator creation, control flow on a loaded value, a
    scalar argument that may change between steps other than through device
    memory, a branch on the rank.

    It vouches for the program; drivers and libraries are checked when the
    runtime prepares it.
  }];
}

#endif // DFA_TRANSFORMS_PASSES_TD
