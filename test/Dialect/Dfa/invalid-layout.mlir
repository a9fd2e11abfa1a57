// RUN: dfa-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expects at least one axis}}
dfa.mesh @m()

// -----

// expected-error@+1 {{expects axis names that are not empty}}
dfa.mesh @m("" = 2)

// -----

// expected-error@+1 {{expects axis names that differ, but 'a' occurs twice}}
dfa.mesh @m(a = 2, a = 3)

// -----

// expected-error@+1 {{expects axis 'a' to have at least 1 rank, but got 0}}
dfa.mesh @m(a = 0)

// -----

// expected-error@+1 {{expects axis 'a' to have at least 1 rank, but got -1}}
dfa.mesh @m(a = -1)

// -----

// expected-error@+1 {{expects at most 2^31 ranks}}
dfa.mesh @m(a = 65536, b = 65536)

// -----

// expected-error@+1 {{expects at most 2^31 ranks}}
dfa.mesh @m(a = 9223372036854775807, b = 9223372036854775807)

// -----

// expected-error@+1 {{integer value too large}}
dfa.mesh @m(a = 9223372036854775808)

// -----

// expected-error@+1 {{expects transport any, library or peer, but got 'wire'}}
dfa.mesh @m(a = 2 via wire)

// -----

// expected-error@+1 {{failed to satisfy constraint: mesh axes}}
"dfa.mesh"() <{sym_name = "m", axes = [3]}> : () -> ()

// -----

// expected-error@+1 {{expects 'bucket_bytes' of at least 1, but got 0}}
dfa.layout @l bucket_bytes = 0 {
}

// -----

// expected-error@+1 {{expects 'bucket_bytes' of at least 1, but got -1}}
dfa.layout @l bucket_bytes = -1 {
}

// -----

// expected-error@+1 {{expects 'bucket_bytes' of at least 1, but got -9223372036854775808}}
dfa.layout @l bucket_bytes = 9223372036854775808 {
}

// -----

// expected-error@+1 {{expects @m to be a 'dfa.mesh', but found none}}
dfa.layout @l on @m {
}

// -----

// expected-error@+1 {{expects @m to be a 'dfa.mesh', but found none}}
dfa.layout @l on @m {
}

dfa.layout @m {
}

// -----

dfa.layout @l {
  // expected-error@+1 {{'dfa.mesh' op is not allowed in a 'dfa.layout'; expects 'dfa.class', 'dfa.group' or 'dfa.param'}}
  dfa.mesh @m(a = 1)
}

// -----

dfa.layout @l {
  // expected-note@+1 {{first defined here}}
  dfa.group 0 {}
  // expected-error@+1 {{defines group 0 twice}}
  dfa.group 0 {}
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-note@+1 {{first defined here}}
  dfa.param "a" : tensor<3xf32>, order = [0], class = @w, group = 0
  // expected-error@+1 {{defines parameter 'a' twice}}
  dfa.param "a" : tensor<4xf32>, order = [0], class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects a 'dfa.class' @v in this layout, but found none}}
  dfa.param "a" : tensor<3xf32>, class = @v, group = 0
}

// -----

dfa.layout @l {
  // expected-note@+1 {{class defined here}}
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects elements of type 'f32', the class's parameter format, but got 'bf16'}}
  dfa.param "a" : tensor<3xbf16>, class = @w, group = 0
}

// -----

dfa.layout @l {
  // expected-note@+1 {{see existing symbol definition here}}
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{redefinition of symbol named 'w'}}
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects a parameter format with one element, but got 'none'}}
  dfa.class @w param = none grad = f32 master = none states = [] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects a parameter format with one element, but got 'remainder'}}
  dfa.class @w param = remainder grad = f32 master = none states = [] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects a gradient format with one element, but got 'none'}}
  dfa.class @w param = f32 grad = none master = none states = [] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects a gradient format with one element, but got 'remainder'}}
  dfa.class @w param = bf16 grad = remainder master = none states = [] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects bf16 parameters with a remainder master, but got 'f16'}}
  dfa.class @w param = f16 grad = f32 master = remainder states = [] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects state names that are not empty}}
  dfa.class @w param = f32 grad = f32 master = none states = ["" : f32] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects state names that differ from each other and from 'grad'}}
  dfa.class @w param = f32 grad = f32 master = none states = [a : f32, a : f32] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{and 'control', but got 'master'}}
  dfa.class @w param = f32 grad = f32 master = none states = [master : f32] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects state 'a' in a format with one element, but got 'none'}}
  dfa.class @w param = f32 grad = f32 master = none states = [a : none] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects state 'a' in a format with one element, but got 'remainder'}}
  dfa.class @w param = f32 grad = f32 master = none states = [a : remainder] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects storage format none, f64, f32, f16, bf16 or remainder, but got 'f8'}}
  dfa.class @w param = f32 grad = f32 master = none states = [a : f8] rule = sgd
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expected one of [adam, adamw, sgd, lion, adagrad, rmsprop, lamb, custom] for update rule, got: adm}}
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = adm
}

// -----

// expected-error@+1 {{expects parent op 'dfa.layout'}}
dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd

// -----

// expected-error@+1 {{expects parent op 'dfa.layout'}}
dfa.group 0 {}

// -----

// expected-error@+1 {{expects parent op 'dfa.layout'}}
dfa.param "a" : tensor<3xf32>, class = @w, group = 0

// -----

dfa.layout @l {
  // expected-error@+1 {{expects an index of at least 0, but got -1}}
  dfa.group -1 {}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'lr' to be an f64, but got 1 : i64}}
  dfa.group 0 {lr = 1}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'lr' to be an f64, but got 1.000000e+00 : f32}}
  dfa.group 0 {lr = 1.0 : f32}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'lr' to be an f64, but got unit}}
  dfa.group 0 {lr}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'eps' to be finite}}
  dfa.group 0 {eps = 0x7FF0000000000000 : f64}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'eps' to be finite}}
  dfa.group 0 {eps = 0x7FF8000000000000 : f64}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'lr' to be at least 0, but got -1.000000e-03}}
  dfa.group 0 {lr = -1.0e-3}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'beta2' to be below 1, but got 1.0}}
  dfa.group 0 {beta2 = 1.0}
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects hyper-parameter 'alpha' to be below 1, but got 1.5}}
  dfa.group 0 {alpha = 1.5}
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects a name that is not empty}}
  dfa.param "" : tensor<3xf32>, class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{ranked tensor of any type}}
  dfa.param "a" : tensor<*xf32>, class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects a ranked tensor type of static shape, but got 'tensor<?xf32>'}}
  dfa.param "a" : tensor<?xf32>, class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects a tensor type without encoding}}
  dfa.param "a" : tensor<3xf32, 5 : i32>, class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects fewer than 2^59 elements}}
  dfa.param "a" : tensor<4611686018427387904x4xf32>, class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects fewer than 2^59 elements}}
  dfa.param "a" : tensor<0x4611686018427387904x4xf32>, class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects a group of at least 0, but got -1}}
  dfa.param "a" : tensor<3xf32>, class = @w, group = -1
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects an order of 2 dims, but got 1}}
  dfa.param "a" : tensor<3x4xf32>, order = [0], class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects dims from 0 to 1 in its order, but got 2}}
  dfa.param "a" : tensor<3x4xf32>, order = [0, 2], class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects dims from 0 to 1 in its order, but got -1}}
  dfa.param "a" : tensor<3x4xf32>, order = [-1, 0], class = @w, group = 0
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects each dim once in its order, but got 1 twice}}
  dfa.param "a" : tensor<3x4xf32>, order = [1, 1], class = @w, group = 0
}

// -----

dfa.layout @l {
  // expected-error@+1 {{expects an index below 1048576, but got 9223372036854775807}}
  dfa.group 9223372036854775807 {}
}

// -----

dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  // expected-error@+1 {{expects a group below 1048576, but got 4294967296}}
  dfa.param "a" : tensor<3xf32>, class = @w, group = 4294967296
}
