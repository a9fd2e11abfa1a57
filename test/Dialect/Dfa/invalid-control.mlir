// RUN: dfa-opt %s --split-input-file --verify-diagnostics

func.func @f(%c: !dfa.control) {
  // expected-error@+1 {{has no control field 'scal'; fields are norm}}
  %0 = dfa.read %c["scal"] : f32
  return
}

// -----

func.func @f(%c: !dfa.control) {
  // expected-error@+1 {{has no control field 'reserved0'}}
  %0 = dfa.read %c["reserved0"] : i32
  return
}

// -----

func.func @f(%c: !dfa.control) {
  // expected-error@+1 {{expects type 'f32' for control field 'scale', but got 'f64'}}
  %0 = dfa.read %c["scale"] : f64
  return
}

// -----

func.func @f(%c: !dfa.control) {
  // expected-error@+1 {{expects type 'i32' for control field 'found_inf', but got 'i1'}}
  %0 = dfa.read %c["found_inf"] : i1
  return
}

// -----

func.func @f(%v: f64, %c: !dfa.control) {
  // expected-error@+1 {{has no control field ''}}
  %0 = dfa.write %v, %c[""] : f64
  return
}

// -----

func.func @f(%v: i1, %c: !dfa.control) {
  // expected-error@+1 {{expects type 'f64' for control field 'norm', but got 'i1'}}
  %0 = dfa.write %v, %c["norm"] : i1
  return
}

// -----

func.func @f(%c: !dfa.control, %g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects no gradients in mode 'generation', which moves no bytes, but got 1}}
  %0 = dfa.zero_grad generation %c, %g : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%c: !dfa.control) {
  // expected-error@+1 {{expects the gradients to clear in mode 'memset'}}
  %0 = dfa.zero_grad memset %c
  return
}

// -----

func.func @f(%c: !dfa.control) {
  // expected-error@+1 {{expected one of [generation, memset] for how gradients are forgotten, got: now}}
  %0 = dfa.zero_grad now %c
  return
}

// -----

func.func @f(%a: !dfa.per<param, f32>) {
  // expected-error@+1 {{must be one f64 for each group or parameter, but got '!dfa.per<param, f32>'}}
  %0 = dfa.trust_ratio %a, %a : !dfa.per<param, f32>
  return
}

// -----

func.func @f(%a: !dfa.per<param, f32>, %m: f64) {
  // expected-error@+1 {{must be norm, but got '!dfa.per<param, f32>'}}
  %0 = dfa.clip_factor %a to %m : !dfa.per<param, f32>
  return
}

// -----

// expected-error@+1 {{expects 'dfa.presence' to be a list of mesh axes, but got "shard"}}
func.func @step() attributes {dfa.presence = "shard"} {
  return
}

// -----

// expected-error@+1 {{expects 'dfa.presence' on a function only}}
module attributes {dfa.presence = ["shard"]} {
}
