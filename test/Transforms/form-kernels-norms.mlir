// RUN: dfa-opt %s --dfa-to-kernels --split-input-file | FileCheck %s

// Every kind and scope of norm, and clipping by them.

// One pass gives all: the flag has the largest element's row, lp needs a row.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w {{.*}} arrays [#dfa.array<"grad", f32, read>] accumulators [sum, max, sum]
// CHECK: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[X]] : f32 to f64
// CHECK-NEXT: %[[A:.*]] = math.absf %[[W]] : f64
// CHECK-NEXT: %[[A2:.*]] = arith.mulf %[[A]], %[[A]] : f64
// CHECK-NEXT: %[[A3:.*]] = arith.mulf %[[A2]], %[[A]] : f64
// CHECK-NEXT: dfa.yield %[[A]], %[[A]], %[[A3]] : f64, f64, f64
// CHECK: dfa.control_kernel @control accumulators [sum, max, sum]
// CHECK-NEXT: ^bb0(%[[L1:.*]]: f64, %[[INF:.*]]: f64, %[[LP:.*]]: f64):
// CHECK: arith.bitcast %[[LP]] : f64 to i64
// CHECK: arith.cmpf olt, %[[INF]],
// CHECK: dfa.program {{.*}} accumulators 3 group_stats 0
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l1, whole>
  %b = dfa.norm_partial %g : !f -> !dfa.partial<inf, whole>
  %c = dfa.norm_partial %g : !f -> !dfa.partial<lp, whole, 3.0>
  %d = dfa.non_finite %g : !f -> !dfa.partial<flag, whole>
  %l1 = dfa.norm_finish %a : !dfa.partial<l1, whole> -> f64
  %inf = dfa.norm_finish %b : !dfa.partial<inf, whole> -> f64
  %lp = dfa.norm_finish %c : !dfa.partial<lp, whole, 3.0> -> f64
  %i = dfa.flag_finish %d : !dfa.partial<flag, whole> -> i1
  %s = arith.addf %l1, %inf : f64
  %t = arith.addf %s, %lp : f64
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  %k = dfa.write %t, %ctl["norm"] : f64
  return %r, %k : !f, !dfa.control
}

// -----

// An f64 square may overflow though no element is inf: the flag keeps its own
// accumulator, and so it does beside an lp sum.
!d = !dfa.flat<@l, @w, full, f64>
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f64 grad = f64 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w {{.*}} accumulators [sum, max]
// CHECK: dfa.yield %{{.*}}, %{{.*}} : f64, f64
// CHECK: dfa.control_kernel @control accumulators [sum, max]
// CHECK-NEXT: ^bb0(%{{.*}}: f64, %[[FLAG:.*]]: f64):
// CHECK: arith.cmpf une, %[[FLAG]],
func.func @step(%g: !d {dfa.role = "grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !d -> !dfa.partial<l2, whole>
  %b = dfa.non_finite %g : !d -> !dfa.partial<flag, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %i = dfa.flag_finish %b : !dfa.partial<flag, whole> -> i1
  %k = dfa.write %n, %ctl["norm"] : f64
  %k2 = dfa.step_count %k unless %i
  return %k2 : !dfa.control
}

// -----

// Clipping each parameter by its own norm: the segment kernel makes the factor
// from the parameter's accumulator, and no control kernel is needed for it.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w {{.*}} accumulators [sum]
// CHECK: dfa.segment_kernel @segments_w on @l::@w accumulators [sum] {
// CHECK-NEXT: ^bb0(%[[SUM:.*]]: f64):
// CHECK: math.sqrt %[[SUM]] : f64
// CHECK: %[[MAX:.*]] = dfa.load_scratch [[SLOT:[0-9]+]] : f64
// CHECK: dfa.store_derived 0
// CHECK: dfa.control_kernel @control accumulators []
// CHECK: %[[M:.*]] = dfa.load_control "max_norm"
// CHECK: dfa.store_scratch [[SLOT]], %[[M]]
// CHECK: dfa.program {{.*}} accumulators 1 group_stats 0
// CHECK: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK-NEXT: dfa.launch_control @control mode whole
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK-NEXT: dfa.launch_segments @segments_w on @w acc 0
// CHECK-NEXT: dfa.launch_elements @update_w on @w over chunks
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, param>
  %n = dfa.norm_finish %a : !dfa.partial<l2, param> -> !dfa.per<param, f64>
  %max = dfa.read %ctl["max_norm"] : f64
  %c = dfa.clip %g with %n to %max : !f, !dfa.per<param, f64>, f64
  %r = dfa.sgd ins(%c : !f) outs(%p : !f) control(%ctl) -> !f
  return %r, %ctl : !f, !dfa.control
}

// -----

// By group: combined by the control kernel, kept for segment kernels.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w {{.*}} accumulators [max, sum]
// CHECK: dfa.segment_kernel @segments_w on @l::@w accumulators [] {
// CHECK: dfa.load_group_stat 0 : f64
// CHECK: dfa.control_kernel @control accumulators [max] groups [sum]
// CHECK: dfa.program {{.*}} accumulators 2 group_stats 1
// CHECK: dfa.launch_control @control mode whole acc 0
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, group>
  %b = dfa.non_finite %g : !f -> !dfa.partial<flag, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, group> -> !dfa.per<group, f64>
  %i = dfa.flag_finish %b : !dfa.partial<flag, whole> -> i1
  %max = dfa.read %ctl["max_norm"] : f64
  %c = dfa.clip %g with %n to %max : !f, !dfa.per<group, f64>, f64
  %r = dfa.sgd ins(%c : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  return %r, %ctl : !f, !dfa.control
}

// -----

// Clipping by value is elementwise: no reduction, one kernel, no barrier.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK-NOT: @reduce_w
// CHECK: dfa.kernel @update_w {{.*}} arrays [#dfa.array<"grad", f32, read>, #dfa.array<"param", f32, readwrite>] accumulators []
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf olt
// CHECK: dfa.launch_segments
// CHECK-NEXT: dfa.launch_elements @update_w on @w over chunks
// CHECK-NEXT: dfa.read_back
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}) {
  %bound = arith.constant 1.0 : f64
  %c = dfa.clip_value %g to %bound : !f, f64
  %r = dfa.sgd ins(%c : !f) outs(%p : !f) control(%ctl) -> !f
  return %r : !f
}
