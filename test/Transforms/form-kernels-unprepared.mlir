// RUN: dfa-opt %s --dfa-form-kernels --split-input-file --verify-diagnostics

// Passes that come before, left out.

!f = !dfa.flat<@l, @w, full, f32>
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}) {
  // expected-error @below {{expects generic updates; run dfa-generalize-rules first}}
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) -> !f
  return %r : !f
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
func.func @step(%g: !f {dfa.role = "grad"}, %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "out"}) {
  %n = dfa.read %ctl["norm"] : f64
  // expected-error @below {{expects to be a factor by now; run dfa-defer-factors first}}
  %c = dfa.clip %g with %n to %n : !f, f64, f64
  return %c : !f
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
// expected-error @below {{expects a step of one block}}
func.func @step(%g: !f {dfa.role = "grad"}) {
  llvm.br ^bb1
^bb1:
  return
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
// expected-error @below {{expects a 'dfa.role' on argument #0 of the step}}
func.func @step(%g: !f) {
  return
}

// -----

!f = !dfa.flat<@l, @w, full, f32>
// expected-error @below {{expects a 'dfa.role' on result #0 of the step}}
func.func @step(%g: !f {dfa.role = "grad"}) -> !f {
  return %g : !f
}

// -----

// expected-error @below {{expects role 'x' of class '@w' to have one element type, but got 'f32' and 'bf16'}}
func.func @step(%g: !dfa.flat<@l, @w, full, f32> {dfa.role = "x"})
    -> (!dfa.flat<@l, @w, full, bf16> {dfa.role = "x"}) {
  %e = dfa.encode bf16 %g : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, bf16>
  return %e : !dfa.flat<@l, @w, full, bf16>
}
