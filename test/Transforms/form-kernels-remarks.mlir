// RUN: dfa-opt %s --dfa-to-kernels --remarks-filter=dfa -o /dev/null 2>&1 \
// RUN:   | FileCheck %s

// What was fused, and what was not and why: the norm goes into the control
// block, so it is needed even if the update is skipped.

// CHECK: remark: [Passed] fused | Category:dfa | Function=reduce_w | Remark="0 elementwise ops and 1 reductions in one pass over 1 arrays"
// CHECK: remark: [Missed] separate | Category:dfa | Function=w | Remark="reduction not fused with the stores of its stage: its result is needed even if they are skipped"
// CHECK: remark: [Passed] fused | Category:dfa | Function=update_w | Remark="1 elementwise ops and 0 reductions in one pass over 2 arrays"
// CHECK: remark: [Passed] fused | Category:dfa | Function=reduce_w_1 | Remark="1 elementwise ops and 1 reductions in one pass over 1 arrays"
!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %b = dfa.non_finite %g : !f -> !dfa.partial<flag, whole>
  %i = dfa.flag_finish %b : !dfa.partial<flag, whole> -> i1
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %x = arith.select %i, %zero, %one : f64
  %u = dfa.clip_value %g to %x : !f, f64
  %a = dfa.norm_partial %u : !f -> !dfa.partial<l2, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  %k = dfa.write %n, %ctl["norm"] : f64
  return %r, %k : !f, !dfa.control
}
