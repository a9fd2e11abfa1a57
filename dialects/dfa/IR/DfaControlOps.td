// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level B: scalars of a step and its control block.

#ifndef DFA_IR_DFACONTROLOPS_TD
#define DFA_IR_DFACONTROLOPS_TD

include "dfa/IR/DfaBase.td"

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
  let assemblyFormat = [{
    $norm `to` $max_norm attr-dict `:` qualified(type($result))
  }];
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
  let arguments = (ins Dfa_PerF64:$param_norm, Dfa_PerF64:$update_norm);
  let results = (outs Dfa_PerF64:$result);
  let assemblyFormat =
    "$param_norm `,` $update_norm attr-dict `:` type($result)";
}

#endif // DFA_IR_DFACONTROLOPS_TD
