// RUN: dfa-opt %s --dfa-to-kernels --split-input-file | FileCheck %s

// ZeRO-2 on two axes. Gradients are reduced, and their norm is taken, bucket by
// bucket; the sums travel in one small collective; the update of a bucket
// overlaps the gather of the one before. Block order is the one order of
// collectives, and events join the two streams.

!g = !dfa.flat<@l, @w, full, bf16>
!gs = !dfa.flat<@l, @w, shard, bf16>
!s = !dfa.flat<@l, @w, shard, f32>
!l2 = !dfa.partial<l2, whole>
!flag = !dfa.partial<flag, whole>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = bf16 grad = bf16 master = f32 states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.program @step on @l
// CHECK-NEXT: dfa.program_class @w arrays ["grad", "master", "param"] types [bf16, f32, bf16] parts [full, shard, full]
// CHECK-NEXT: dfa.entry reduce {
// CHECK-NEXT: dfa.record "[[E0:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[E0]]" on comm
// CHECK-NEXT: dfa.for_each_bucket @w {
// CHECK-NEXT: dfa.collective reduce_scatter over "shard" class @w "grad" to "grad" reduce sum order any acc 0 accs 0
// CHECK-NEXT: dfa.collective all_reduce over "replicate" class @w "grad" to "grad" reduce sum order rank acc 0 accs 0
// CHECK-NEXT: dfa.record "[[E1:.*]]" on comm
// CHECK-NEXT: dfa.wait "[[E1]]" on compute
// CHECK-NEXT: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: dfa.entry finish {
// CHECK-NEXT: dfa.upload "segments"
// CHECK-NEXT: dfa.upload "groups"
// CHECK-NEXT: dfa.launch_control @control mode local acc 0
// CHECK-NEXT: dfa.record "[[E2:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[E2]]" on comm
// CHECK-NEXT: dfa.collective all_gather over "shard" "sums" to "sums" reduce sum order rank acc 0 accs 1
// CHECK-NEXT: dfa.record "[[E3:.*]]" on comm
// CHECK-NEXT: dfa.wait "[[E3]]" on compute
// CHECK-NEXT: dfa.launch_control @control mode gathered acc 0
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK-NEXT: dfa.launch_segments @segments_w on @w acc 0
// CHECK-NEXT: dfa.for_each_bucket @w {
// CHECK-NEXT: dfa.launch_elements @update_w on @w over chunks acc 0
// CHECK-NEXT: dfa.record "[[E4:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[E4]]" on comm
// CHECK-NEXT: dfa.collective all_gather over "shard" class @w "param" to "param" reduce sum order any acc 0 accs 0
// CHECK-NEXT: }
// CHECK-NEXT: dfa.record "[[E5:.*]]" on comm
// CHECK-NEXT: dfa.wait "[[E5]]" on compute
// CHECK-NEXT: dfa.record "[[DONE:.*]]" on side
// CHECK-NEXT: dfa.wait "[[DONE]]" on compute
// CHECK-NEXT: }
func.func @step(%g: !g {dfa.role = "grad"}, %p: !s {dfa.role = "master"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!s {dfa.role = "master"}, !g {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %sc = dfa.reduce_scatter sum %g over "shard" : !g -> !gs
  %rd = dfa.all_reduce sum %sc over "replicate" {order = #dfa<order rank>} : !gs
  %f = dfa.grad_factor %ctl : f64
  %u = dfa.unscale %rd by %f : !gs, f64 -> !s
  %a = dfa.norm_partial %u : !s -> !l2
  %b = dfa.non_finite %u : !s -> !flag
  %ac = dfa.combine %a over ["shard"] : !l2
  %bc = dfa.combine %b over ["shard"] : !flag
  %n = dfa.norm_finish %ac : !l2 -> f64
  %i = dfa.flag_finish %bc : !flag -> i1
  %max = dfa.read %ctl["max_norm"] : f64
  %c = dfa.clip %u with %n to %max : !s, f64, f64
  %r = dfa.sgd ins(%c : !s) outs(%p : !s) control(%ctl) unless %i -> !s
  %o = dfa.encode bf16 %r : !s -> !gs
  %full = dfa.all_gather %o over "shard" : !gs -> !g
  %k = dfa.write %n, %ctl["norm"] : f64
  return %r, %full, %k : !s, !g, !dfa.control
}

// -----

// Replicas only, no norm and no check: nothing between the reduction and the
// update, which stays in finish.
!f = !dfa.flat<@l, @w, full, f32>
dfa.mesh @dp(replicate = 4)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.entry reduce {
// CHECK: dfa.for_each_bucket @w {
// CHECK-NEXT: dfa.collective all_reduce over "replicate" class @w "grad" to "grad"
// CHECK-NEXT: }
// CHECK-NEXT: dfa.record
// CHECK-NEXT: dfa.wait
// CHECK-NEXT: }
// CHECK-NEXT: dfa.entry finish {
// CHECK-NEXT: dfa.upload "segments"
// CHECK-NEXT: dfa.upload "groups"
// CHECK-NEXT: dfa.launch_control @control mode whole acc 0
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK-NEXT: dfa.launch_segments @segments_w on @w acc 0
// CHECK-NEXT: dfa.launch_elements @update_w on @w over chunks acc 0
// CHECK-NEXT: dfa.record "[[DONE:.*]]" on side
// CHECK-NEXT: dfa.wait "[[DONE]]" on compute
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %rd = dfa.all_reduce sum %g over "replicate" : !f
  %f = dfa.grad_factor %ctl : f64
  %u = dfa.unscale %rd by %f : !f, f64 -> !f
  %r = dfa.sgd ins(%u : !f) outs(%p : !f) control(%ctl) -> !f
  %k = dfa.step_count %ctl
  return %r, %k : !f, !dfa.control
}

// -----

// Two classes: their buckets one after the other, in the order of the classes,
// on every rank.
!a = !dfa.flat<@l, @a, full, f32>
!as = !dfa.flat<@l, @a, shard, f32>
!b = !dfa.flat<@l, @b, full, f32>
!bs = !dfa.flat<@l, @b, shard, f32>
dfa.mesh @dp(shard = 2)
dfa.layout @l on @dp {
  dfa.class @a param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.class @b param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.entry reduce {
// CHECK: dfa.for_each_bucket @a {
// CHECK-NEXT: dfa.collective reduce_scatter over "shard" class @a
// CHECK: dfa.for_each_bucket @b {
// CHECK-NEXT: dfa.collective reduce_scatter over "shard" class @b
// CHECK: dfa.entry finish {
// CHECK: dfa.for_each_bucket @a {
// CHECK: dfa.collective all_gather over "shard" class @a "param"
// CHECK: dfa.for_each_bucket @b {
// CHECK: dfa.collective all_gather over "shard" class @b "param"
// CHECK: }
// CHECK-NEXT: dfa.record
// CHECK-NEXT: dfa.wait
// CHECK-NEXT: dfa.read_back
func.func @step(%ga: !a {dfa.role = "grad"}, %pa: !as {dfa.role = "param"},
                %gb: !b {dfa.role = "grad"}, %pb: !bs {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!a {dfa.role = "param"}, !b {dfa.role = "param"}) {
  %rb = dfa.reduce_scatter sum %gb over "shard" : !b -> !bs
  %ra = dfa.reduce_scatter sum %ga over "shard" : !a -> !as
  %na = dfa.sgd ins(%ra : !as) outs(%pa : !as) control(%ctl) -> !as
  %nb = dfa.sgd ins(%rb : !bs) outs(%pb : !bs) control(%ctl) -> !bs
  %fa = dfa.all_gather %na over "shard" : !as -> !a
  %fb = dfa.all_gather %nb over "shard" : !bs -> !b
  return %fa, %fb : !a, !b
}
