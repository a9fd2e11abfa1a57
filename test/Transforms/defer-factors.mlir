// RUN: dfa-opt %s --dfa-defer-factors --split-input-file | FileCheck %s
// RUN: dfa-opt %s --dfa-defer-factors --split-input-file \
// RUN:   --remarks-filter=dfa -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!f = !dfa.flat<@l, @w, full, f32>
!h = !dfa.flat<@l, @w, full, bf16>
!l2 = !dfa.partial<l2, whole>
!flag = !dfa.partial<flag, whole>

// The example of the pass description.
// CHECK-LABEL: func.func @unscale_and_clip(
// CHECK-SAME: %[[G:.*]]: !dfa.flat<@l, @w, full, bf16>, %[[S:.*]]: f64, %[[MAX:.*]]: f64
// CHECK-NEXT: %[[A:.*]] = dfa.norm_partial %[[G]] : !dfa.flat<@l, @w, full, bf16> -> !dfa.partial<l2, whole>
// CHECK-NEXT: %[[R:.*]] = dfa.norm_finish %[[A]]
// CHECK-NEXT: %[[M:.*]] = math.absf %[[S]] : f64
// CHECK-NEXT: %[[N:.*]] = arith.mulf %[[R]], %[[M]] : f64
// CHECK-NEXT: %[[F:.*]] = dfa.clip_factor %[[N]] to %[[MAX]] : f64
// CHECK-NEXT: %[[K:.*]] = arith.mulf %[[S]], %[[F]] : f64
// CHECK-NEXT: %[[C:.*]] = dfa.unscale %[[G]] by %[[K]] : !dfa.flat<@l, @w, full, bf16>, f64 -> !dfa.flat<@l, @w, full, f32>
// CHECK-NEXT: return %[[C]], %[[N]]
// REMARK: remark: [Passed] deferred | Category:dfa | Remark="one factor, applied where the values are used"
func.func @unscale_and_clip(%g: !h, %s: f64, %max: f64) -> (!f, f64) {
  %u = dfa.unscale %g by %s : !h, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !l2
  %n = dfa.norm_finish %a : !l2 -> f64
  %c = dfa.clip %u with %n to %max : !f, f64, f64
  return %c, %n : !f, f64
}

// A second clip sees the clipped norm: one more factor, the same one pass.
// CHECK-LABEL: func.func @clip_of_clip(
// CHECK-SAME: %[[G:.*]]: !dfa.flat<@l, @w, full, f32>, %[[MAX:.*]]: f64
// CHECK-DAG: %[[A:.*]] = dfa.norm_partial %[[G]]
// CHECK-DAG: %[[N:.*]] = dfa.norm_finish %[[A]]
// CHECK: %[[F:.*]] = dfa.clip_factor %[[N]] to %[[MAX]]
// CHECK: %[[A2:.*]] = dfa.norm_partial %[[G]]
// CHECK: %[[R2:.*]] = dfa.norm_finish %[[A2]]
// CHECK: %[[M2:.*]] = math.absf %[[F]]
// CHECK: %[[N2:.*]] = arith.mulf %[[R2]], %[[M2]]
// CHECK: %[[F2:.*]] = dfa.clip_factor %[[N2]] to %[[MAX]]
// CHECK: %[[K:.*]] = arith.mulf %[[F]], %[[F2]]
// CHECK: %[[U:.*]] = dfa.unscale %[[G]] by %[[K]]
// CHECK: return %[[U]]
func.func @clip_of_clip(%g: !f, %max: f64) -> !f {
  %a = dfa.norm_partial %g : !f -> !l2
  %n = dfa.norm_finish %a : !l2 -> f64
  %c = dfa.clip %g with %n to %max : !f, f64, f64
  %a2 = dfa.norm_partial %c : !f -> !l2
  %n2 = dfa.norm_finish %a2 : !l2 -> f64
  %c2 = dfa.clip %c with %n2 to %max : !f, f64, f64
  return %c2 : !f
}

// Elements of all classes are scaled alike.
// CHECK-LABEL: func.func @combined(
// CHECK-SAME: %[[G:.*]]: {{.*}}, %[[H:.*]]: {{.*}}, %[[S:.*]]: f32
// CHECK-DAG: %[[A:.*]] = dfa.norm_partial %[[G]]
// CHECK-DAG: %[[B:.*]] = dfa.norm_partial %[[H]]
// CHECK: %[[C:.*]] = dfa.combine %[[A]], %[[B]]
// CHECK: %[[N:.*]] = dfa.norm_finish %[[C]]
// CHECK: %[[E:.*]] = arith.extf %[[S]] : f32 to f64
// CHECK: %[[M:.*]] = math.absf %[[E]]
// CHECK: %[[P:.*]] = arith.mulf %[[N]], %[[M]]
// CHECK: return %[[P]]
func.func @combined(%g: !f, %h: !f, %s: f32) -> f64 {
  %u = dfa.unscale %g by %s : !f, f32 -> !f
  %v = dfa.unscale %h by %s : !f, f32 -> !f
  %a = dfa.norm_partial %u : !f -> !l2
  %b = dfa.norm_partial %v : !f -> !l2
  %c = dfa.combine %a, %b : !l2
  %n = dfa.norm_finish %c : !l2 -> f64
  return %n : f64
}

// CHECK-LABEL: func.func @check(
// CHECK-SAME: %[[G:.*]]: !dfa.flat<@l, @w, full, bf16>
// CHECK: dfa.non_finite %[[G]] : !dfa.flat<@l, @w, full, bf16>
func.func @check(%g: !h, %s: f64, %t: f64) -> i1 {
  %u = dfa.unscale %g by %s : !h, f64 -> !f
  %v = dfa.unscale %u by %t : !f, f64 -> !f
  %b = dfa.non_finite %v : !f -> !flag
  %i = dfa.flag_finish %b : !flag -> i1
  return %i : i1
}

// -----

// What must stay as it is.

!f = !dfa.flat<@l, @w, full, f32>
!l2 = !dfa.partial<l2, whole>

// Elements with different factors have no common one.
// CHECK-LABEL: func.func @different_factors(
// CHECK: %[[U:.*]] = dfa.unscale
// CHECK: %[[V:.*]] = dfa.unscale
// CHECK: dfa.norm_partial %[[U]]
// CHECK: dfa.norm_partial %[[V]]
// CHECK: %[[N:.*]] = dfa.norm_finish
// CHECK: return %[[N]]
// REMARK: remark: [Missed] scaled-norm {{.*}}scaled differently
func.func @different_factors(%g: !f, %h: !f, %s: f64, %t: f64) -> f64 {
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  %v = dfa.unscale %h by %t : !f, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !l2
  %b = dfa.norm_partial %v : !f -> !l2
  %c = dfa.combine %a, %b : !l2
  %n = dfa.norm_finish %c : !l2 -> f64
  return %n : f64
}

// One of two classes is not scaled.
// CHECK-LABEL: func.func @one_scaled(
// CHECK: %[[U:.*]] = dfa.unscale
// CHECK: dfa.norm_partial %[[U]]
// CHECK: %[[N:.*]] = dfa.norm_finish
// CHECK: return %[[N]]
func.func @one_scaled(%g: !f, %h: !f, %s: f64) -> f64 {
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !l2
  %b = dfa.norm_partial %h : !f -> !l2
  %c = dfa.combine %a, %b : !l2
  %n = dfa.norm_finish %c : !l2 -> f64
  return %n : f64
}

// The partial has a second root, which would see other elements.
// CHECK-LABEL: func.func @two_roots(
// CHECK: %[[U:.*]] = dfa.unscale
// CHECK: dfa.norm_partial %[[U]]
// CHECK: %[[N:.*]] = dfa.norm_finish
// CHECK: %[[M:.*]] = dfa.norm_finish
// CHECK: return %[[N]], %[[M]]
func.func @two_roots(%g: !f, %h: !f, %s: f64) -> (f64, f64) {
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !l2
  %b = dfa.norm_partial %h : !f -> !l2
  %c = dfa.combine %a, %b : !l2
  %n = dfa.norm_finish %a : !l2 -> f64
  %m = dfa.norm_finish %c : !l2 -> f64
  return %n, %m : f64, f64
}

// A factor a parameter is none of the whole step's.
// CHECK-LABEL: func.func @per_parameter(
// CHECK-SAME: %[[G:.*]]: !dfa.flat<@l, @w, full, f32>, %[[MAX:.*]]: f64, %[[S:.*]]: f64
// CHECK: %[[A:.*]] = dfa.norm_partial %[[G]] {{.*}} -> !dfa.partial<l2, param>
// CHECK: %[[N:.*]] = dfa.norm_finish %[[A]]
// CHECK: %[[F:.*]] = dfa.clip_factor %[[N]] to %[[MAX]] : !dfa.per<param, f64>
// CHECK: %[[C:.*]] = dfa.unscale %[[G]] by %[[F]] : {{.*}}, !dfa.per<param, f64>
// CHECK: %[[D:.*]] = dfa.unscale %[[C]] by %[[S]]
// CHECK: %[[B:.*]] = dfa.norm_partial %[[C]] {{.*}} -> !dfa.partial<l2, whole>
// CHECK: %[[M:.*]] = dfa.norm_finish %[[B]]
// CHECK: return %[[D]], %[[M]]
// REMARK: remark: [Missed] scaled-norm {{.*}}differ by group or parameter
func.func @per_parameter(%g: !f, %max: f64, %s: f64) -> (!f, f64) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, param>
  %n = dfa.norm_finish %a : !dfa.partial<l2, param> -> !dfa.per<param, f64>
  %c = dfa.clip %g with %n to %max : !f, !dfa.per<param, f64>, f64
  %d = dfa.unscale %c by %s : !f, f64 -> !f
  %b = dfa.norm_partial %c : !f -> !l2
  %m = dfa.norm_finish %b : !l2 -> f64
  return %d, %m : !f, f64
}

// A norm of each parameter keeps the values it is of.
// CHECK-LABEL: func.func @norm_a_parameter(
// CHECK: %[[U:.*]] = dfa.unscale
// CHECK: dfa.norm_partial %[[U]]
func.func @norm_a_parameter(%g: !f, %s: f64, %max: f64) -> !f {
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !dfa.partial<l2, param>
  %n = dfa.norm_finish %a : !dfa.partial<l2, param> -> !dfa.per<param, f64>
  %c = dfa.clip %u with %n to %max : !f, !dfa.per<param, f64>, f64
  return %c : !f
}

// Values that are not a product are checked themselves.
// CHECK-LABEL: func.func @check_of_clamped(
// CHECK: %[[V:.*]] = dfa.clip_value
// CHECK: dfa.non_finite %[[V]]
func.func @check_of_clamped(%g: !f, %s: f64) -> !dfa.partial<flag, whole> {
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  %v = dfa.clip_value %u to %s : !f, f64
  %b = dfa.non_finite %v : !f -> !dfa.partial<flag, whole>
  return %b : !dfa.partial<flag, whole>
}
