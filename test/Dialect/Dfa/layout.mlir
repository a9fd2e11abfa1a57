// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

// CHECK-LABEL: dfa.mesh @dp{{ ?}}(replicate = 2, shard = 8)
dfa.mesh @dp(replicate = 2, shard = 8)

// The default transport is not printed; names that are no words are quoted.
// CHECK: dfa.mesh @node{{ ?}}("odd name" = 2 via library, shard = 4 via peer, c = 1)
dfa.mesh @node("odd name" = 2 via library, shard = 4 via peer, c = 1 via any)

// CHECK-LABEL: dfa.layout @unet on @dp bucket_bytes = 104857600 {
dfa.layout @unet on @dp bucket_bytes = 104857600 {
  // CHECK-NEXT: dfa.class @w param = bf16 grad = bf16 master = f32
  // CHECK-SAME: states = [exp_avg : f32, exp_avg_sq : bf16] rule = adamw
  dfa.class @w param = bf16 grad = bf16 master = f32
    states = [exp_avg : f32, exp_avg_sq : bf16] rule = adamw
  // CHECK-NEXT: master = remainder states = ["two words" : f16] rule = custom
  dfa.class @r param = bf16 grad = f32 master = remainder
    states = ["two words" : f16] rule = custom
  // CHECK-NEXT: dfa.class @s param = f32 grad = f16 master = none states = []
  // CHECK-SAME: rule = sgd
  dfa.class @s param = f32 grad = f16 master = none states = [] rule = sgd
  // CHECK-NEXT: dfa.class @d param = f64 grad = f64 master = f64
  // CHECK-SAME: rule = lion {note = "kept"}
  dfa.class @d param = f64 grad = f64 master = f64 states = [] rule = lion
    {note = "kept"}
  // CHECK-NEXT: rule = adam
  dfa.class @a param = f16 grad = f16 master = f32 states = [] rule = adam
  // CHECK-NEXT: rule = adagrad
  dfa.class @b param = f16 grad = f16 master = f32 states = [] rule = adagrad
  // CHECK-NEXT: rule = rmsprop
  dfa.class @c param = f16 grad = f16 master = f32 states = [] rule = rmsprop
  // CHECK-NEXT: rule = lamb
  dfa.class @e param = f16 grad = f16 master = f32 states = [] rule = lamb

  // Values that six digits would not hold.
  // CHECK-NEXT: dfa.group 0 {beta1 = 9.000000e-01 : f64,
  // CHECK-SAME: beta2 = 0.99899999999999999 : f64, eps = 1.000000e-08 : f64,
  // CHECK-SAME: lr = 0.0012345678901234567 : f64, weight_decay = 0.000000e+00
  dfa.group 0 {lr = 0.0012345678901234567, beta1 = 0.9, beta2 = 0.999,
               eps = 1.0e-8, weight_decay = 0.0}
  // CHECK-NEXT: dfa.group 7 {}
  dfa.group 7 {}

  // CHECK-NEXT: dfa.param "conv.weight" : tensor<320x4x3x3xbf16>,
  // CHECK-SAME: order = [0, 2, 3, 1], class = @w, group = 0
  dfa.param "conv.weight" : tensor<320x4x3x3xbf16>, order = [0, 2, 3, 1],
    class = @w, group = 0
  // CHECK-NEXT: dfa.param "conv.bias" : tensor<320xbf16>, class = @w, group = 7
  dfa.param "conv.bias" : tensor<320xbf16>, class = @w, group = 7
  // A group without a dfa.group has the defaults of its class's rule.
  // CHECK-NEXT: dfa.param "scalar" : tensor<f32>, class = @s, group = 99
  dfa.param "scalar" : tensor<f32>, class = @s, group = 99
  // CHECK-NEXT: dfa.param "empty" : tensor<0x4xf32>, class = @s, group = 0
  dfa.param "empty" : tensor<0x4xf32>, class = @s, group = 0
}

// CHECK: dfa.layout @alone {
// CHECK-NEXT: }
dfa.layout @alone {
}

// CHECK: dfa.layout @noted attributes {note = 1 : i64} {
dfa.layout @noted attributes {note = 1} {
}
