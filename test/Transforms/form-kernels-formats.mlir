// RUN: dfa-opt %s --dfa-to-kernels --split-input-file | FileCheck %s

// Remainders: 26 bytes an element. Two arrays hold the master; each is read
// and written once.
!h = !dfa.flat<@l, @w, full, bf16>
!i = !dfa.flat<@l, @w, full, i16>
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = bf16 grad = bf16 master = remainder
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @update_w
// CHECK-SAME: arrays [#dfa.array<"grad", bf16, read>, #dfa.array<"param", bf16, readwrite>, #dfa.array<"remainder", i16, readwrite>, #dfa.array<"exp_avg", f32, readwrite>, #dfa.array<"exp_avg_sq", f32, readwrite>]
// CHECK: ^bb0({{.*}}%[[HIGH:[a-z0-9]+]]: bf16, %[[LOW:[a-z0-9]+]]: i16, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-DAG: arith.bitcast %[[HIGH]] : bf16 to i16
// CHECK-DAG: arith.extsi %[[LOW]] : i16 to i32
// CHECK: dfa.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : bf16, i16, f32, f32
func.func @step(%g: !h {dfa.role = "grad"}, %hi: !h {dfa.role = "param"},
                %lo: !i {dfa.role = "remainder"}, %m: !f {dfa.role = "exp_avg"},
                %v: !f {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!h {dfa.role = "param"}, !i {dfa.role = "remainder"},
        !f {dfa.role = "exp_avg"}, !f {dfa.role = "exp_avg_sq"}) {
  %p = dfa.decode remainder %hi, %lo : !h, !i -> !f
  %u = dfa.decode bf16 %g : !h -> !f
  %r:3 = dfa.adam adamw ins(%u : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%ctl) -> !f, !f, !f
  %nhi, %nlo = dfa.encode remainder %r#0 : !f -> !h, !i
  return %nhi, %nlo, %r#1, %r#2 : !h, !i, !f, !f
}

// -----

// AMSGrad: one more state. No flag: one kernel, whose predicate is only whether
// the parameter has a gradient.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none
    states = [exp_avg : f32, exp_avg_sq : f32, max_exp_avg_sq : f32] rule = adam
}
// CHECK-LABEL: module {
// CHECK-COUNT-1: dfa.kernel @
// CHECK-SAME: #dfa.array<"max_exp_avg_sq", f32, readwrite>] accumulators [] uniform {
// CHECK-NOT: load_scratch
// CHECK: } body {
// CHECK: dfa.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32, f32
// CHECK-NOT: dfa.kernel @
// CHECK: dfa.segment_kernel
// CHECK-NOT: load_scratch
// CHECK: dfa.store_segment step
// CHECK: dfa.program
// CHECK: dfa.upload "groups"
// CHECK-NEXT: dfa.launch_segments
// CHECK-NEXT: dfa.launch_elements
// CHECK-NEXT: dfa.read_back
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %m: !f {dfa.role = "exp_avg"}, %v: !f {dfa.role = "exp_avg_sq"},
                %x: !f {dfa.role = "max_exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "exp_avg"},
        !f {dfa.role = "exp_avg_sq"}, !f {dfa.role = "max_exp_avg_sq"}) {
  %r:4 = dfa.adam adam ins(%g : !f) outs(%p, %m, %v, %x : !f, !f, !f, !f)
    control(%ctl) {amsgrad} -> !f, !f, !f, !f
  return %r#0, %r#1, %r#2, %r#3 : !f, !f, !f, !f
}

// -----

// States in other formats are widened and rounded on the way.
!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, full, f16>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none
    states = [exp_avg : f16] rule = lion
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @update_w {{.*}}#dfa.array<"exp_avg", f16, readwrite>]
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %m: !s {dfa.role = "exp_avg"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !s {dfa.role = "exp_avg"}) {
  %w = dfa.decode f16 %m : !s -> !f
  %r:2 = dfa.lion ins(%g : !f) outs(%p, %w : !f, !f) control(%ctl) -> !f, !f
  %n = dfa.encode f16 %r#1 : !f -> !s
  return %r#0, %n : !f, !s
}

// -----

// An argument that is not used, and one that is returned as it came, are in no
// kernel; the class still has their arrays.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @update_w {{.*}} arrays [#dfa.array<"grad", f32, read>, #dfa.array<"param", f32, readwrite>]
// CHECK-NOT: dfa.kernel @
// CHECK: dfa.program_class @w arrays ["grad", "param", "unused", "kept"]
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %u: !f {dfa.role = "unused"}, %k: !f {dfa.role = "kept"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "kept"}, !f {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) -> !f
  return %k, %r, %ctl : !f, !f, !dfa.control
}

// -----

// One value in two roles is computed once and written twice.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK: dfa.kernel @update_w {{.*}}#dfa.array<"param", f32, readwrite>, #dfa.array<"copy", f32, write>]
// CHECK: %[[NEW:.*]] = math.fma %{{.*}}, %{{.*}}, %arg3 : f32
// CHECK-NEXT: dfa.yield %[[NEW]], %[[NEW]] : f32, f32
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "copy"}) {
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) -> !f
  return %r, %r : !f, !f
}

// -----

// No step to speak of: entries with nothing but tables.
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// CHECK-LABEL: module {
// CHECK-NOT: dfa.kernel @
// CHECK: dfa.program @step
// CHECK: dfa.entry finish {
// CHECK-NEXT: dfa.upload "segments"
// CHECK-NEXT: dfa.upload "groups"
// CHECK-NEXT: dfa.read_back
func.func @step(%g: !f {dfa.role = "grad"}) {
  return
}
