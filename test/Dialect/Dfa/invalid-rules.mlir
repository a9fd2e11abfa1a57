// RUN: dfa-opt %s --split-input-file --allow-unregistered-dialect --verify-diagnostics

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects destinations (param, exp_avg, exp_avg_sq), but got 2}}
  %0:2 = dfa.adam adamw ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p, %p : !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects destinations (param, exp_avg, exp_avg_sq, max_exp_avg_sq), but got 3}}
  %0:3 = dfa.adam adamw ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p, %p, %p : !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>) control(%c) {amsgrad} -> !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expected one of [adam, adamw] for kind of weight decay, got: adamax}}
  %0:2 = dfa.adam adamax ins(%g : !dfa.flat<@l, @w, full, f32>)
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects results of types}}
  %0 = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, shard, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects a gradient of element type 'f32', but got 'bf16'}}
  %0 = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, bf16>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control) {
  // expected-error@+1 {{expects 'param' of element type 'f32', but got 'bf16'}}
  %0 = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p : !dfa.flat<@l, @w, full, bf16>) control(%c) -> !dfa.flat<@l, @w, full, bf16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %m: !dfa.flat<@l, @v, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects 'exp_avg' to cover the elements of the gradient}}
  %0:3 = dfa.adam adam ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p, %m, %p : !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @v, full, f32>, !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @v, full, f32>, !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects destinations (param, momentum_buffer), but got 3}}
  %0:3 = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p, %p, %p : !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>, !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects a momentum_buffer with 'nesterov'}}
  %0 = dfa.sgd ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) {nesterov} -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects destinations (param, exp_avg), but got 1}}
  %0 = dfa.lion ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects destinations (param, sum), but got 1}}
  %0 = dfa.adagrad ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects destinations (param, square_avg, grad_avg, momentum_buffer), but got 1}}
  %0 = dfa.rmsprop ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) {centered, with_momentum} -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects destinations (param, exp_avg, exp_avg_sq), but got 1}}
  %0 = dfa.lamb ins(%g : !dfa.flat<@l, @w, full, f32>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %c: !dfa.control) {
  // expected-error@+1 {{expects a result for each of 1 destinations, but got 0 results}}
  "dfa.update"(%p, %c) <{hyper = [], operandSegmentSizes = array<i32: 0, 1, 1, 0, 0>}> ({
  ^bb0(%t: i64):
    dfa.yield
  }, {
  ^bb0(%x: f32):
    dfa.yield
  }) : (!dfa.flat<@l, @w, full, f32>, !dfa.control) -> ()
  return
}

// -----

func.func @f(%c: !dfa.control) {
  // expected-error@+1 {{expects at least one result}}
  "dfa.update"(%c) <{hyper = [], operandSegmentSizes = array<i32: 0, 0, 1, 0, 0>}> ({
  ^bb0(%t: i64):
    dfa.yield
  }, {
    dfa.yield
  }) : (!dfa.control) -> ()
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-error@+1 {{expects result #0 of its destination's type}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
      dfa.yield %x : f32
  } : !dfa.flat<@l, @v, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-error@+1 {{expects hyper-parameters that differ, but got "lr" twice}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper ["lr", "lr"] derive {
  ^bb0(%t: i64, %a: f64, %b0: f64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
      dfa.yield %x : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-error@+1 {{expects values that cover the elements of}}
  %0 = dfa.update ins(%v : !dfa.flat<@l, @v, full, f32>) outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%y: f32, %x: f32):
      dfa.yield %x : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-note@+1 {{in this update}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
    // expected-error@+1 {{is not allowed in 'derive' of 'dfa.update'; expects 'arith' and 'math' ops on scalars and 'dfa.powi'}}
    func.call @g() : () -> ()
    dfa.yield
  } apply {
  ^bb0(%x: f32):
      dfa.yield %x : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-note@+1 {{in this update}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
    // expected-error@+1 {{is not allowed in 'apply' of 'dfa.update'}}
    %y = arith.constant dense<0.0> : tensor<4xf32>
    dfa.yield %x : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-note@+1 {{in this update}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
    // expected-error@+1 {{is not allowed in 'apply' of 'dfa.update'}}
    %y = "foo.bar"() : () -> f32
    dfa.yield %y : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-error@+1 {{expects arguments of 'derive' of types ('i64', 'f64'), but got ('i64')}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper ["lr"] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
      dfa.yield %x : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-error@+1 {{expects arguments of 'derive' of types ('i64', 'f64'), but got ('i64')}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) with(%s : f64) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
      dfa.yield %x : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
    // expected-error@+1 {{expects derived values of type f32, but got 'i64'}}
    dfa.yield %t : i64
  } apply {
  ^bb0(%x: f32):
      dfa.yield %x : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-error@+1 {{expects arguments of 'apply' of types ('f32'), but got ('bf16')}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: bf16):
    dfa.yield %x : bf16
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
    // expected-error@+1 {{expects values of types ('f32'), but got ('f32', 'f32')}}
    dfa.yield %x, %x : f32, f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%p: !dfa.flat<@l, @w, full, f32>, %v: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, bf16>, %c: !dfa.control, %s: f64) {
  // expected-note@+1 {{required by region isolation constraints}}
  %0 = dfa.update outs(%p : !dfa.flat<@l, @w, full, f32>) control(%c) hyper [] derive {
  ^bb0(%t: i64):
      dfa.yield
  } apply {
  ^bb0(%x: f32):
    // expected-error@+1 {{using value defined outside the region}}
    %y = arith.truncf %s : f64 to f32
    dfa.yield %y : f32
  } : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expects parent op to be one of}}
  dfa.yield
}
