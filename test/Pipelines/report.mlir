// RUN: dfa-opt %s --dfa-report | FileCheck %s
// RUN: dfa-opt %s --dfa-report="format=json" | FileCheck %s --check-prefix=JSON
// RUN: dfa-opt %s --dfa-to-kernels --dfa-report | FileCheck %s
// RUN: dfa-opt %s --dfa-report -o - | FileCheck %s --check-prefixes=CHECK,MODULE

// The promise of the mixed-precision step: 28 bytes an element for the update
// (gradient, master, moments and parameter) and one read of the gradient for
// norm and check together; two element kernels, four launches; 12 bytes of
// state a parameter (master, m, v).

// CHECK: step: 2304 elements, 4 launches, 30 B/element, state 12 B/parameter
// CHECK-NEXT: kernel launches B/element arrays
// CHECK-NEXT: reduce_w 1 2 r:grad{{$}}
// CHECK-NEXT: control 1 0
// CHECK-NEXT: segments_w 1 0
// CHECK-NEXT: update_w 1 28 r:grad r:master r:exp_avg r:exp_avg_sq w:master w:exp_avg w:exp_avg_sq w:param{{$}}
// CHECK-NEXT: memory {{[0-9]+}} bytes a rank, floor {{[0-9.e-]+}} ms

// With -o the module, as it came, follows.
// MODULE: func.func @step

// JSON: "bytes_per_element": 30,
// JSON: "collectives": [],
// JSON: "elements": 2304,
// JSON: "floor_ms": {{[0-9.e-]+}},
// JSON: "kernels": [
// JSON: "bytes_per_element": 2,
// JSON: "launches": 1,
// JSON: "name": "reduce_w",
// JSON: "name": "update_w",
// JSON: "launches": 4,
// JSON: "peak_bytes_per_rank":
// JSON: "state_bytes_per_parameter": 12,
// JSON: "version": 1

!g = !dfa.flat<@l, @w, full, bf16>
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = bf16 grad = bf16 master = f32
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
  dfa.param "a" : tensor<16x16x3x3xbf16>, order = [0, 2, 3, 1], class = @w, group = 0
}
func.func @step(%grad: !g {dfa.role = "grad"}, %p: !f {dfa.role = "master"},
                %m: !f {dfa.role = "exp_avg"}, %v: !f {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "master"}, !f {dfa.role = "exp_avg"},
        !f {dfa.role = "exp_avg_sq"}, !g {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %factor = dfa.grad_factor %ctl : f64
  %u = dfa.unscale %grad by %factor : !g, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !dfa.partial<l2, whole>
  %b = dfa.non_finite %u : !f -> !dfa.partial<flag, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %inf = dfa.flag_finish %b : !dfa.partial<flag, whole> -> i1
  %max = dfa.read %ctl["max_norm"] : f64
  %c = dfa.clip %u with %n to %max : !f, f64, f64
  %r:3 = dfa.adam adamw ins(%c : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%ctl) unless %inf -> !f, !f, !f
  %o = dfa.encode bf16 %r#0 : !f -> !g
  %k1 = dfa.scaler_update %ctl, %inf
  %k2 = dfa.step_count %k1 unless %inf
  return %r#0, %r#1, %r#2, %o, %k2 : !f, !f, !f, !g, !dfa.control
}
