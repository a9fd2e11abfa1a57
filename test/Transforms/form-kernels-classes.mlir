// RUN: dfa-opt %s --dfa-to-kernels --split-input-file | FileCheck %s

// Two classes: a kernel each a stage, one accumulator for both, the same role
// twice, one control kernel.
!wh = !dfa.flat<@l, @w, full, bf16>
!wf = !dfa.flat<@l, @w, full, f32>
!nf = !dfa.flat<@l, @n, full, f32>
!l2 = !dfa.partial<l2, whole>
!flag = !dfa.partial<flag, whole>
dfa.layout @l {
  dfa.class @w param = bf16 grad = bf16 master = f32 states = [] rule = sgd
  dfa.class @n param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w on @l::@w arrays [#dfa.array<"grad", bf16, read>] accumulators [sum]
// CHECK: dfa.kernel @update_w on @l::@w arrays [#dfa.array<"grad", bf16, read>, #dfa.array<"master", f32, readwrite>, #dfa.array<"param", bf16, write>] accumulators []
// CHECK: dfa.segment_kernel @segments_w on @l::@w
// CHECK: dfa.kernel @reduce_n on @l::@n arrays [#dfa.array<"grad", f32, read>] accumulators [sum]
// CHECK: dfa.kernel @update_n on @l::@n arrays [#dfa.array<"grad", f32, read>, #dfa.array<"param", f32, readwrite>] accumulators []
// CHECK: dfa.segment_kernel @segments_n on @l::@n
// CHECK: dfa.control_kernel @control accumulators [sum]
// CHECK: accumulators 1 group_stats 0
// CHECK: dfa.entry finish {
// CHECK: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK-NEXT: dfa.launch_elements @reduce_n on @n over atoms acc 0
// CHECK-NEXT: dfa.launch_control @control mode whole acc 0
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK-NEXT: dfa.launch_segments @segments_w on @w acc 0
// CHECK-NEXT: dfa.launch_segments @segments_n on @n acc 0
// CHECK-NEXT: dfa.launch_elements @update_w on @w over chunks acc 0
// CHECK-NEXT: dfa.launch_elements @update_n on @n over chunks acc 0
func.func @step(%g: !wh {dfa.role = "grad"}, %p: !wf {dfa.role = "master"},
                %h: !nf {dfa.role = "grad"}, %q: !nf {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!wf {dfa.role = "master"}, !wh {dfa.role = "param"},
        !nf {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %s = dfa.grad_factor %ctl : f64
  %ug = dfa.unscale %g by %s : !wh, f64 -> !wf
  %uh = dfa.unscale %h by %s : !nf, f64 -> !nf
  %a = dfa.norm_partial %ug : !wf -> !l2
  %b = dfa.norm_partial %uh : !nf -> !l2
  %ab = dfa.combine %a, %b : !l2
  %c = dfa.non_finite %ug : !wf -> !flag
  %d = dfa.non_finite %uh : !nf -> !flag
  %cd = dfa.combine %c, %d : !flag
  %n = dfa.norm_finish %ab : !l2 -> f64
  %i = dfa.flag_finish %cd : !flag -> i1
  %rw = dfa.sgd ins(%ug : !wf) outs(%p : !wf) control(%ctl) unless %i -> !wf
  %rn = dfa.sgd ins(%uh : !nf) outs(%q : !nf) control(%ctl) unless %i -> !nf
  %o = dfa.encode bf16 %rw : !wf -> !wh
  %k = dfa.write %n, %ctl["norm"] : f64
  %k2 = dfa.step_count %k unless %i
  return %rw, %o, %rn, %k2 : !wf, !wh, !nf, !dfa.control
}

// -----

// Only one class contributes to the second row; the other's atoms leave it at
// the identity.
!w = !dfa.flat<@l, @w, full, f32>
!n = !dfa.flat<@l, @n, full, f32>
!l2 = !dfa.partial<l2, whole>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.class @n param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w on @l::@w {{.*}} accumulators [sum, max, sum]
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f64
// CHECK: dfa.yield %{{.*}}, %[[ZERO]], %{{.*}} : f64, f64, f64
// CHECK: dfa.kernel @reduce_n on @l::@n {{.*}} accumulators [sum, max]
// CHECK: dfa.program
// CHECK: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK: dfa.launch_elements @reduce_n on @n over atoms acc 0
func.func @step(%g: !w {dfa.role = "grad"}, %h: !n {dfa.role = "grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !w -> !l2
  %b = dfa.norm_partial %h : !n -> !l2
  %ab = dfa.combine %a, %b : !l2
  %m = dfa.norm_partial %h : !n -> !dfa.partial<inf, whole>
  %l = dfa.norm_partial %g : !w -> !dfa.partial<l1, whole>
  %n = dfa.norm_finish %ab : !l2 -> f64
  %o = dfa.norm_finish %m : !dfa.partial<inf, whole> -> f64
  %p = dfa.norm_finish %l : !dfa.partial<l1, whole> -> f64
  %s = arith.addf %n, %o : f64
  %t = arith.addf %s, %p : f64
  %k = dfa.write %t, %ctl["norm"] : f64
  return %k : !dfa.control
}

// -----

// Several partials of one class are added up, each as often as it is named; a
// largest element keeps a nan.
!f = !dfa.flat<@l, @w, full, f32>
!l2 = !dfa.partial<l2, whole>
!inf = !dfa.partial<inf, whole>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w {{.*}} accumulators [sum, max]
// CHECK: ^bb0(%[[G:.*]]: f32, %[[P:.*]]: f32):
// CHECK-DAG: %[[GW:.*]] = arith.extf %[[G]]
// CHECK-DAG: %[[PW:.*]] = arith.extf %[[P]]
// CHECK-DAG: %[[G2:.*]] = arith.mulf %[[GW]], %[[GW]]
// CHECK-DAG: %[[P2:.*]] = arith.mulf %[[PW]], %[[PW]]
// CHECK: %[[ONCE:.*]] = arith.addf %[[G2]], %[[P2]]
// CHECK: %[[TWICE:.*]] = arith.addf %[[ONCE]], %[[G2]]
// CHECK: %[[GA:.*]] = math.absf %[[GW]]
// CHECK: %[[PA:.*]] = math.absf %[[PW]]
// CHECK: %[[MORE:.*]] = arith.cmpf ogt, %[[GA]], %[[PA]]
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[GA]], %[[GA]]
// CHECK: %[[KEEP:.*]] = arith.ori %[[MORE]], %[[NAN]]
// CHECK: %[[MAX:.*]] = arith.select %[[KEEP]], %[[GA]], %[[PA]]
// CHECK: dfa.yield %[[TWICE]], %[[MAX]]
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !f -> !l2
  %b = dfa.norm_partial %p : !f -> !l2
  %ab = dfa.combine %a, %b, %a : !l2
  %c = dfa.norm_partial %g : !f -> !inf
  %d = dfa.norm_partial %p : !f -> !inf
  %cd = dfa.combine %c, %d : !inf
  %n = dfa.norm_finish %ab : !l2 -> f64
  %m = dfa.norm_finish %cd : !inf -> f64
  %s = arith.addf %n, %m : f64
  %k = dfa.write %s, %ctl["norm"] : f64
  return %k : !dfa.control
}

// -----

// Names that a target could not have, and names that are taken.
!a = !dfa.flat<@l, @"w.1", full, f32>
!b = !dfa.flat<@l, @"w-1", full, f32>
dfa.layout @l {
  dfa.class @"w.1" param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.class @"w-1" param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func private @zero_grad()
// CHECK-LABEL: module {
// CHECK: dfa.kernel @update_w_1 on @l::@w.1
// CHECK: dfa.kernel @update_w_1_1 on @l::@"w-1"
// CHECK: dfa.control_kernel @zero_grad_1
// CHECK: dfa.entry zero_grad {
// CHECK-NEXT: dfa.launch_control @zero_grad_1
func.func @step(%g: !a {dfa.role = "grad"}, %p: !a {dfa.role = "param"},
                %h: !b {dfa.role = "grad"}, %q: !b {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!a {dfa.role = "param"}, !b {dfa.role = "param"}) {
  %r = dfa.sgd ins(%g : !a) outs(%p : !a) control(%ctl) -> !a
  %s = dfa.sgd ins(%h : !b) outs(%q : !b) control(%ctl) -> !b
  return %r, %s : !a, !b
}
