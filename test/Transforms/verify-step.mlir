// RUN: dfa-opt %s --dfa-verify-step --split-input-file --verify-diagnostics

// One failing step for each check, after one that passes.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !f {dfa.role = "grad"}, %c: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "grad"}, !dfa.control {dfa.role = "control"}) {
  %k = dfa.step_count %c
  return %g, %k : !f, !dfa.control
}

// -----

// expected-error @below {{expects a function named 'step'}}
module {
}

// -----

// expected-error @below {{expects a step of one block}}
func.func @step() {
  llvm.br ^bb1
^bb1:
  return
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
// expected-error @below {{expects a 'dfa.layout' @l, but found none}}
func.func @step(%g: !f {dfa.role = "grad"}) {
  return
}

// -----

// expected-note @below {{layout defined here}}
dfa.layout @l {
}
// expected-error @below {{expects a 'dfa.class' @w in layout @l, but found none}}
func.func @step(%g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"}) {
  return
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
dfa.layout @k {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(
    %g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"},
    // expected-error @below {{expects all values of a step in layout @l, but got '!dfa.flat<@k, @w, full, f32>'}}
    %h: !dfa.flat<@k, @w, full, f32> {dfa.role = "other"}) {
  return
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// expected-error @below {{expects layout @l on a mesh to have shards, but got '!dfa.flat<@l, @w, shard, f32>'}}
func.func @step(%g: !dfa.flat<@l, @w, shard, f32> {dfa.role = "grad"}) {
  return
}

// -----

// A value inside the step, not an argument.
// expected-note @below {{layout defined here}}
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%c: !dfa.control {dfa.role = "control"}) {
  // expected-error @below {{expects a 'dfa.class' @x in layout @l, but found none}}
  %u = dfa.update control(%c) hyper [] derive {
  ^bb0(%t: i64):
    dfa.yield
  } apply {
    %z = arith.constant 0.0 : f32
    dfa.yield %z : f32
  } : !dfa.flat<@l, @x, full, f32>
  return
}

// -----

// expected-error @below {{expects arguments of type '!dfa.flat' or '!dfa.control', but argument #0 is of type 'f64'}}
func.func @step(%lr: f64 {dfa.role = "lr"}) {
  return
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// expected-error @below {{expects a 'dfa.role' on argument #0}}
func.func @step(%g: !f) {
  return
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// expected-error @below {{expects each role once a class, but class @w has two arguments of role "grad"}}
func.func @step(%g: !f {dfa.role = "grad"}, %h: !f {dfa.role = "grad"}) {
  return
}

// -----

// expected-error @below {{expects at most one '!dfa.control' argument, but got 2}}
func.func @step(%a: !dfa.control {dfa.role = "control"}, %b: !dfa.control {dfa.role = "control"}) {
  return
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// expected-error @below {{expects a 'dfa.role' on result #0}}
func.func @step(%g: !f {dfa.role = "grad"}) -> !f {
  return %g : !f
}

// -----

// A scalar that is returned would go nowhere.
// expected-error @below {{expects results of type '!dfa.flat' or '!dfa.control', but result #0 is of type 'f64'}}
func.func @step(%c: !dfa.control {dfa.role = "control"})
    -> (f64 {dfa.role = "norm"}) {
  %n = dfa.read %c["norm"] : f64
  return %n : f64
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// expected-error @below {{expects each role once a class, but class @w has two results of role "grad"}}
func.func @step(%g: !f {dfa.role = "grad"})
    -> (!f {dfa.role = "grad"}, !f {dfa.role = "grad"}) {
  return %g, %g : !f, !f
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
!h = !dfa.flat<@l, @w, full, bf16>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// expected-error @below {{expects result #0 of role "x" with elements of type 'f32' as its argument has, but got 'bf16'}}
func.func @step(%g: !f {dfa.role = "x"}) -> (!h {dfa.role = "x"}) {
  %e = dfa.encode bf16 %g : !f -> !h
  return %e : !h
}

// -----

// The layout of memory follows the formats of the class.
dfa.layout @l {
  // expected-note @below {{class defined here}}
  dfa.class @w param = bf16 grad = bf16 master = f32 states = [] rule = sgd
}
// expected-error @below {{expects role "grad" in format bf16, as its class has it, but got '!dfa.flat<@l, @w, full, f32>'}}
func.func @step(%g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"}) {
  return
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
!h = !dfa.flat<@l, @w, full, bf16>
dfa.layout @l {
  // expected-note @below {{class defined here}}
  dfa.class @w param = f32 grad = f32 master = none states = [momentum_buffer : f32] rule = sgd
}
// expected-error @below {{expects role "momentum_buffer" in format f32}}
func.func @step(%g: !f {dfa.role = "grad"}) -> (!h {dfa.role = "momentum_buffer"}) {
  %e = dfa.encode bf16 %g : !f -> !h
  return %e : !h
}

// -----

!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !s {dfa.role = "x"}, %c: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %p = dfa.norm_partial %g : !s -> !dfa.partial<l2, whole>
  %q = dfa.combine %p, %p : !dfa.partial<l2, whole>
  // expected-error @below {{expects partials of a shard to be combined over the ranks that hold the other shards; use 'dfa.combine' with 'over'}}
  %n = dfa.norm_finish %q : !dfa.partial<l2, whole> -> f64
  %k = dfa.write %n, %c["norm"] : f64
  return %k : !dfa.control
}

// -----

// Combining over replicas leaves the other shards out.
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !s {dfa.role = "x"}, %c: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %p = dfa.non_finite %g : !s -> !dfa.partial<flag, whole>
  %q = dfa.combine %p over ["replicate"] : !dfa.partial<flag, whole>
  // expected-error @below {{expects partials of a shard to be combined}}
  %n = dfa.flag_finish %q : !dfa.partial<flag, whole> -> i1
  %k = dfa.step_count %c unless %n
  return %k : !dfa.control
}

// -----

func.func @step(%c: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  // expected-note @below {{the other one is made here}}
  %a = dfa.step_count %c
  // expected-error @below {{makes a second control value from the same one; changes of the control block must follow each other}}
  %b = dfa.step_count %c
  return %a : !dfa.control
}

// -----

func.func @step(%c: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"}) {
  %a = dfa.step_count %c
  // expected-error @below {{makes the last control value, which the step must return}}
  %b = dfa.step_count %a
  return %a : !dfa.control
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
dfa.mesh @dp(shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
// expected-error@+1 {{expects axes of the layout's mesh in 'dfa.presence', but got "replicate"}}
func.func @step(%g: !f {dfa.role = "grad"})
    attributes {dfa.presence = ["shard", "replicate"]} {
  return
}
