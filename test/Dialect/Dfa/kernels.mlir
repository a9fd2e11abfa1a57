// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

// CHECK-LABEL: dfa.kernel @all on @l::@w
// CHECK-SAME: arrays [#dfa.array<"grad", bf16, read>,
// CHECK-SAME: #dfa.array<"param", f32, readwrite>, #dfa.array<"out", i16, write>]
// CHECK-SAME: accumulators [sum, max] attributes {note} uniform {
dfa.kernel @all on @l::@w arrays [#dfa.array<"grad", bf16, read>,
    #dfa.array<"param", f32, readwrite>, #dfa.array<"out", i16, write>]
    accumulators [sum, max] attributes {note} uniform {
  // CHECK: dfa.load_segment active : i32
  %a = dfa.load_segment active : i32
  %z = arith.constant 0 : i32
  %run = arith.cmpi ne, %a, %z : i32
  // CHECK: dfa.load_control "factor" : f32
  %f = dfa.load_control "factor" : f32
  // CHECK: dfa.load_derived 3 : f32
  %d = dfa.load_derived 3 : f32
  // CHECK: dfa.yield %{{.*}}, %{{.*}}, %{{.*}} : i1, f32, f32
  dfa.yield %run, %f, %d : i1, f32, f32
  // CHECK-NEXT: } body {
} body {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: bf16, %{{.*}}: f32):
^bb0(%f: f32, %d: f32, %g: bf16, %p: f32):
  %i = arith.constant 0 : i16
  %x = arith.extf %g : bf16 to f64
  // CHECK: dfa.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f32, i16, f64, f64
  dfa.yield %p, %i, %x, %x : f32, i16, f64, f64
}

// CHECK-LABEL: dfa.control_kernel @finish accumulators [sum, max] groups [sum] {
dfa.control_kernel @finish accumulators [sum, max] groups [sum] {
^bb0(%s: f64, %m: f64):
  // CHECK: dfa.store_control "norm", %{{.*}} : f64
  dfa.store_control "norm", %s : f64
  // CHECK: dfa.load_scratch 31 : i64
  %a = dfa.load_scratch 31 : i64
  // CHECK: dfa.store_scratch 0, %{{.*}} : i64
  dfa.store_scratch 0, %a : i64
  dfa.yield
}

// CHECK-LABEL: dfa.segment_kernel @rows on @l::@w accumulators [max] {
dfa.segment_kernel @rows on @l::@w accumulators [max] {
^bb0(%m: f64):
  // CHECK: dfa.load_segment step : i64
  %t = dfa.load_segment step : i64
  // CHECK: dfa.store_segment step, %{{.*}} : i64
  dfa.store_segment step, %t : i64
  // CHECK: dfa.load_segment generation : i32
  %g = dfa.load_segment generation : i32
  // CHECK: dfa.store_segment active, %{{.*}} : i32
  dfa.store_segment active, %g : i32
  // CHECK: dfa.load_hyper "lr" at 2 : f64
  %lr = dfa.load_hyper "lr" at 2 : f64
  // CHECK: dfa.load_group_stat 1 : f64
  %s = dfa.load_group_stat 1 : f64
  %d = arith.truncf %lr : f64 to f32
  // CHECK: dfa.store_derived 255, %{{.*}} : f32
  dfa.store_derived 255, %d : f32
  dfa.yield
}
