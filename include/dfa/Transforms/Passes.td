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
    dfa.layout @l {
      dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
      dfa.param "a" : tensor<2x3xf32>, order = [1, 0], class = @w, group = 0
      dfa.param "b" : tensor<40xf32>, class = @w, group = 0
    }
    ```

    After:

    ```mlir
    dfa.layout @l {
      dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
        {buckets = 1 : i64, elements = 46 : i64, padded = 96 : i64,
         shard = 96 : i64}
      dfa.param "a" : tensor<2x3xf32>, order = [1, 0], class = @w, group = 0
        {bucket = 0 : i64, start = 64 : i64}
      dfa.param "b" : tensor<40xf32>, class = @w, group = 0
        {bucket = 0 : i64, start = 0 : i64}
    }
    ```
  }];
}

def DfaVerifyStep : Pass<"dfa-verify-step", "::mlir::ModuleOp"> {
  let summary = "Checks what one op cannot: roles, layouts, combined partials";
  let description = [{
    Closes levels A and B. The function named `step` has: values whose layout
    and class exist; one role an argument, each role once a class, in the format
    that the class has for it; result roles whose type agrees with the argument
    of that role; partials of shards that are combined over the shard axis before
    they are finished; and one chain of control values that ends in a result.

    Precondition: ops that verify by themselves. Postcondition: the passes below
    may take all of this for granted. Limits: it does not ask whether the step
    makes sense, such as a norm taken over replicas.

    Changes nothing. A step that passes:

    ```mlir
    dfa.layout @l {
      dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
    }
    func.func @step(
        %g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"},
        %p: !dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
        %ctl: !dfa.control {dfa.role = "control"})
        -> (!dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
            !dfa.control {dfa.role = "control"}) {
      %r = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p : !dfa.flat<@l, @w, full, f32>) control(%ctl)
        -> !dfa.flat<@l, @w, full, f32>
      %k = dfa.step_count %ctl
      return %r, %k : !dfa.flat<@l, @w, full, f32>, !dfa.control
    }
    ```
  }];
}

def DfaGeneralizeRules : Pass<"dfa-generalize-rules", "::mlir::ModuleOp"> {
  let summary = "Writes named rules as dfa.update";
  let description = [{
    Replaces every op that implements `RuleOpInterface` by its generic form.

    Precondition: level B. Postcondition: no such op is left; nothing after
    this pass knows a rule by name. Limits: none; the trees are fixed, and
    `docs/rules.md` shows each.

    Before:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control)
        -> !dfa.flat<@l, @w, full, f32> {
      %r = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p : !dfa.flat<@l, @w, full, f32>) control(%ctl)
        -> !dfa.flat<@l, @w, full, f32>
      return %r : !dfa.flat<@l, @w, full, f32>
    }
    ```

    After:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control)
        -> !dfa.flat<@l, @w, full, f32> {
      %r = dfa.update ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p : !dfa.flat<@l, @w, full, f32>) control(%ctl)
        hyper ["lr", "weight_decay"] derive {
      ^bb0(%step: i64, %lr: f64, %weight_decay: f64):
        %rate = arith.truncf %lr : f64 to f32
        %decay = arith.truncf %weight_decay : f64 to f32
        dfa.yield %rate, %decay : f32, f32
      } apply {
      ^bb0(%ge: f32, %pe: f32, %rate: f32, %decay: f32):
        %decayed = math.fma %decay, %pe, %ge : f32
        %back = arith.negf %rate : f32
        %new = math.fma %back, %decayed, %pe : f32
        dfa.yield %new : f32
      } : !dfa.flat<@l, @w, full, f32>
      return %r : !dfa.flat<@l, @w, full, f32>
    }
    ```
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
    where they are used. A remark says where (`deferred`), and which norm still
    sees scaled values and why (`scaled-norm`).

    Precondition: level B. Postcondition: no `dfa.clip`. Limits: factors that
    differ by group or parameter and whole-step ones stay apart; the factor moves
    past a norm only if all partials of that norm have the same one and nothing
    else uses them.

    Before:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, bf16>, %s: f64, %max: f64)
        -> !dfa.flat<@l, @w, full, f32> {
      %u = dfa.unscale %g by %s
        : !dfa.flat<@l, @w, full, bf16>, f64 -> !dfa.flat<@l, @w, full, f32>
      %a = dfa.norm_partial %u
        : !dfa.flat<@l, @w, full, f32> -> !dfa.partial<l2, whole>
      %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
      %c = dfa.clip %u with %n to %max : !dfa.flat<@l, @w, full, f32>, f64, f64
      return %c : !dfa.flat<@l, @w, full, f32>
    }
    ```

    After:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, bf16>, %s: f64, %max: f64)
        -> !dfa.flat<@l, @w, full, f32> {
      %a = dfa.norm_partial %g
        : !dfa.flat<@l, @w, full, bf16> -> !dfa.partial<l2, whole>
      %r = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
      %m = math.absf %s : f64
      %n = arith.mulf %r, %m : f64
      %f = dfa.clip_factor %n to %max : f64
      %k = arith.mulf %s, %f : f64
      %c = dfa.unscale %g by %k
        : !dfa.flat<@l, @w, full, bf16>, f64 -> !dfa.flat<@l, @w, full, f32>
      return %c : !dfa.flat<@l, @w, full, f32>
    }
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
    (once) and segment kernels (once a parameter). The accumulation of gradients
    is an entry of its own, `fill`, which runs once a contribution.

    Each decision is a remark: `passed` for what was fused and shared, `missed`
    for what was declined, with the reason.

    Precondition: what `dfa-verify-step` checks, no named rules
    (`dfa-generalize-rules`) and no `dfa.clip` (`dfa-defer-factors`).
    Postcondition: no step function is left; level C. Limits, each a located
    error: a value that is needed after the arrays it is made of were overwritten
    would need a buffer of its own; norms and flags that are ready together are
    combined over one axis; norms of single parameters over ranks are gathered
    for all parameters of the class; updates of one class share one `unless`
    flag; at most 32 scalars wait between kernels.

    Before:

    ```mlir
    func.func @step(
        %g: !dfa.flat<@l, @w, full, bf16> {dfa.role = "grad"},
        %p: !dfa.flat<@l, @w, full, f32> {dfa.role = "master"},
        %ctl: !dfa.control {dfa.role = "control"})
        -> (!dfa.flat<@l, @w, full, f32> {dfa.role = "master"},
            !dfa.flat<@l, @w, full, bf16> {dfa.role = "param"}) {
      %s = dfa.grad_factor %ctl : f64
      %u = dfa.unscale %g by %s
        : !dfa.flat<@l, @w, full, bf16>, f64 -> !dfa.flat<@l, @w, full, f32>
      %new = dfa.update ins(%u : !dfa.flat<@l, @w, full, f32>)
        outs(%p : !dfa.flat<@l, @w, full, f32>) control(%ctl) hyper ["lr"]
        derive {
      ^bb0(%step: i64, %lr: f64):
        %rate = arith.truncf %lr : f64 to f32
        dfa.yield %rate : f32
      } apply {
      ^bb0(%ge: f32, %pe: f32, %rate: f32):
        %d = arith.mulf %rate, %ge : f32
        %n = arith.subf %pe, %d : f32
        dfa.yield %n : f32
      } : !dfa.flat<@l, @w, full, f32>
      %o = dfa.encode bf16 %new
        : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, bf16>
      return %new, %o
        : !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, bf16>
    }
    ```

    After, with canonicalization:

    ```mlir
    dfa.kernel @update_w on @l::@w
        arrays [#dfa.array<"grad", bf16, read>,
                #dfa.array<"master", f32, readwrite>,
                #dfa.array<"param", bf16, write>] accumulators [] uniform {
      %c0_i32 = arith.constant 0 : i32
      %word = dfa.load_segment active : i32
      %run = arith.cmpi ne, %word, %c0_i32 : i32
      %factor = dfa.load_derived 0 : f32
      %rate = dfa.load_derived 1 : f32
      dfa.yield %run, %factor, %rate : i1, f32, f32
    } body {
    ^bb0(%factor: f32, %rate: f32, %grad: bf16, %master: f32):
      %wide = arith.extf %grad : bf16 to f32
      %u = arith.mulf %wide, %factor : f32
      %d = arith.mulf %rate, %u : f32
      %new = arith.subf %master, %d : f32
      %o = arith.truncf %new : f32 to bf16
      dfa.yield %new, %o : f32, bf16
    }
    dfa.segment_kernel @segments_w on @l::@w accumulators [] {
      %c0_i32 = arith.constant 0 : i32
      %c1_i64 = arith.constant 1 : i64
      %factor = dfa.load_scratch 0 : f64
      %factor32 = arith.truncf %factor : f64 to f32
      dfa.store_derived 0, %factor32 : f32
      %applied = dfa.load_segment step : i64
      %step = arith.addi %applied, %c1_i64 : i64
      %lr = dfa.load_hyper "lr" at 0 : f64
      %rate = arith.truncf %lr : f64 to f32
      dfa.store_derived 1, %rate : f32
      %word = dfa.load_segment active : i32
      %run = arith.cmpi ne, %word, %c0_i32 : i32
      %kept = arith.select %run, %step, %applied : i64
      dfa.store_segment step, %kept : i64
      dfa.yield
    }
    dfa.control_kernel @control accumulators [] {
      %scale = dfa.load_control "scale" : f32
      %average = dfa.load_control "average" : f64
      %wide = arith.extf %scale : f32 to f64
      %factor = arith.divf %average, %wide : f64
      dfa.store_scratch 0, %factor : f64
      dfa.yield
    }
    dfa.control_kernel @zero_grad accumulators [] {
      %c1_i32 = arith.constant 1 : i32
      %generation = dfa.load_control "generation" : i32
      %next = arith.addi %generation, %c1_i32 : i32
      dfa.store_control "generation", %next : i32
      dfa.yield
    }
    dfa.program @step on @l hyper ["lr"] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "master", "param"]
        types [bf16, f32, bf16] parts [full, full, full] derived 2
      dfa.entry finish {
        dfa.upload "segments"
        dfa.upload "groups"
        dfa.launch_control @control mode whole acc 0
        dfa.record "e0" on compute
        dfa.wait "e0" on side
        dfa.read_back on side
        dfa.launch_segments @segments_w on @w acc 0
        dfa.launch_elements @update_w on @w over chunks acc 0
        dfa.record "e1" on side
        dfa.wait "e1" on compute
      }
      dfa.entry zero_grad {
        dfa.launch_control @zero_grad mode whole acc 0
      }
    }
    ```
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

    Precondition: ops that verify by themselves. Postcondition: the program can
    be compiled and executed. Limits: a kernel that is compiled already is not
    looked into, so it runs before the conversions.

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

    Precondition: level C. Postcondition: none beyond the proof. Limits: it
    vouches for the program; drivers and libraries are checked when the runtime
    prepares it.

    Changes nothing. `test/Transforms/verify-capturable.mlir` has a program for
    each reason.
  }];
}

#endif // DFA_TRANSFORMS_PASSES_TD
