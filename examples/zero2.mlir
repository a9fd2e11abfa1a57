// ZeRO-2, sharded within a node and replicated across two: gradients are
// reduce-scattered over the shards and all-reduced over the replicas, each
// rank updates its shard, and the new parameters are gathered.
//
//   dfa-opt examples/zero2.mlir --dfa-report="shard=8 replicate=512"
//   dfa-run examples/zero2.mlir --target=cpu --ranks=4 --steps=3 --verify

!grad = !dfa.flat<@model, @weights, full, bf16>
!gshard = !dfa.flat<@model, @weights, shard, bf16>
!shard = !dfa.flat<@model, @weights, shard, f32>

dfa.mesh @dp(replicate = 2, shard = 2)

dfa.layout @model on @dp bucket_bytes = 262144 {
  dfa.class @weights param = bf16 grad = bf16 master = f32
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
  dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8,
               weight_decay = 1.0e-2}
  dfa.param "up.weight" : tensor<512x256xbf16>, class = @weights, group = 0
  dfa.param "up.bias" : tensor<512xbf16>, class = @weights, group = 0
  dfa.param "down.weight" : tensor<256x512xbf16>, class = @weights, group = 0
  dfa.param "down.bias" : tensor<256xbf16>, class = @weights, group = 0
}

func.func @step(%grad: !grad {dfa.role = "grad"},
                %master: !shard {dfa.role = "master"},
                %m: !shard {dfa.role = "exp_avg"},
                %v: !shard {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!shard {dfa.role = "master"}, !shard {dfa.role = "exp_avg"},
        !shard {dfa.role = "exp_avg_sq"}, !grad {dfa.role = "param"},
        !dfa.control {dfa.role = "control"})
    attributes {dfa.control = {average = 0.25, max_norm = 1.0}} {
  %scattered = dfa.reduce_scatter sum %grad over "shard" : !grad -> !gshard
  %reduced = dfa.all_reduce sum %scattered over "replicate" : !gshard
  %factor = dfa.grad_factor %ctl : f64
  %mean = dfa.unscale %reduced by %factor : !gshard, f64 -> !shard

  // Norms add over shards, never over replicas.
  %s = dfa.norm_partial %mean : !shard -> !dfa.partial<l2, whole>
  %f = dfa.non_finite %mean : !shard -> !dfa.partial<flag, whole>
  %squares = dfa.combine %s over ["shard"] : !dfa.partial<l2, whole>
  %flag = dfa.combine %f over ["shard"] : !dfa.partial<flag, whole>
  %norm = dfa.norm_finish %squares : !dfa.partial<l2, whole> -> f64
  %inf = dfa.flag_finish %flag : !dfa.partial<flag, whole> -> i1

  %max = dfa.read %ctl["max_norm"] : f64
  %clipped = dfa.clip %mean with %norm to %max : !shard, f64, f64
  %new:3 = dfa.adam adamw ins(%clipped : !shard)
    outs(%master, %m, %v : !shard, !shard, !shard) control(%ctl) unless %inf
    -> !shard, !shard, !shard
  %own = dfa.encode bf16 %new#0 : !shard -> !gshard
  %param = dfa.all_gather %own over "shard" : !gshard -> !grad

  %c1 = dfa.write %norm, %ctl["norm"] : f64
  %c2 = dfa.step_count %c1 unless %inf
  %c3 = dfa.zero_grad generation %c2
  return %new#0, %new#1, %new#2, %param, %c3
    : !shard, !shard, !shard, !grad, !dfa.control
}
