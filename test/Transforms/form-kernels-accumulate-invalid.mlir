// RUN: dfa-opt %s --dfa-generalize-rules --dfa-defer-factors --dfa-form-kernels \
// RUN:   --split-input-file --verify-diagnostics

// Accumulation after the generation changed, or to nowhere.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %b: !f {dfa.role = "main_grad"}, %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "main_grad"}, !dfa.control {dfa.role = "control"}) {
  %k = dfa.zero_grad generation %ctl
  // expected-error @below {{expects to come before 'dfa.zero_grad'}}
  %r = dfa.accumulate %g into %b : !f, !f
  return %r, %k : !f, !dfa.control
}

// -----

// The sum goes nowhere.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %b: !f {dfa.role = "main_grad"}, %p: !f {dfa.role = "param"}, %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}) {
  // expected-error @below {{expects its result to be returned}}
  %r = dfa.accumulate %g into %b : !f, !f
  %n = dfa.sgd ins(%r : !f) outs(%p : !f) control(%ctl) -> !f
  return %n : !f
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
!n = !dfa.flat<@l, @n, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.class @n param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !f {dfa.role = "grad"}, %b: !f {dfa.role = "main_grad"},
                %h: !n {dfa.role = "grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "main_grad"}, !dfa.control {dfa.role = "control"}) {
  %r = dfa.accumulate %g into %b : !f, !f
  // expected-error @below {{expects gradients that are accumulated, as others of this step are}}
  %a = dfa.norm_partial %h : !n -> !dfa.partial<l2, whole>
  %m = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %k = dfa.write %m, %ctl["norm"] : f64
  return %r, %k : !f, !dfa.control
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !f {dfa.role = "grad"}, %b: !f {dfa.role = "main_grad"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "main_grad"}) {
  %s = dfa.grad_factor %ctl : f64
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  // expected-error @below {{expects gradients and buckets that are arguments of the step}}
  %r = dfa.accumulate %u into %b : !f, !f
  return %r : !f
}

// -----

!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !s {dfa.role = "grad"}, %b: !s {dfa.role = "main_grad"})
    -> (!s {dfa.role = "main_grad"}) {
  // expected-error @below {{expects gradients and buckets of part 'full', but got '!dfa.flat<@l, @w, shard, f32>'}}
  %r = dfa.accumulate %g into %b : !s, !s
  return %r : !s
}
