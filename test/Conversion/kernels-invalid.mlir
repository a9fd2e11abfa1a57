// RUN: dfa-opt %s --dfa-convert-kernels-to-loops --split-input-file --verify-diagnostics
// RUN: dfa-opt %s --dfa-convert-kernels-to-gpu --split-input-file --verify-diagnostics

// expected-note@+1 {{the program is here}}
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
}
// expected-error@+1 {{expects a class of the program, but got 'w'}}
dfa.kernel @k on @l::@w arrays [#dfa.array<"param", f32, write>]
    accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  %one = arith.constant 1.0 : f32
  dfa.yield %one : f32
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note@+1 {{the class's arrays are listed here}}
  dfa.program_class @w arrays ["grad"] types [f32] parts [full] derived 0
}
// expected-error@+1 {{expects arrays of class 'w', but got 'param'}}
dfa.kernel @k on @l::@w arrays [#dfa.array<"param", f32, write>]
    accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  %one = arith.constant 1.0 : f32
  dfa.yield %one : f32
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"param", bf16, readwrite>]
    accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%p: bf16):
  // expected-error@+1 {{has no lowering on 16-bit floats}}
  %q = arith.mulf %p, %p : bf16
  dfa.yield %q : bf16
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"param", f16, readwrite>]
    accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%p: f16):
  %w = arith.extf %p : f16 to f64
  // expected-error@+1 {{expects an operand of type f32 where the result is 'f16', but got 'f64'}}
  %q = arith.truncf %w : f64 to f16
  dfa.yield %q : f16
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"param", f32, write>]
    accumulators [] uniform {
  %true = arith.constant true
  // expected-error@+1 {{is not available in this kind of kernel, which has no group row}}
  %lr = dfa.load_hyper "lr" at 0 : f64
  %x = arith.truncf %lr : f64 to f32
  dfa.yield %true, %x : i1, f32
} body {
^bb0(%x: f32):
  dfa.yield %x : f32
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"param", f32, write>]
    accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  // expected-error@+1 {{expects to be in 'uniform', but is in 'body'}}
  %x = dfa.load_derived 0 : f32
  dfa.yield %x : f32
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{is not available in this kind of kernel, which has no segment}}
  %t = dfa.load_segment step : i64
  dfa.yield
}
