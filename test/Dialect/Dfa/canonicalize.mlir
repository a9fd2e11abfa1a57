// RUN: dfa-opt %s --canonicalize | FileCheck %s

!f = !dfa.flat<@l, @w, full, f32>
!h = !dfa.flat<@l, @w, full, f16>
!b = !dfa.flat<@l, @w, full, bf16>
!d = !dfa.flat<@l, @w, full, f64>
!i = !dfa.flat<@l, @w, full, i16>

// CHECK-LABEL: func.func @unscale_by_one(
// CHECK-SAME: %[[G:.*]]: !dfa.flat<@l, @w, full, f32>,
func.func @unscale_by_one(%g: !f, %h: !h) -> (!f, !f) {
  %one = arith.constant 1.0 : f64
  %0 = dfa.unscale %g by %one : !f, f64 -> !f
  // Widening still has to happen.
  // CHECK: %[[H:.*]] = dfa.unscale
  %1 = dfa.unscale %h by %one : !h, f64 -> !f
  // CHECK: return %[[G]], %[[H]]
  return %0, %1 : !f, !f
}

// CHECK-LABEL: func.func @two_factors(
// CHECK-SAME: %[[G:.*]]: !dfa{{.*}}, %[[S:.*]]: f32, %[[T:.*]]: f64,
func.func @two_factors(%g: !b, %s: f32, %t: f64, %p: !dfa.per<param, f64>)
    -> (!f, !f) {
  // CHECK: %[[WIDE:.*]] = arith.extf %[[S]] : f32 to f64
  // CHECK: %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[T]] : f64
  // CHECK: %[[ONCE:.*]] = dfa.unscale %[[G]] by %[[PRODUCT]]
  %0 = dfa.unscale %g by %s : !b, f32 -> !f
  %1 = dfa.unscale %0 by %t : !f, f64 -> !f
  // A factor a parameter stays apart.
  // CHECK: %[[TWICE:.*]] = dfa.unscale %[[ONCE]] by
  %2 = dfa.unscale %1 by %p : !f, !dfa.per<param, f64> -> !f
  // CHECK: return %[[ONCE]], %[[TWICE]]
  return %1, %2 : !f, !f
}

// CHECK-LABEL: func.func @check_before_unscale(
// CHECK-SAME: %[[G:.*]]: !dfa.flat<@l, @w, full, bf16>
func.func @check_before_unscale(%g: !b, %s: f32)
    -> !dfa.partial<flag, whole> {
  // CHECK-NOT: dfa.unscale
  // CHECK: dfa.non_finite %[[G]]
  %0 = dfa.unscale %g by %s : !b, f32 -> !f
  %1 = dfa.non_finite %0 : !f -> !dfa.partial<flag, whole>
  return %1 : !dfa.partial<flag, whole>
}

// CHECK-LABEL: func.func @combine_one(
// CHECK-SAME: %[[A:.*]]: !dfa.partial<l2, whole>
func.func @combine_one(%a: !dfa.partial<l2, whole>)
    -> (!dfa.partial<l2, whole>, !dfa.partial<l2, whole>) {
  %0 = dfa.combine %a : !dfa.partial<l2, whole>
  // CHECK: %[[B:.*]] = dfa.combine %[[A]] over ["shard"]
  %1 = dfa.combine %a over ["shard"] : !dfa.partial<l2, whole>
  // CHECK: return %[[A]], %[[B]]
  return %0, %1 : !dfa.partial<l2, whole>, !dfa.partial<l2, whole>
}

// Encoding that is exact disappears.
// CHECK-LABEL: func.func @encode_decode_exact(
// CHECK-SAME: %[[X:.*]]: !dfa.flat<@l, @w, full, f32>
func.func @encode_decode_exact(%x: !f) -> (!f, !f, !f, !f) {
  %a = dfa.encode f32 %x : !f -> !f
  %b = dfa.decode f32 %x : !f -> !f
  %c:2 = dfa.encode remainder %x : !f -> !b, !i
  %d = dfa.decode remainder %c#0, %c#1 : !b, !i -> !f
  %e = dfa.encode f64 %x : !f -> !d
  %g = dfa.decode f64 %e : !d -> !f
  // CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
  return %a, %b, %d, %g : !f, !f, !f, !f
}

// Encoding that rounds does not.
// CHECK-LABEL: func.func @encode_decode_rounds(
func.func @encode_decode_rounds(%x: !f) -> (!f, !f) {
  // CHECK: dfa.encode bf16
  // CHECK: dfa.decode bf16
  %a = dfa.encode bf16 %x : !f -> !b
  %b = dfa.decode bf16 %a : !b -> !f
  // CHECK: dfa.encode f16
  // CHECK: dfa.decode f16
  %c = dfa.encode f16 %x : !f -> !h
  %d = dfa.decode f16 %c : !h -> !f
  return %b, %d : !f, !f
}

// Decoding is exact, but for f64.
// CHECK-LABEL: func.func @decode_encode(
// CHECK-SAME: %[[B:.*]]: !dfa.flat<@l, @w, full, bf16>, %[[H:.*]]: !dfa{{.*}}, %[[I:.*]]: !dfa.flat<@l, @w, full, i16>, %[[D:.*]]: !dfa
func.func @decode_encode(%b: !b, %h: !h, %i: !i, %d: !d)
    -> (!b, !h, !b, !i, !d) {
  %0 = dfa.decode bf16 %b : !b -> !f
  %1 = dfa.encode bf16 %0 : !f -> !b
  %2 = dfa.decode f16 %h : !h -> !f
  %3 = dfa.encode f16 %2 : !f -> !h
  %4 = dfa.decode remainder %b, %i : !b, !i -> !f
  %5:2 = dfa.encode remainder %4 : !f -> !b, !i
  // CHECK: dfa.decode f64 %[[D]]
  // CHECK: %[[E:.*]] = dfa.encode f64
  %6 = dfa.decode f64 %d : !d -> !f
  %7 = dfa.encode f64 %6 : !f -> !d
  // CHECK: return %[[B]], %[[H]], %[[B]], %[[I]], %[[E]]
  return %1, %3, %5#0, %5#1, %7 : !b, !h, !b, !i, !d
}

// Powers of the true beta, by repeated multiplication: the last bits count.
// CHECK-LABEL: func.func @powi(
func.func @powi(%x: f64) -> (f64, f64, f64, f64, f64) {
  %two = arith.constant 2.0 : f64
  %beta = arith.constant 0.999 : f64
  %n10 = arith.constant 10 : i64
  %n1000 = arith.constant 1000 : i64
  %zero = arith.constant 0 : i64
  %minus = arith.constant -3 : i64
  // CHECK-DAG: %[[A:.*]] = arith.constant 1.024000e+03 : f64
  // CHECK-DAG: %[[B:.*]] = arith.constant 0.36769542477096{{[0-9]*}} : f64
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f64
  %0 = dfa.powi %two, %n10 : f64
  %1 = dfa.powi %beta, %n1000 : f64
  %2 = dfa.powi %beta, %zero : f64
  %3 = dfa.powi %beta, %minus : f64
  // CHECK-DAG: %[[X:.*]] = dfa.powi
  %4 = dfa.powi %x, %n10 : f64
  // CHECK: return %[[A]], %[[B]], %[[ONE]], %[[ONE]], %[[X]]
  return %0, %1, %2, %3, %4 : f64, f64, f64, f64, f64
}

// Constants stay in the regions of an update: it sees nothing else.
// CHECK-LABEL: func.func @update(
func.func @update(%p: !f, %c: !dfa.control) -> !f {
  // CHECK-NOT: arith.constant
  // CHECK: dfa.update
  %0 = dfa.update outs(%p : !f) control(%c) hyper [] derive {
  ^bb0(%t: i64):
    // CHECK: arith.constant 2.500000e-01 : f32
    %h = arith.constant 0.5 : f32
    %q = arith.mulf %h, %h : f32
    dfa.yield %q : f32
  } apply {
  ^bb0(%x: f32, %q: f32):
    // CHECK: arith.constant 3.000000e+00 : f32
    %two = arith.constant 3.0 : f32
    %y = arith.mulf %two, %x : f32
    dfa.yield %y : f32
  } : !f
  return %0 : !f
}
