// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

!f = !dfa.flat<@l, @w, full, f32>
!bf = !dfa.flat<@l, @w, full, bf16>

// CHECK-LABEL: func.func @adam
func.func @adam(%g: !f, %p: !f, %m: !f, %v: !f, %x: !f, %c: !dfa.control,
                %i: i1) {
  // CHECK: %{{.*}}:3 = dfa.adam adamw ins(%{{.*}}) outs(
  // CHECK-SAME: control(%{{.*}}) unless %{{.*}} -> !dfa.flat
  %0:3 = dfa.adam adamw ins(%g : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%c) unless %i -> !f, !f, !f
  // CHECK: %{{.*}}:4 = dfa.adam adam ins(
  // CHECK-SAME: control(%{{.*}}) {amsgrad, maximize, no_bias_correction} ->
  %1:4 = dfa.adam adam ins(%g : !f) outs(%p, %m, %v, %x : !f, !f, !f, !f)
    control(%c) {amsgrad, maximize, no_bias_correction} -> !f, !f, !f, !f
  return
}

// CHECK-LABEL: func.func @sgd
func.func @sgd(%g: !f, %p: !f, %m: !f, %c: !dfa.control, %i: i1) {
  // CHECK: %{{.*}} = dfa.sgd ins(%{{.*}}) outs(%{{.*}}) control(%{{.*}}) ->
  %0 = dfa.sgd ins(%g : !f) outs(%p : !f) control(%c) -> !f
  // CHECK: %{{.*}}:2 = dfa.sgd ins({{.*}} unless %{{.*}} {maximize, nesterov} ->
  %1:2 = dfa.sgd ins(%g : !f) outs(%p, %m : !f, !f) control(%c) unless %i
    {nesterov, maximize} -> !f, !f
  return
}

// CHECK-LABEL: func.func @others
func.func @others(%g: !f, %p: !f, %m: !f, %v: !f, %x: !f, %c: !dfa.control,
                  %i: i1) {
  // CHECK: %{{.*}}:2 = dfa.lion ins({{.*}} {maximize} ->
  %0:2 = dfa.lion ins(%g : !f) outs(%p, %m : !f, !f) control(%c) {maximize}
    -> !f, !f
  // CHECK: %{{.*}}:2 = dfa.adagrad ins({{.*}} unless %{{.*}} ->
  %1:2 = dfa.adagrad ins(%g : !f) outs(%p, %m : !f, !f) control(%c) unless %i
    -> !f, !f
  // CHECK: %{{.*}}:2 = dfa.rmsprop ins(
  %2:2 = dfa.rmsprop ins(%g : !f) outs(%p, %m : !f, !f) control(%c) -> !f, !f
  // CHECK: %{{.*}}:4 = dfa.rmsprop ins({{.*}} {centered, with_momentum} ->
  %3:4 = dfa.rmsprop ins(%g : !f) outs(%p, %m, %v, %x : !f, !f, !f, !f)
    control(%c) {centered, with_momentum} -> !f, !f, !f, !f
  // CHECK: %{{.*}}:3 = dfa.lamb ins({{.*}} {no_bias_correction} ->
  %4:3 = dfa.lamb ins(%g : !f) outs(%p, %m, %v : !f, !f, !f) control(%c)
    {no_bias_correction} -> !f, !f, !f
  return
}

// CHECK-LABEL: func.func @update
func.func @update(%g: !bf, %p: !f, %s: f64, %q: !dfa.per<param, f32>,
                  %c: !dfa.control, %i: i1) {
  // CHECK: dfa.update ins(%{{[a-z0-9]+}} : !dfa.flat<@l, @w, full, bf16>)
  // CHECK-SAME: outs(%{{[a-z0-9]+}} : !dfa.flat<@l, @w, full, f32>)
  // CHECK-SAME: control(%{{[a-z0-9]+}}) unless %{{[a-z0-9]+}} with(
  // CHECK-SAME: : f64, !dfa.per<param, f32>) hyper ["lr"] {note} derive {
  %0:2 = dfa.update ins(%g : !bf) outs(%p : !f) control(%c) unless %i
    with(%s, %q : f64, !dfa.per<param, f32>) hyper ["lr"] {note} derive {
  // CHECK-NEXT: ^bb0(%[[STEP:.*]]: i64, %[[LR:.*]]: f64, %[[S:.*]]: f64,
  ^bb0(%step: i64, %lr: f64, %sv: f64, %qv: f32):
    // CHECK-NEXT: dfa.powi %[[LR]], %[[STEP]] : f64
    %a = dfa.powi %lr, %step : f64
    %b = arith.mulf %a, %sv : f64
    %d = arith.truncf %b : f64 to f32
    // CHECK: dfa.yield %{{.*}} : f32
    dfa.yield %d : f32
    // CHECK-NEXT: } apply {
  } apply {
  ^bb0(%ge: bf16, %pe: f32, %se: f32):
    %w = arith.extf %ge : bf16 to f32
    %n = math.fma %se, %w, %pe : f32
    // CHECK: dfa.yield %{{.*}}, %{{.*}} : f32, bf16
    dfa.yield %n, %ge : f32, bf16
    // CHECK-NEXT: } : !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, bf16>
  } : !f, !bf
  // Without inputs, destinations or derived values.
  // CHECK: dfa.update control(%{{.*}}) hyper [] derive {
  %1 = dfa.update control(%c) hyper [] derive {
  ^bb0(%step: i64):
    dfa.yield
  } apply {
    %z = arith.constant 0.0 : f32
    dfa.yield %z : f32
  } : !f
  return
}
