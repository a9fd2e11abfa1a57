// RUN: dfa-opt %s --dfa-to-kernels | FileCheck %s
// RUN: dfa-opt %s --dfa-to-kernels --remarks-filter=dfa -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// Mixed precision with unscaling, norm, check, clip, AdamW, cast and scaler:
// two element kernels, each array read once and written once.

!g = !dfa.flat<@model, @w, full, bf16>
!f = !dfa.flat<@model, @w, full, f32>
!l2 = !dfa.partial<l2, whole>
!flag = !dfa.partial<flag, whole>

dfa.layout @model {
  dfa.class @w param = bf16 grad = bf16 master = f32
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
  dfa.param "a" : tensor<8x4x3x3xbf16>, order = [0, 2, 3, 1], class = @w, group = 0
}

// Norm and check share a pass and an accumulator.
// CHECK: dfa.kernel @reduce_w on @model::@w
// CHECK-SAME: arrays [#dfa.array<"grad", bf16, read>] accumulators [sum] uniform {
// CHECK: dfa.load_segment active
// CHECK-NOT: load_scratch
// CHECK: } body {
// CHECK-NEXT: ^bb0(%[[X:.*]]: bf16):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[X]] : bf16 to f64
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f64
// CHECK-NEXT: dfa.yield %[[SQUARE]] : f64

// CHECK: dfa.kernel @update_w on @model::@w
// CHECK-SAME: arrays [#dfa.array<"grad", bf16, read>, #dfa.array<"master", f32, readwrite>, #dfa.array<"exp_avg", f32, readwrite>, #dfa.array<"exp_avg_sq", f32, readwrite>, #dfa.array<"param", bf16, write>] accumulators [] uniform {
// The flag keeps the kernel from running, so a skipped step changes nothing.
// CHECK: %[[ACTIVE:.*]] = arith.cmpi ne
// CHECK: %[[WORD:.*]] = dfa.load_scratch [[FLAG:[0-9]+]] : i32
// CHECK: %[[CLEAR:.*]] = arith.cmpi eq, %[[WORD]]
// CHECK: %[[GO:.*]] = arith.andi %[[ACTIVE]], %[[CLEAR]] : i1
// CHECK: dfa.yield %[[GO]]
// CHECK: } body {
// CHECK-NEXT: ^bb0(%[[FACTOR:[a-z0-9]+]]: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %[[GRAD:[a-z0-9]+]]: bf16, %[[P:[a-z0-9]+]]: f32, %[[M:[a-z0-9]+]]: f32, %[[V:[a-z0-9]+]]: f32):
// CHECK-NEXT: %[[GW:.*]] = arith.extf %[[GRAD]] : bf16 to f32
// CHECK-NEXT: %[[GS:.*]] = arith.mulf %[[GW]], %[[FACTOR]] : f32
// CHECK: %[[NEW:.*]] = arith.subf %[[P]],
// CHECK-NEXT: %[[STORED:.*]] = arith.truncf %[[NEW]] : f32 to bf16
// CHECK-NEXT: dfa.yield %[[NEW]], %{{.*}}, %{{.*}}, %[[STORED]] : f32, f32, f32, bf16

// The step of a parameter is counted where its update is, under the flag.
// CHECK: dfa.segment_kernel @segments_w on @model::@w accumulators [] {
// CHECK: dfa.store_derived 6
// CHECK: dfa.load_scratch [[FLAG]]
// CHECK: %[[STEP:.*]] = arith.select
// CHECK: dfa.store_segment step, %[[STEP]] : i64

// All scalar work is one control kernel; the flag is the accumulator's.
// CHECK: dfa.control_kernel @control accumulators [sum] {
// CHECK-NEXT: ^bb0(%[[SUM:.*]]: f64):
// CHECK: math.sqrt %[[SUM]]
// CHECK: %[[FINITE:.*]] = arith.cmpf olt, %[[SUM]], %{{.*}} : f64
// CHECK: arith.select %[[FINITE]]
// CHECK: dfa.store_scratch [[FLAG]], %{{.*}} : i32
// CHECK-DAG: dfa.store_control "norm"
// CHECK-DAG: dfa.store_control "scale"
// CHECK-DAG: dfa.store_control "growth_tracker"
// CHECK-DAG: dfa.store_control "step"
// CHECK-DAG: dfa.store_control "skipped"
// CHECK-DAG: dfa.store_control "found_inf"
// CHECK-DAG: dfa.store_control "generation"
// CHECK: dfa.yield

// CHECK: dfa.control_kernel @zero_grad accumulators []

// CHECK: dfa.program @step on @model hyper ["lr", "beta1", "beta2", "eps", "weight_decay"] accumulators 1 group_stats 0 attributes {control = {max_norm = 1.000000e+00 : f64, scale = 6.553600e+04 : f64}} {
// CHECK-NEXT: dfa.program_class @w arrays ["grad", "master", "exp_avg", "exp_avg_sq", "param"] types [bf16, f32, f32, f32, bf16] parts [full, full, full, full, full] derived 7
// CHECK-NEXT: dfa.entry finish {
// CHECK-NEXT: dfa.upload "segments"
// CHECK-NEXT: dfa.upload "groups"
// CHECK-NEXT: dfa.launch_elements @reduce_w on @w over atoms acc 0
// CHECK-NEXT: dfa.launch_control @control mode whole acc 0
// CHECK-NEXT: dfa.record "[[SIDE:.*]]" on compute
// CHECK-NEXT: dfa.wait "[[SIDE]]" on side
// CHECK-NEXT: dfa.read_back on side
// CHECK-NEXT: dfa.launch_segments @segments_w on @w acc 0
// CHECK-NEXT: dfa.launch_elements @update_w on @w over chunks acc 0
// CHECK-NEXT: dfa.record "[[DONE:.*]]" on side
// CHECK-NEXT: dfa.wait "[[DONE]]" on compute
// CHECK-NEXT: }
// CHECK-NEXT: dfa.entry zero_grad {
// CHECK-NEXT: dfa.launch_control @zero_grad mode whole acc 0
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NOT: func.func

// REMARK: remark: [Passed] fused | Category:dfa | Function=reduce_w | Remark="0 elementwise ops and 1 reductions in one pass over 1 arrays"
// REMARK: remark: [Passed] fused | Category:dfa | Function=update_w | Remark="3 elementwise ops and 0 reductions in one pass over 5 arrays"
func.func @step(%grad: !g {dfa.role = "grad"}, %p: !f {dfa.role = "master"},
                %m: !f {dfa.role = "exp_avg"}, %v: !f {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "master"}, !f {dfa.role = "exp_avg"},
        !f {dfa.role = "exp_avg_sq"}, !g {dfa.role = "param"},
        !dfa.control {dfa.role = "control"})
    attributes {dfa.control = {max_norm = 1.0, scale = 65536.0}} {
  %factor = dfa.grad_factor %ctl : f64
  %u = dfa.unscale %grad by %factor : !g, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !l2
  %b = dfa.non_finite %u : !f -> !flag
  %n = dfa.norm_finish %a : !l2 -> f64
  %inf = dfa.flag_finish %b : !flag -> i1
  %max = dfa.read %ctl["max_norm"] : f64
  %c = dfa.clip %u with %n to %max : !f, f64, f64
  %r:3 = dfa.adam adamw ins(%c : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%ctl) unless %inf -> !f, !f, !f
  %o = dfa.encode bf16 %r#0 : !f -> !g
  %k1 = dfa.write %n, %ctl["norm"] : f64
  %k2 = dfa.scaler_update %k1, %inf
  %k3 = dfa.step_count %k2 unless %inf
  %k4 = dfa.zero_grad generation %k3
  return %r#0, %r#1, %r#2, %o, %k4 : !f, !f, !f, !g, !dfa.control
}
