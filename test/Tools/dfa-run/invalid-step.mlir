// RUN: split-file %s %t
// RUN: not dfa-run %t/control-flow.mlir 2>&1 | FileCheck %s --check-prefix=FLOW
// RUN: not dfa-run %t/no-hyper.mlir 2>&1 | FileCheck %s --check-prefix=HYPER
// RUN: not dfa-run %t/twice.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not dfa-run %t/unknown-op.mlir 2>&1 | FileCheck %s --check-prefix=OP

//--- control-flow.mlir
// FLOW: control-flow.mlir:[[#]]:{{[0-9]+}}: error: {{.*}}none that the float64 reference knows
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.param "p" : tensor<7xf32>, class = @w, group = 0
}
func.func private @other()
func.func @step(%p: !dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  func.call @other() : () -> ()
  return %ctl : !dfa.control
}

//--- no-hyper.mlir
// HYPER: error: 'dfa.update' op expects hyper-parameter "rate" in group 0 of parameter 'p', but it has none
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = custom
  dfa.param "p" : tensor<7xf32>, class = @w, group = 0
}
func.func @step(%g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"},
                %p: !dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %n = dfa.update ins(%g : !dfa.flat<@l, @w, full, f32>)
    outs(%p : !dfa.flat<@l, @w, full, f32>) control(%ctl) hyper ["rate"]
    derive {
  ^bb0(%step: i64, %rate: f64):
    %s = arith.truncf %rate : f64 to f32
    dfa.yield %s : f32
  } apply {
  ^bb0(%ge: f32, %pe: f32, %se: f32):
    %d = arith.mulf %se, %ge : f32
    %q = arith.subf %pe, %d : f32
    dfa.yield %q : f32
  } : !dfa.flat<@l, @w, full, f32>
  return %n, %ctl : !dfa.flat<@l, @w, full, f32>, !dfa.control
}

//--- twice.mlir
// TWICE: error: expects each role once for class @w, but argument 1 is "param" again
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.param "p" : tensor<7xf32>, class = @w, group = 0
}
func.func @step(%p: !dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
                %q: !dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  return %ctl : !dfa.control
}

//--- unknown-op.mlir
// OP: error: 'arith.bitcast' op is none that the float64 reference knows
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = custom
  dfa.param "p" : tensor<7xf32>, class = @w, group = 0
}
func.func @step(%p: !dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %n = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%ctl)
    hyper [] derive {
  ^bb0(%step: i64):
    dfa.yield
  } apply {
  ^bb0(%pe: f32):
    %b = arith.bitcast %pe : f32 to i32
    %q = arith.bitcast %b : i32 to f32
    dfa.yield %q : f32
  } : !dfa.flat<@l, @w, full, f32>
  return %n, %ctl : !dfa.flat<@l, @w, full, f32>, !dfa.control
}
