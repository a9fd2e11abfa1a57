// RUN: dfa-opt %s --dfa-report="bandwidth=1000 link=1" | FileCheck %s --check-prefixes=CHECK,SMALL
// RUN: dfa-opt %s --dfa-report="shard=8 replicate=512 bandwidth=1 link=1000" | FileCheck %s --check-prefixes=CHECK,PAPER

// 1,048,576 bf16 elements. A ring sends (n-1)/n of the bytes, twice that for an
// all-reduce, which is of a shard.

// CHECK: step: 1048576 elements, 5 launches, 30 B/element, state 12 B/parameter
// CHECK: reduce_w 1 2 r:grad{{$}}
// CHECK: control 2 0
// CHECK: update_w 1 28

// 2097152 * 1/2; 2 * 1048576 * 1/2; one f64 sum; 2097152 * 1/2.
// SMALL: reduce_scatter over shard (2 ranks): 1048576 bytes sent by a rank
// SMALL: all_reduce over replicate (2 ranks): 1048576 bytes sent by a rank
// SMALL: all_gather over shard (2 ranks): 8 bytes sent by a rank
// SMALL: all_gather over shard (2 ranks): 1048576 bytes sent by a rank
// The wire is slower: 3145736 bytes at 1 GB/s.
// SMALL: floor 3.14574 ms

// 4,096 ranks on paper. 2097152 * 7/8; 2 * 262144 * 511/512; 7 * 8; 2097152 * 7/8.
// PAPER: reduce_scatter over shard (8 ranks): 1835008 bytes sent by a rank
// PAPER: all_reduce over replicate (512 ranks): 523264 bytes sent by a rank
// PAPER: all_gather over shard (8 ranks): 56 bytes sent by a rank
// PAPER: all_gather over shard (8 ranks): 1835008 bytes sent by a rank
// The memory is slower: 131072 elements of 30 bytes at 1 GB/s.
// PAPER: floor 3.93216 ms

!g = !dfa.flat<@l, @w, full, bf16>
!gs = !dfa.flat<@l, @w, shard, bf16>
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = bf16 grad = bf16 master = f32
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
  dfa.param "a" : tensor<1024x1024xbf16>, class = @w, group = 0
}
func.func @step(%g: !g {dfa.role = "grad"}, %p: !s {dfa.role = "master"},
                %m: !s {dfa.role = "exp_avg"}, %v: !s {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!s {dfa.role = "master"}, !s {dfa.role = "exp_avg"},
        !s {dfa.role = "exp_avg_sq"}, !g {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %sc = dfa.reduce_scatter sum %g over "shard" : !g -> !gs
  %rd = dfa.all_reduce sum %sc over "replicate" : !gs
  %f = dfa.grad_factor %ctl : f64
  %u = dfa.unscale %rd by %f : !gs, f64 -> !s
  %a = dfa.norm_partial %u : !s -> !dfa.partial<l2, whole>
  %ac = dfa.combine %a over ["shard"] : !dfa.partial<l2, whole>
  %n = dfa.norm_finish %ac : !dfa.partial<l2, whole> -> f64
  %max = dfa.read %ctl["max_norm"] : f64
  %c = dfa.clip %u with %n to %max : !s, f64, f64
  %r:3 = dfa.adam adamw ins(%c : !s) outs(%p, %m, %v : !s, !s, !s)
    control(%ctl) -> !s, !s, !s
  %o = dfa.encode bf16 %r#0 : !s -> !gs
  %full = dfa.all_gather %o over "shard" : !gs -> !g
  %k = dfa.write %n, %ctl["norm"] : f64
  return %r#0, %r#1, %r#2, %full, %k : !s, !s, !s, !g, !dfa.control
}
