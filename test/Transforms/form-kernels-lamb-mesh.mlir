// RUN: dfa-opt %s --dfa-to-kernels | FileCheck %s
// RUN: dfa-opt %s --dfa-report | FileCheck %s --check-prefix=REPORT

// A parameter may lie on several ranks, so its norms are gathered, two f64 a
// parameter and rank, and added in rank order where the trust ratio is made.

!full = !dfa.flat<@l, @w, full, f32>
!f = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(shard = 4)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none
    states = [exp_avg : f32, exp_avg_sq : f32] rule = lamb
  dfa.param "p" : tensor<1000xf32>, class = @w, group = 0
  dfa.param "q" : tensor<3xf32>, class = @w, group = 0
}
// CHECK: dfa.segment_kernel @segments_w_1 on @l::@w accumulators [sum, sum] {
// CHECK: dfa.launch_elements @update_w on @w over atoms acc 1
// CHECK-NEXT: dfa.launch_segments @segments_w_1 on @w acc 1 mode local
// CHECK-NEXT: dfa.record "[[A:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[A]]" on comm
// CHECK-NEXT: dfa.collective all_gather over "shard" class @w "stats" to "stats" reduce sum order rank acc 1 accs 2
// CHECK-NEXT: dfa.record "[[B:.*]]" on comm
// CHECK-NEXT: dfa.wait "[[B]]" on compute
// CHECK-NEXT: dfa.launch_segments @segments_w_1 on @w acc 1 mode gathered
// CHECK-NEXT: dfa.for_each_bucket @w {
// CHECK-NEXT: dfa.launch_elements @update_w_1 on @w over chunks acc 0

// 2 parameters x 2 f64 x 4 ranks, three quarters of it.
// REPORT: all_gather over shard (4 ranks): 96 bytes sent by a rank
func.func @step(%g: !full {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %m: !f {dfa.role = "exp_avg"}, %v: !f {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!full {dfa.role = "param"}, !f {dfa.role = "exp_avg"},
        !f {dfa.role = "exp_avg_sq"}) {
  %s = dfa.reduce_scatter sum %g over "shard" : !full -> !f
  %b = dfa.non_finite %s : !f -> !dfa.partial<flag, whole>
  %c = dfa.combine %b over ["shard"] : !dfa.partial<flag, whole>
  %i = dfa.flag_finish %c : !dfa.partial<flag, whole> -> i1
  %r:3 = dfa.lamb ins(%s : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%ctl) unless %i -> !f, !f, !f
  %all = dfa.all_gather %r#0 over "shard" : !f -> !full
  return %all, %r#1, %r#2 : !full, !f, !f
}
