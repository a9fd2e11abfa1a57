// RUN: dfa-opt %s --dfa-assign-layout | FileCheck %s

// Starts are multiples of 64 elements: 128 bytes of the narrowest format, bf16.
// The fill order is the reverse of the listed order; a bucket holds 256 bytes.
// CHECK-LABEL: dfa.layout @one
// CHECK: dfa.class @w {{.*}} {buckets = 2 : i64, elements = 153 : i64, padded = 256 : i64, shard = 256 : i64}
// CHECK: "a" {{.*}} {bucket = 1 : i64, start = 0 : i64}
// CHECK: "b" {{.*}} {bucket = 0 : i64, start = 64 : i64}
// CHECK: "c" {{.*}} {bucket = 0 : i64, start = 0 : i64}
dfa.layout @one bucket_bytes = 256 {
  dfa.class @w param = bf16 grad = bf16 master = f32 states = [] rule = sgd
  dfa.param "a" : tensor<10x10xbf16>, class = @w, group = 0
  dfa.param "b" : tensor<50xbf16>, class = @w, group = 0
  dfa.param "c" : tensor<3xbf16>, class = @w, group = 0
}

// Classes have buckets of their own, numbered one after the other; a shard is a fourth of them. An empty
// parameter takes no place.
// CHECK-LABEL: dfa.layout @two
// CHECK: dfa.class @x {{.*}} {buckets = 1 : i64, elements = 100 : i64, padded = 128 : i64, shard = 32 : i64}
// CHECK: dfa.class @y {{.*}} {buckets = 1 : i64, elements = 1 : i64, padded = 128 : i64, shard = 32 : i64}
// CHECK: "a" {{.*}} {bucket = 0 : i64, start = 0 : i64}
// CHECK: "b" {{.*}} {bucket = 1 : i64, start = 0 : i64}
// CHECK: "none" {{.*}} {bucket = 0 : i64, start = 0 : i64}
dfa.mesh @dp(replicate = 2, shard = 4)
dfa.layout @two on @dp {
  dfa.class @x param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.class @y param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.param "a" : tensor<100xf32>, class = @x, group = 0
  dfa.param "b" : tensor<f32>, class = @y, group = 0
  dfa.param "none" : tensor<0x7xf32>, class = @x, group = 0
}
