// RUN: dfa-opt %s --dfa-report | FileCheck %s

// Remainders save two bytes: 26 for the update, 2 for norm and check; 10 bytes
// of state a parameter.

// CHECK: step: 4 launches, 28 B/element, state 10 B/parameter
// CHECK: reduce_w 1 2 r:grad{{$}}
// CHECK: update_w 1 26 r:grad r:param r:remainder r:exp_avg r:exp_avg_sq w:param w:remainder w:exp_avg w:exp_avg_sq{{$}}

!h = !dfa.flat<@l, @w, full, bf16>
!i = !dfa.flat<@l, @w, full, i16>
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = bf16 grad = bf16 master = remainder
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
}
func.func @step(%g: !h {dfa.role = "grad"}, %hi: !h {dfa.role = "param"},
                %lo: !i {dfa.role = "remainder"}, %m: !f {dfa.role = "exp_avg"},
                %v: !f {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!h {dfa.role = "param"}, !i {dfa.role = "remainder"},
        !f {dfa.role = "exp_avg"}, !f {dfa.role = "exp_avg_sq"},
        !dfa.control {dfa.role = "control"}) {
  %factor = dfa.grad_factor %ctl : f64
  %u = dfa.unscale %g by %factor : !h, f64 -> !f
  %a = dfa.norm_partial %u : !f -> !dfa.partial<l2, whole>
  %b = dfa.non_finite %u : !f -> !dfa.partial<flag, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %inf = dfa.flag_finish %b : !dfa.partial<flag, whole> -> i1
  %p = dfa.decode remainder %hi, %lo : !h, !i -> !f
  %r:3 = dfa.adam adamw ins(%u : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%ctl) unless %inf -> !f, !f, !f
  %nhi, %nlo = dfa.encode remainder %r#0 : !f -> !h, !i
  %k = dfa.write %n, %ctl["norm"] : f64
  return %nhi, %nlo, %r#1, %r#2, %k : !h, !i, !f, !f, !dfa.control
}
