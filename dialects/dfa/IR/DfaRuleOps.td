// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level B: update rules, named and generic.

#ifndef DFA_IR_DFARULEOPS_TD
#define DFA_IR_DFARULEOPS_TD

include "dfa/IR/DfaBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Dfa_UpdateOp : Dfa_Op<"update", [
    Pure, AttrSizedOperandSegments, IsolatedFromAbove,
    SingleBlockImplicitTerminator<"YieldOp">,
    DeclareOpInterfaceMethods<Dfa_ElementwiseOpInterface,
      ["emitElement", "getUnlessFlag", "getUniformOperands"]>]> {
  let summary = "the generic update: scalar regions applied to each element";
  let description = [{
    `derive` runs once a parameter: from its step count (the number of this
    update, from 1), the f64 hyper-parameters of its group, and the `with`
    operands, it makes the f32 values that `apply` needs. `apply` runs once an
    element: its arguments are the elements of `ins` and `outs`, then the
    derived values; it yields the new elements of `outs`, then those of the
    results that have no destination.

    With the `unless` flag set, and for parameters without a gradient in this
    step, nothing changes and no step is counted. Both regions hold `arith`
    and `math` ops on scalars and `dfa.powi`, and see their arguments only;
    they are what `docs/rules.md` shows.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control)
        -> !dfa.flat<@l, @w, full, f32> {
      %new = dfa.update ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p : !dfa.flat<@l, @w, full, f32>) control(%ctl) hyper ["lr"]
        derive {
      ^bb0(%step: i64, %lr: f64):
        %s = arith.truncf %lr : f64 to f32
        dfa.yield %s : f32
      } apply {
      ^bb0(%ge: f32, %pe: f32, %se: f32):
        %d = arith.mulf %se, %ge : f32
        %n = arith.subf %pe, %d : f32
        dfa.yield %n : f32
      } : !dfa.flat<@l, @w, full, f32>
      return %new : !dfa.flat<@l, @w, full, f32>
    }
    ```
  }];
  let arguments = (ins Variadic<Dfa_Flat>:$inputs,
                       Variadic<Dfa_Flat>:$outs,
                       Dfa_ControlType:$control,
                       Optional<I1>:$found_inf,
                       Variadic<Dfa_Factor>:$scalars,
                       StrArrayAttr:$hyper);
  let results = (outs Variadic<Dfa_Flat>:$results);
  let regions = (region SizedRegion<1>:$derive, SizedRegion<1>:$apply);
  let assemblyFormat = [{
    (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)?
    `control` `(` $control `)` (`unless` $found_inf^)?
    (`with` `(` $scalars^ `:` type($scalars) `)`)?
    `hyper` $hyper attr-dict
    `derive` $derive `apply` $apply `:` type($results)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Dfa_YieldOp : Dfa_Op<"yield", [
    Pure, Terminator, ReturnLike,
    ParentOneOf<["UpdateOp", "KernelOp", "ControlKernelOp",
                 "SegmentKernelOp"]>]> {
  let summary = "ends a scalar region";
  let description = [{
    Example:

    ```mlir
    dfa.segment_kernel @k on @l::@w accumulators [] {
      dfa.yield
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ /* no values */ }]>];
}

def Dfa_PowiOp : Dfa_Op<"powi", [Pure,
    AllTypesMatch<["base", "result"]>]> {
  let summary = "f64 to a non-negative integer power";
  let description = [{
    By repeated multiplication: result = 1; from the lowest bit of the
    exponent up, result *= base where the bit is set, then base *= base. All
    targets give the same bits. A negative exponent gives 1.

    Example:

    ```mlir
    func.func @f(%b: f64, %t: i64) -> f64 {
      %p = dfa.powi %b, %t : f64
      return %p : f64
    }
    ```
  }];
  let arguments = (ins F64:$base, I64:$exponent);
  let results = (outs F64:$result);
  let assemblyFormat = "$base `,` $exponent attr-dict `:` type($result)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Named rules
//===----------------------------------------------------------------------===//

class Dfa_RuleOp<string mnemonic, dag modes, string modeFormat = "">
    : Dfa_Op<mnemonic, [Pure, AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<Dfa_RuleOpInterface>]> {
  let arguments = !con(modes, (ins Dfa_Flat:$grad,
                                   Variadic<Dfa_Flat>:$outs,
                                   Dfa_ControlType:$control,
                                   Optional<I1>:$found_inf));
  let results = (outs Variadic<Dfa_Flat>:$results);
  let assemblyFormat = modeFormat # [{
    `ins` `(` $grad `:` qualified(type($grad)) `)`
    `outs` `(` $outs `:` type($outs) `)`
    `control` `(` $control `)` (`unless` $found_inf^)? attr-dict
    `->` type($results)
  }];
  let hasVerifier = 1;
}

def Dfa_AdamOp : Dfa_RuleOp<"adam",
    (ins Dfa_AdamModeAttr:$mode, UnitAttr:$amsgrad, UnitAttr:$maximize,
         UnitAttr:$no_bias_correction), "custom<EnumWord>($mode)"> {
  let summary = "Adam, AdamW and their AMSGrad forms";
  let description = [{
    `outs` are the parameter, exp_avg, exp_avg_sq and, with `amsgrad`,
    max_exp_avg_sq; all f32. Hyper-parameters: lr, beta1, beta2, eps,
    weight_decay. Source: Kingma & Ba, arXiv:1412.6980; Loshchilov & Hutter,
    arXiv:1711.05101; Reddi et al., arXiv:1904.09237.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>,
                 %m: !dfa.flat<@l, @w, full, f32>,
                 %v: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control) {
      %r:3 = dfa.adam adamw ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p, %m, %v : !dfa.flat<@l, @w, full, f32>,
             !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>)
        control(%ctl) -> !dfa.flat<@l, @w, full, f32>,
        !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>
      return
    }
    ```
  }];
}

def Dfa_SgdOp : Dfa_RuleOp<"sgd",
    (ins UnitAttr:$nesterov, UnitAttr:$maximize)> {
  let summary = "gradient descent, with momentum if it has a buffer";
  let description = [{
    `outs` are the parameter and, optionally, momentum_buffer. The first
    update copies the gradient into the buffer (no dampening), as torch does.
    Hyper-parameters: lr, weight_decay, momentum, dampening. Source: Sutskever
    et al., "On the importance of initialization and momentum" (ICML 2013), in
    torch's form.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control) {
      %r = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p : !dfa.flat<@l, @w, full, f32>)
        control(%ctl) -> !dfa.flat<@l, @w, full, f32>
      return
    }
    ```
  }];
}

def Dfa_LionOp : Dfa_RuleOp<"lion", (ins UnitAttr:$maximize)> {
  let summary = "Lion: the sign of an interpolated momentum";
  let description = [{
    `outs` are the parameter and exp_avg. Hyper-parameters: lr, beta1, beta2,
    weight_decay. Source: Chen et al., arXiv:2302.06675.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>,
                 %m: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control) {
      %r:2 = dfa.lion ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p, %m : !dfa.flat<@l, @w, full, f32>,
             !dfa.flat<@l, @w, full, f32>)
        control(%ctl) -> !dfa.flat<@l, @w, full, f32>,
        !dfa.flat<@l, @w, full, f32>
      return
    }
    ```
  }];
}

def Dfa_AdagradOp : Dfa_RuleOp<"adagrad", (ins UnitAttr:$maximize)> {
  let summary = "Adagrad";
  let description = [{
    `outs` are the parameter and sum. Hyper-parameters: lr, lr_decay, eps,
    weight_decay. Source: Duchi et al., JMLR 12 (2011), in torch's form.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>,
                 %s: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control) {
      %r:2 = dfa.adagrad ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p, %s : !dfa.flat<@l, @w, full, f32>,
             !dfa.flat<@l, @w, full, f32>)
        control(%ctl) -> !dfa.flat<@l, @w, full, f32>,
        !dfa.flat<@l, @w, full, f32>
      return
    }
    ```
  }];
}

def Dfa_RmspropOp : Dfa_RuleOp<"rmsprop",
    (ins UnitAttr:$centered, UnitAttr:$with_momentum, UnitAttr:$maximize)> {
  let summary = "RMSprop, optionally centered and with momentum";
  let description = [{
    `outs` are the parameter, square_avg, then grad_avg if `centered`, then
    momentum_buffer if `with_momentum`. Hyper-parameters: lr, alpha, eps,
    weight_decay, momentum. Source: Tieleman & Hinton, lecture 6.5 (2012);
    centered: Graves, arXiv:1308.0850; in torch's form.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>,
                 %s: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control) {
      %r:2 = dfa.rmsprop ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p, %s : !dfa.flat<@l, @w, full, f32>,
             !dfa.flat<@l, @w, full, f32>)
        control(%ctl) -> !dfa.flat<@l, @w, full, f32>,
        !dfa.flat<@l, @w, full, f32>
      return
    }
    ```
  }];
}

def Dfa_LambOp : Dfa_RuleOp<"lamb",
    (ins UnitAttr:$maximize, UnitAttr:$no_bias_correction)> {
  let summary = "LAMB: Adam's direction, scaled by a trust ratio a parameter";
  let description = [{
    `outs` are the parameter, exp_avg and exp_avg_sq. Hyper-parameters: lr,
    beta1, beta2, eps, weight_decay. Decomposes into the moments' update, two
    norms a parameter with a combine over the shard axis where the values are
    shards, and the parameter's update, whose direction is computed again
    (24 + 16 bytes an element in f32). Source: You et al., arXiv:1904.00962.

    Example:

    ```mlir
    func.func @f(%g: !dfa.flat<@l, @w, full, f32>,
                 %p: !dfa.flat<@l, @w, full, f32>,
                 %m: !dfa.flat<@l, @w, full, f32>,
                 %v: !dfa.flat<@l, @w, full, f32>, %ctl: !dfa.control) {
      %r:3 = dfa.lamb ins(%g : !dfa.flat<@l, @w, full, f32>)
        outs(%p, %m, %v : !dfa.flat<@l, @w, full, f32>,
             !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>)
        control(%ctl) -> !dfa.flat<@l, @w, full, f32>,
        !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>
      return
    }
    ```
  }];
}

#endif // DFA_IR_DFARULEOPS_TD
