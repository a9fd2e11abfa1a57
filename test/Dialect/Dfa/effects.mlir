// RUN: dfa-opt %s --cse --canonicalize --cse | FileCheck %s

!f = !dfa.flat<@l, @w, full, f32>

// Ops on values: alike ones become one, unused ones disappear.
// CHECK-LABEL: func.func @values(
func.func @values(%g: !f, %s: f32, %c: !dfa.control) -> (!f, !f, f64) {
  // CHECK-NEXT: %[[U:.*]] = dfa.unscale
  %0 = dfa.unscale %g by %s : !f, f32 -> !f
  %1 = dfa.unscale %g by %s : !f, f32 -> !f
  %unused = dfa.norm_partial %g : !f -> !dfa.partial<l2, whole>
  %dead = dfa.step_count %c
  // CHECK-NEXT: %[[N:.*]] = dfa.read
  %2 = dfa.read %c["norm"] : f64
  %3 = dfa.read %c["norm"] : f64
  // CHECK-NEXT: arith.addf %[[N]], %[[N]]
  %4 = arith.addf %2, %3 : f64
  // CHECK-NEXT: return %[[U]], %[[U]]
  return %0, %1, %4 : !f, !f, f64
}

// A read sees the control value that it names, so a write between two reads
// keeps them apart.
// CHECK-LABEL: func.func @control(
// CHECK-SAME: %[[C:.*]]: !dfa.control
func.func @control(%c: !dfa.control, %n: f64) -> (f64, f64, !dfa.control) {
  // CHECK-NEXT: %[[A:.*]] = dfa.read %[[C]]["norm"]
  %0 = dfa.read %c["norm"] : f64
  // CHECK-NEXT: %[[D:.*]] = dfa.write %{{.*}}, %[[C]]["norm"]
  %1 = dfa.write %n, %c["norm"] : f64
  // CHECK-NEXT: %[[B:.*]] = dfa.read %[[D]]["norm"]
  %2 = dfa.read %1["norm"] : f64
  // CHECK-NEXT: return %[[A]], %[[B]], %[[D]]
  return %0, %2, %1 : f64, f64, !dfa.control
}

// Forgetting gradients is a change even where nothing reads the result.
// CHECK-LABEL: func.func @zero_grad(
func.func @zero_grad(%c: !dfa.control, %g: !f) {
  // CHECK-NEXT: dfa.zero_grad generation
  // CHECK-NEXT: dfa.zero_grad memset
  // CHECK-NEXT: return
  %0 = dfa.zero_grad generation %c
  %1 = dfa.zero_grad memset %c, %g : !f
  return
}

// Updates that are alike are one; what they yield decides.
// CHECK-LABEL: func.func @updates(
func.func @updates(%p: !f, %c: !dfa.control) -> (!f, !f, !f) {
  // CHECK-COUNT-2: dfa.update
  // CHECK-NOT: dfa.update
  %0 = dfa.update outs(%p : !f) control(%c) hyper [] derive {
  ^bb0(%t: i64):
    dfa.yield
  } apply {
  ^bb0(%x: f32):
    %y = arith.addf %x, %x : f32
    dfa.yield %y : f32
  } : !f
  %1 = dfa.update outs(%p : !f) control(%c) hyper [] derive {
  ^bb0(%t: i64):
    dfa.yield
  } apply {
  ^bb0(%x: f32):
    %y = arith.addf %x, %x : f32
    dfa.yield %y : f32
  } : !f
  %2 = dfa.update outs(%p : !f) control(%c) hyper [] derive {
  ^bb0(%t: i64):
    dfa.yield
  } apply {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %x : f32
    dfa.yield %y : f32
  } : !f
  return %0, %1, %2 : !f, !f, !f
}

// Tables of a kernel: loads are shared up to the next store, stores stay and
// keep their order.
// CHECK-LABEL: dfa.control_kernel @tables
dfa.control_kernel @tables accumulators [] {
  // CHECK-NEXT: %[[A:.*]] = dfa.load_control "norm"
  %a = dfa.load_control "norm" : f64
  %b = dfa.load_control "norm" : f64
  // CHECK-NEXT: arith.addf %[[A]], %[[A]]
  %c = arith.addf %a, %b : f64
  // CHECK-NEXT: dfa.store_control "norm"
  dfa.store_control "norm", %c : f64
  // CHECK-NEXT: %[[D:.*]] = dfa.load_control "norm"
  %d = dfa.load_control "norm" : f64
  // CHECK-NEXT: dfa.store_scratch 0, %[[D]]
  dfa.store_scratch 0, %d : f64
  // CHECK-NEXT: dfa.store_scratch 0, %[[A]]
  dfa.store_scratch 0, %a : f64
  // CHECK-NEXT: dfa.yield
  %unused = dfa.load_scratch 1 : f64
  dfa.yield
}

// CHECK-LABEL: dfa.segment_kernel @rows
dfa.segment_kernel @rows on @l::@w accumulators [] {
  // CHECK-NEXT: %[[T:.*]] = dfa.load_segment step
  // CHECK-NEXT: dfa.store_segment step, %[[T]]
  %t = dfa.load_segment step : i64
  dfa.store_segment step, %t : i64
  // CHECK-NEXT: %[[LR:.*]] = dfa.load_hyper "lr"
  %lr = dfa.load_hyper "lr" at 0 : f64
  // CHECK-NEXT: %[[X:.*]] = arith.truncf %[[LR]]
  %x = arith.truncf %lr : f64 to f32
  // CHECK-NEXT: dfa.store_derived 0, %[[X]]
  dfa.store_derived 0, %x : f32
  // CHECK-NEXT: dfa.store_derived 1, %[[X]]
  dfa.store_derived 1, %x : f32
  dfa.yield
}

// Commands of a program are never moved, merged or dropped.
// CHECK-LABEL: dfa.program @p
dfa.program @p on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["g"] types [f32] parts [full] derived 0
  dfa.entry finish {
    // CHECK: dfa.upload "groups"
    // CHECK-NEXT: dfa.memset @w "g"
    // CHECK-NEXT: dfa.memset @w "g"
    // CHECK-NEXT: dfa.barrier over "shard"
    // CHECK-NEXT: dfa.barrier over "shard"
    // CHECK-NEXT: dfa.fetch "scale"
    // CHECK-NEXT: dfa.read_back
    // CHECK-NEXT: }
    dfa.upload "groups"
    dfa.memset @w "g"
    dfa.memset @w "g"
    dfa.barrier over "shard"
    dfa.barrier over "shard"
    %s = dfa.fetch "scale" : f32
    dfa.read_back
  }
}
