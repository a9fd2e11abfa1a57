// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

// CHECK-LABEL: dfa.program @step on @l hyper ["lr", "beta1"] accumulators 2
// CHECK-SAME: group_stats 1 {
dfa.program @step on @l hyper ["lr", "beta1"] accumulators 2 group_stats 1 {
  // CHECK-NEXT: dfa.program_class @w arrays ["grad", "param"] types [bf16, f32]
  // CHECK-SAME: parts [full, shard] derived 3
  dfa.program_class @w arrays ["grad", "param"] types [bf16, f32]
    parts [full, shard] derived 3
  // CHECK-NEXT: dfa.entry fill {
  dfa.entry fill {
    // CHECK-NEXT: dfa.launch_elements @fill on @w over full acc 0
    dfa.launch_elements @fill on @w over full acc 0
  }
  // CHECK: dfa.entry reduce {
  dfa.entry reduce {
    // CHECK-NEXT: dfa.collective reduce_scatter over "shard" class @w "grad" to
    // CHECK-SAME: "grad" reduce sum order rank acc 0 accs 0
    dfa.collective reduce_scatter over "shard" class @w "grad" to "grad"
      reduce sum order rank acc 0 accs 0
    // CHECK-NEXT: dfa.collective all_reduce over "replicate"
    dfa.collective all_reduce over "replicate" class @w "grad" to "grad"
      reduce max order any acc 0 accs 0
  }
  // CHECK: dfa.entry finish {
  dfa.entry finish {
    // CHECK-NEXT: dfa.upload "groups"
    dfa.upload "groups"
    // CHECK-NEXT: dfa.upload "segments"
    dfa.upload "segments"
    // CHECK-NEXT: dfa.upload "chunks"
    dfa.upload "chunks"
    // CHECK-NEXT: dfa.launch_elements @norm on @w over atoms acc 0
    dfa.launch_elements @norm on @w over atoms acc 0
    // CHECK-NEXT: dfa.launch_control @local mode local acc 0
    dfa.launch_control @local mode local acc 0
    // CHECK-NEXT: dfa.collective all_gather over "shard" "sums" to "sums"
    // CHECK-SAME: reduce sum order any acc 0 accs 2
    dfa.collective all_gather over "shard" "sums" to "sums"
      reduce sum order any acc 0 accs 2
    // CHECK-NEXT: dfa.launch_control @finish mode gathered acc 0
    dfa.launch_control @finish mode gathered acc 0
    // CHECK-NEXT: dfa.launch_control @more mode whole acc 1
    dfa.launch_control @more mode whole acc 1
    // CHECK-NEXT: dfa.launch_segments @rows on @w acc 0
    dfa.launch_segments @rows on @w acc 0
    // CHECK-NEXT: dfa.launch_segments @rows on @w acc 0 mode local{{$}}
    dfa.launch_segments @rows on @w acc 0 mode local
    // CHECK-NEXT: dfa.collective all_gather over "shard" class @w "stats" to
    // CHECK-SAME: "stats" reduce sum order rank acc 0 accs 1{{$}}
    dfa.collective all_gather over "shard" class @w "stats" to "stats"
      reduce sum order rank acc 0 accs 1
    // CHECK-NEXT: dfa.launch_segments @rows on @w acc 0 mode gathered stream side
    dfa.launch_segments @rows on @w acc 0 mode gathered stream side
    // CHECK-NEXT: dfa.collective all_reduce over "shard" "presence" to "presence"
    dfa.collective all_reduce over "shard" "presence" to "presence"
      reduce max order any acc 0 accs 0
    // CHECK-NEXT: dfa.collective all_gather over "shard" "sums" to "sums"
    // CHECK-SAME: accs 2 {group_accs = 1 : i64}
    dfa.collective all_gather over "shard" "sums" to "sums"
      reduce sum order any acc 0 accs 2 {group_accs = 1 : i64}
    // CHECK-NEXT: dfa.for_each_bucket @w {
    dfa.for_each_bucket @w {
      // CHECK-NEXT: dfa.launch_elements @update on @w over chunks acc 0
      dfa.launch_elements @update on @w over chunks acc 0
      // CHECK-NEXT: dfa.record "updated" on compute
      dfa.record "updated" on compute
      // CHECK-NEXT: dfa.wait "updated" on comm
      dfa.wait "updated" on comm
      // CHECK-NEXT: dfa.collective broadcast over "shard"
      dfa.collective broadcast over "shard" class @w "param" to "param"
        reduce sum order any acc 0 accs 0
    }
    // CHECK: dfa.barrier over "shard"
    dfa.barrier over "shard"
    // CHECK-NEXT: dfa.read_back{{$}}
    dfa.read_back
    // CHECK-NEXT: dfa.read_back on side
    dfa.read_back on side
  }
  // CHECK: dfa.entry zero_grad {
  dfa.entry zero_grad {
    // CHECK-NEXT: dfa.memset @w "grad"
    dfa.memset @w "grad"
  }
}

// Host work, which no graph records.
// CHECK-LABEL: dfa.program @host
dfa.program @host on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["grad"] types [f32] parts [full] derived 0
  dfa.entry finish {
    // CHECK: dfa.load_module "kernels"
    dfa.load_module "kernels"
    // CHECK-NEXT: dfa.create_communicator over "shard"
    dfa.create_communicator over "shard"
    // CHECK-NEXT: %[[RANK:.*]] = dfa.rank over "shard" : index
    %r = dfa.rank over "shard" : index
    // CHECK-NEXT: %[[SCALE:.*]] = dfa.fetch "scale" : f32
    %s = dfa.fetch "scale" : f32
    // CHECK-NEXT: dfa.launch_elements @k on @w over chunks acc 0
    // CHECK-SAME: args(%[[SCALE]], %[[RANK]] : f32, index)
    dfa.launch_elements @k on @w over chunks acc 0
      args(%s, %r : f32, index)
  }
}
