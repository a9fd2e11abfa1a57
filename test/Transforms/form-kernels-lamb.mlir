// RUN: dfa-opt %s --dfa-to-kernels | FileCheck %s
// RUN: dfa-opt %s --dfa-report | FileCheck %s --check-prefix=REPORT

// LAMB: 24 bytes for the moments and both norms, 16 for the parameter (the
// direction is computed again), 4 for the check.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none
    states = [exp_avg : f32, exp_avg_sq : f32] rule = lamb
}
// The norm of the parameter could be taken before; it waits for a pass that
// reads the parameter anyway.
// CHECK: dfa.kernel @reduce_w {{.*}} arrays [#dfa.array<"grad", f32, read>] accumulators [max]
// CHECK: dfa.kernel @update_w {{.*}} arrays [#dfa.array<"grad", f32, read>, #dfa.array<"param", f32, read>, #dfa.array<"exp_avg", f32, readwrite>, #dfa.array<"exp_avg_sq", f32, readwrite>] accumulators [sum, sum]
// CHECK: dfa.kernel @update_w_1 {{.*}} arrays [#dfa.array<"param", f32, readwrite>, #dfa.array<"exp_avg", f32, read>, #dfa.array<"exp_avg_sq", f32, read>] accumulators []
// The step is counted once, after the last kernel that needs it.
// CHECK: dfa.segment_kernel @segments_w on @l::@w accumulators [] {
// CHECK-NOT: dfa.store_segment
// CHECK: dfa.segment_kernel @segments_w_1 on @l::@w accumulators [sum, sum] {
// CHECK-COUNT-1: dfa.store_segment step
// CHECK-NOT: dfa.store_segment
// CHECK: dfa.control_kernel
// CHECK: dfa.program {{.*}} accumulators 3 group_stats 0
// CHECK: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK-NEXT: dfa.launch_control @control mode whole acc 0
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK-NEXT: dfa.launch_segments @segments_w on @w acc 0
// CHECK-NEXT: dfa.launch_elements @update_w on @w over atoms acc 1
// CHECK-NEXT: dfa.launch_segments @segments_w_1 on @w acc 1
// CHECK-NEXT: dfa.launch_elements @update_w_1 on @w over chunks acc 0

// REPORT: 6 launches, 44 B/element, state 8 B/parameter
// REPORT: reduce_w 1 4 r:grad
// REPORT: update_w 1 24 r:grad r:param r:exp_avg r:exp_avg_sq w:exp_avg w:exp_avg_sq
// REPORT: update_w_1 1 16 r:param r:exp_avg r:exp_avg_sq w:param
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %m: !f {dfa.role = "exp_avg"}, %v: !f {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "exp_avg"},
        !f {dfa.role = "exp_avg_sq"}) {
  %b = dfa.non_finite %g : !f -> !dfa.partial<flag, whole>
  %i = dfa.flag_finish %b : !dfa.partial<flag, whole> -> i1
  %r:3 = dfa.lamb ins(%g : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%ctl) unless %i -> !f, !f, !f
  return %r#0, %r#1, %r#2 : !f, !f, !f
}
