// RUN: dfa-opt %s --split-input-file --allow-unregistered-dialect --verify-diagnostics

// expected-error@+1 {{expects arrays that differ, but got 'g' twice}}
dfa.kernel @k on @l::@w arrays [#dfa.array<"g", f32, read>, #dfa.array<"g", f32, read>] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%a: f32, %b: f32):
  dfa.yield
}

// -----

// expected-error@+1 {{expects 'uniform' to have arguments (), but got ('f32')}}
dfa.kernel @k on @l::@w arrays [] accumulators [] uniform {
^bb0(%f: f32):
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  dfa.yield
}

// -----

// expected-error@+1 {{expects 'uniform' to yield an i1 predicate first}}
dfa.kernel @k on @l::@w arrays [] accumulators [] uniform {
  dfa.yield
} body {
  dfa.yield
}

// -----

// expected-error@+1 {{expects 'uniform' to yield an i1 predicate first}}
dfa.kernel @k on @l::@w arrays [] accumulators [] uniform {
  %f = arith.constant 1.0 : f32
  dfa.yield %f : f32
} body {
^bb0(%f: f32):
  dfa.yield
}

// -----

// expected-error@+1 {{expects 'uniform' to yield an i1 predicate first}}
dfa.kernel @k on @l::@w arrays [] accumulators [] uniform {
  "foo.end"() : () -> ()
} body {
  dfa.yield
}

// -----

// expected-error@+1 {{expects 'body' to have arguments ('bf16'), but got ('f32')}}
dfa.kernel @k on @l::@w arrays [#dfa.array<"g", bf16, read>] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%a: f32):
  dfa.yield
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"p", f32, write>] accumulators [sum] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  %f = arith.constant 1.0 : f32
  // expected-error@+1 {{expects values of types ('f32', 'f64'), but got ('f32')}}
  dfa.yield %f : f32
}

// -----

// expected-error@+1 {{expects 'body' to end in 'dfa.yield'}}
dfa.kernel @k on @l::@w arrays [] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  "foo.end"() : () -> ()
}

// -----

// expected-error@+1 {{expects a non-empty block}}
dfa.kernel @k on @l::@w arrays [] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {

}

// -----

// expected-error@+1 {{expects a class of a layout, as in '@layout::@class', but got @w}}
dfa.kernel @k on @w arrays [] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  dfa.yield
}

// -----

// expected-note@+1 {{layout defined here}}
dfa.layout @l {
}
// expected-error@+1 {{expects @l::@w to be a 'dfa.class', but found none}}
dfa.kernel @k on @l::@w arrays [] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
  dfa.yield
}

// -----

// expected-note@+1 {{layout defined here}}
dfa.layout @l {
}
// expected-error@+1 {{expects @l::@w to be a 'dfa.class', but found none}}
dfa.segment_kernel @k on @l::@w accumulators [] {
  dfa.yield
}

// -----

// expected-error@+1 {{expects accumulator kind sum or max, but got 'min'}}
dfa.control_kernel @k accumulators [min] {
  dfa.yield
}

// -----

// expected-error@+1 {{expects the body to have arguments ('f64'), but got ()}}
dfa.control_kernel @k accumulators [sum] {
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [sum] {
^bb0(%s: f64):
  // expected-error@+1 {{expects values of types (), but got ('f64')}}
  dfa.yield %s : f64
}

// -----

// expected-error@+1 {{expects the body to have arguments ('f64'), but got ('f32')}}
dfa.segment_kernel @k on @l::@w accumulators [sum] {
^bb0(%s: f32):
  dfa.yield
}

// -----

dfa.segment_kernel @k on @l::@w accumulators [sum] {
^bb0(%s: f64):
  // expected-error@+1 {{expects values of types (), but got ('f64')}}
  dfa.yield %s : f64
}

// -----

// expected-error@+1 {{expects the body to end in 'dfa.yield'}}
dfa.segment_kernel @k on @l::@w accumulators [] {
  "foo.end"() : () -> ()
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{has no control field 'scal'; fields are norm}}
  %0 = dfa.load_control "scal" : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects type 'f32', but got 'f64'}}
  %0 = dfa.load_control "scale" : f64
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  %v = arith.constant 1.0 : f32
  // expected-error@+1 {{has no control field 'scal'}}
  dfa.store_control "scal", %v : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  %v = arith.constant 1 : i32
  // expected-error@+1 {{expects type 'i64', but got 'i32'}}
  dfa.store_control "step", %v : i32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects a slot from 0 to 31, but got 32}}
  %0 = dfa.load_scratch 32 : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects a scalar of type f64, f32, i64 or i32, but got 'f16'}}
  %0 = dfa.load_scratch 0 : f16
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  %v = arith.constant 1.0 : f32
  // expected-error@+1 {{expects a slot from 0 to 31, but got -1}}
  dfa.store_scratch -1, %v : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  %v = arith.constant 1.0 : f16
  // expected-error@+1 {{expects a scalar of type f64, f32, i64 or i32, but got 'f16'}}
  dfa.store_scratch 0, %v : f16
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects a column of at least 0, but got -1}}
  %0 = dfa.load_hyper "lr" at -1 : f64
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects the name of a hyper-parameter}}
  %0 = dfa.load_hyper "" at 0 : f64
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects type 'f64', but got 'f32'}}
  %0 = dfa.load_hyper "lr" at 0 : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects type 'i64', but got 'i32'}}
  %0 = dfa.load_segment step : i32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects type 'i32', but got 'i64'}}
  %0 = dfa.load_segment active : i64
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expected one of [step, active, generation]}}
  %0 = dfa.load_segment stp : i64
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  %v = arith.constant 1.0 : f32
  // expected-error@+1 {{expects type 'i32', but got 'f32'}}
  dfa.store_segment generation, %v : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects a slot from 0 to 255, but got 256}}
  %0 = dfa.load_derived 256 : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects type 'f32', but got 'f64'}}
  %0 = dfa.load_derived 0 : f64
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  %v = arith.constant 1.0 : f32
  // expected-error@+1 {{expects a slot from 0 to 255, but got -1}}
  dfa.store_derived -1, %v : f32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  %v = arith.constant 1 : i32
  // expected-error@+1 {{expects type 'f32', but got 'i32'}}
  dfa.store_derived 0, %v : i32
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects a slot from 0 to 255, but got -1}}
  %0 = dfa.load_group_stat -1 : f64
  dfa.yield
}

// -----

dfa.control_kernel @k accumulators [] {
  // expected-error@+1 {{expects type 'f64', but got 'f32'}}
  %0 = dfa.load_group_stat 0 : f32
  dfa.yield
}
