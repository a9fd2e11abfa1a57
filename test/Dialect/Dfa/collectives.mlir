// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

!full = !dfa.flat<@l, @w, full, bf16>
!shard = !dfa.flat<@l, @w, shard, bf16>

dfa.mesh @m(replicate = 2, shard = 4)
dfa.layout @l on @m {
  dfa.class @w param = bf16 grad = bf16 master = f32 states = [] rule = sgd
}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%g: !full) -> !full {
  // CHECK: dfa.reduce_scatter sum %{{.*}} over "shard" :
  // CHECK-SAME: {{.*}}<@l, @w, full, bf16> -> {{.*}}<@l, @w, shard, bf16>
  %0 = dfa.reduce_scatter sum %g over "shard" : !full -> !shard
  // CHECK: dfa.reduce_scatter max %{{.*}} over "shard" {order = #dfa<order rank>}
  %1 = dfa.reduce_scatter max %g over "shard" {order = #dfa<order rank>}
    : !full -> !shard
  // CHECK: dfa.all_reduce sum %{{.*}} over "replicate" : {{.*}}<@l, @w, shard
  %2 = dfa.all_reduce sum %0 over "replicate" : !shard
  // Full values are alike along both axes.
  // CHECK: dfa.all_reduce max %{{.*}} over "shard" {order = #dfa<order rank>}
  %3 = dfa.all_reduce max %g over "shard" {order = #dfa<order rank>} : !full
  // CHECK: dfa.all_gather %{{.*}} over "shard" :
  // CHECK-SAME: {{.*}}<@l, @w, shard, bf16> -> {{.*}}<@l, @w, full, bf16>
  %4 = dfa.all_gather %2 over "shard" : !shard -> !full
  // CHECK: dfa.broadcast %{{.*}} from 3 over "shard" : {{.*}}<@l, @w, full
  %5 = dfa.broadcast %4 from 3 over "shard" : !full
  // CHECK: dfa.broadcast %{{.*}} from 1 over "replicate"
  %6 = dfa.broadcast %5 from 1 over "replicate" : !full
  return %6 : !full
}
