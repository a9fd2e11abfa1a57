// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

!g = !dfa.flat<@l, @w, full, f32>

// CHECK-LABEL: func.func @control
func.func @control(%c: !dfa.control, %i: i1, %n: f64, %g: !g)
    -> !dfa.control {
  // CHECK: dfa.grad_factor %{{.*}} : f64
  %f = dfa.grad_factor %c : f64
  // CHECK: dfa.read %{{.*}}["max_norm"] : f64
  %m = dfa.read %c["max_norm"] : f64
  // CHECK: dfa.read %{{.*}}["scale"] : f32
  %s = dfa.read %c["scale"] : f32
  // CHECK: dfa.read %{{.*}}["step"] : i64
  %t = dfa.read %c["step"] : i64
  // CHECK: dfa.read %{{.*}}["found_inf"] : i32
  %u = dfa.read %c["found_inf"] : i32
  // CHECK: dfa.write %{{.*}}, %{{.*}}["norm"] : f64
  %0 = dfa.write %n, %c["norm"] : f64
  // A flag is written to a word as 0 or 1.
  // CHECK: dfa.write %{{.*}}, %{{.*}}["found_inf"] : i1
  %1 = dfa.write %i, %0["found_inf"] : i1
  // CHECK: dfa.scaler_update %{{.*}}, %{{.*}}
  %2 = dfa.scaler_update %1, %i
  // CHECK: dfa.step_count %{{.*}} unless %{{.*}}
  %3 = dfa.step_count %2 unless %i
  // CHECK: dfa.step_count %{{[0-9]+$}}
  %4 = dfa.step_count %3
  // CHECK: dfa.zero_grad generation %{{[0-9]+$}}
  %5 = dfa.zero_grad generation %4
  // CHECK: dfa.zero_grad memset %{{.*}}, %{{.*}}, %{{.*}} : {{.*}}<@l, @w
  %6 = dfa.zero_grad memset %5, %g, %g : !g, !g
  return %6 : !dfa.control
}

// CHECK-LABEL: func.func @factors
func.func @factors(%n: f64, %m: f64, %p: !dfa.per<param, f64>) {
  // CHECK: dfa.clip_factor %{{.*}} to %{{.*}} : f64
  %0 = dfa.clip_factor %n to %m : f64
  // CHECK: dfa.clip_factor %{{.*}} to %{{.*}} : !dfa.per<param, f64>
  %1 = dfa.clip_factor %p to %m : !dfa.per<param, f64>
  // CHECK: dfa.trust_ratio %{{.*}}, %{{.*}} : {{.*}}<param, f64>
  %2 = dfa.trust_ratio %p, %1 : !dfa.per<param, f64>
  return
}
