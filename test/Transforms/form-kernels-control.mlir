// RUN: dfa-opt %s --dfa-to-kernels --split-input-file | FileCheck %s

// A gradient that the user sees is written zeros, in the step and in the entry
// of that name; the generation changes besides.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.control_kernel @control accumulators []
// CHECK: dfa.store_control "generation"
// CHECK: dfa.entry finish {
// CHECK: dfa.launch_control @control
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK: dfa.launch_elements @update_w on @w over chunks acc 0
// CHECK-NEXT: dfa.memset @w "grad"
// CHECK-NEXT: dfa.record "[[DONE:.*]]" on side
// CHECK-NEXT: dfa.wait "[[DONE]]" on compute
// CHECK: dfa.entry zero_grad {
// CHECK-NEXT: dfa.launch_control @zero_grad mode whole acc 0
// CHECK-NEXT: dfa.memset @w "grad"
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) -> !f
  %k = dfa.zero_grad memset %ctl, %g : !f
  return %r, %k : !f, !dfa.control
}

// -----

// A contribution of gradients is an entry of its own: the kernel compares
// generations, then the segments are marked. zero_grad comes in finish.
!f = !dfa.flat<@l, @w, full, f32>
!h = !dfa.flat<@l, @w, full, bf16>
dfa.layout @l {
  dfa.class @w param = bf16 grad = bf16 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @accumulate_w on @l::@w arrays [#dfa.array<"grad", bf16, read>, #dfa.array<"main_grad", f32, readwrite>] accumulators [] uniform {
// CHECK-DAG: %[[NOW:.*]] = dfa.load_control "generation"
// CHECK-DAG: %[[OWN:.*]] = dfa.load_segment generation
// CHECK: %[[MORE:.*]] = arith.cmpi eq, %[[NOW]], %[[OWN]]
// CHECK: dfa.yield %{{.*}}, %[[MORE]] : i1, i1
// CHECK: } body {
// CHECK-NEXT: ^bb0(%[[ADD:.*]]: i1, %[[X:.*]]: bf16, %[[B:.*]]: f32):
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[X]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[B]], %[[W]]
// CHECK-NEXT: %[[R:.*]] = arith.select %[[ADD]], %[[SUM]], %[[W]]
// CHECK-NEXT: dfa.yield %[[R]]
// CHECK: dfa.segment_kernel @mark_w
// CHECK-NOT: store_segment step
// CHECK: dfa.store_segment generation
// CHECK: dfa.control_kernel @control
// CHECK: dfa.entry fill {
// CHECK-NEXT: dfa.upload "segments"
// CHECK-NEXT: dfa.launch_elements @accumulate_w on @w over full acc 0
// CHECK-NEXT: dfa.launch_segments @mark_w
// CHECK-NEXT: }
// CHECK: dfa.entry finish {
// CHECK: dfa.upload "groups"
// CHECK-NEXT: dfa.launch_control @control
// CHECK-NEXT: dfa.read_back
func.func @step(%g: !h {dfa.role = "grad"}, %b: !f {dfa.role = "main_grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "main_grad"}, !dfa.control {dfa.role = "control"}) {
  %r = dfa.accumulate %g into %b : !h, !f
  %k = dfa.zero_grad generation %ctl
  return %r, %k : !f, !dfa.control
}

// -----

// What is made of the sum runs in finish, the norm too; gradients that are
// reduced over ranks are those sums.
!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.entry fill {
// CHECK: dfa.launch_elements @accumulate_w
// CHECK: dfa.entry reduce {
// CHECK: dfa.collective reduce_scatter over "shard" class @w "main_grad" to "main_grad"
// CHECK: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK: dfa.entry finish {
// CHECK-NOT: launch_elements
// CHECK: dfa.launch_control @control mode local acc 0
func.func @step(%g: !f {dfa.role = "grad"}, %b: !f {dfa.role = "main_grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "main_grad"}, !dfa.control {dfa.role = "control"}) {
  %r = dfa.accumulate %g into %b : !f, !f
  %rs = dfa.reduce_scatter sum %r over "shard" : !f -> !s
  %a = dfa.norm_partial %rs : !s -> !dfa.partial<l2, whole>
  %c = dfa.combine %a over ["shard"] : !dfa.partial<l2, whole>
  %n = dfa.norm_finish %c : !dfa.partial<l2, whole> -> f64
  %k1 = dfa.write %n, %ctl["norm"] : f64
  %k = dfa.zero_grad generation %k1
  return %r, %k : !f, !dfa.control
}

// -----

// Ranks agree on which parameters have a gradient before anything looks at
// them, on the axes that the step names; norms wait for it.
!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.entry reduce {
// CHECK-NOT: launch_elements
// CHECK: dfa.entry finish {
// CHECK: dfa.collective all_reduce over "replicate" "presence" to "presence" reduce max order any acc 0 accs 0
// CHECK-NEXT: dfa.collective all_reduce over "shard" "presence" to "presence" reduce max order any acc 0 accs 0
// CHECK: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK-NEXT: dfa.launch_control @control mode local acc 0
func.func @step(%g: !f {dfa.role = "grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"})
    attributes {dfa.presence = ["replicate", "shard"]} {
  %rs = dfa.reduce_scatter sum %g over "shard" : !f -> !s
  %a = dfa.norm_partial %rs : !s -> !dfa.partial<l2, whole>
  %c = dfa.combine %a over ["shard"] : !dfa.partial<l2, whole>
  %n = dfa.norm_finish %c : !dfa.partial<l2, whole> -> f64
  %k1 = dfa.write %n, %ctl["norm"] : f64
  return %k1 : !dfa.control
}

// -----

// A read sees the control value it names: before the write, though it is used
// after it.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.control_kernel @control accumulators [sum]
// CHECK-NEXT: ^bb0(%[[SUM:.*]]: f64):
// CHECK: %[[OLD:.*]] = dfa.load_control "norm"
// CHECK: %[[NEW:.*]] = math.sqrt %[[SUM]]
// CHECK: %[[TWO:.*]] = arith.addf %[[OLD]], %[[NEW]]
// CHECK-DAG: dfa.store_control "norm", %[[NEW]]
// CHECK-DAG: dfa.store_control "max_norm", %[[TWO]]
func.func @step(%g: !f {dfa.role = "grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %k = dfa.write %n, %ctl["norm"] : f64
  %old = dfa.read %ctl["norm"] : f64
  %new = dfa.read %k["norm"] : f64
  %sum = arith.addf %old, %new : f64
  %k2 = dfa.write %sum, %k["max_norm"] : f64
  return %k2 : !dfa.control
}

// -----

// Two stages of reductions: the norm after clipping by value needs the first.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @reduce_w {{.*}} accumulators [sum]
// CHECK: dfa.kernel @reduce_w_1 {{.*}} accumulators [sum]
// CHECK: dfa.kernel @update_w {{.*}} accumulators []
// CHECK: dfa.segment_kernel @segments_w
// CHECK: dfa.segment_kernel @segments_w_1
// CHECK: dfa.program {{.*}} accumulators 2
// CHECK: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK-NEXT: dfa.launch_control @control mode whole acc 0
// CHECK-NEXT: dfa.launch_segments @segments_w on @w acc 0
// CHECK-NEXT: dfa.launch_elements @reduce_w_1 on @w over atoms acc 1
// CHECK-NEXT: dfa.launch_control @control_1 mode whole acc 1
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK-NEXT: dfa.launch_segments @segments_w_1 on @w acc 0
// CHECK-NEXT: dfa.launch_elements @update_w on @w over chunks acc 0
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}) {
  %max = dfa.read %ctl["max_norm"] : f64
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l1, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l1, whole> -> f64
  %c = dfa.clip_value %g to %n : !f, f64
  %b = dfa.norm_partial %c : !f -> !dfa.partial<l2, whole>
  %m = dfa.norm_finish %b : !dfa.partial<l2, whole> -> f64
  %d = dfa.clip %c with %m to %max : !f, f64, f64
  %r = dfa.sgd ins(%d : !f) outs(%p : !f) control(%ctl) -> !f
  return %r : !f
}

// -----

// An old value that is needed after an earlier kernel has written the field
// waits in a scratch slot.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.control_kernel @control accumulators []
// CHECK: %[[OLD:.*]] = dfa.load_control "max_norm"
// CHECK: dfa.store_scratch [[SLOT:[0-9]+]], %[[OLD]]
// CHECK: dfa.store_control "max_norm"
// CHECK: dfa.control_kernel @control_1 accumulators [sum]
// CHECK-NOT: dfa.load_control "max_norm"
// CHECK: dfa.load_scratch [[SLOT]]
// CHECK: dfa.entry finish {
// CHECK: dfa.launch_control @control mode whole
// CHECK-NEXT: dfa.launch_elements @reduce_w
// CHECK-NEXT: dfa.launch_control @control_1 mode whole
func.func @step(%g: !f {dfa.role = "grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %half = arith.constant 0.5 : f64
  %k = dfa.write %half, %ctl["max_norm"] : f64
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %old = dfa.read %ctl["max_norm"] : f64
  %s = arith.addf %n, %old : f64
  %k2 = dfa.write %s, %k["norm"] : f64
  return %k2 : !dfa.control
}
