// Plain AdamW: f32 parameters and gradients, no loss scaling, no clipping.
// A step with an inf or nan gradient changes nothing and is counted.
//
//   dfa-opt examples/adamw.mlir --dfa-to-kernels
//   dfa-run examples/adamw.mlir --target=cpu --steps=3 --verify

!flat = !dfa.flat<@model, @weights, full, f32>

dfa.layout @model {
  dfa.class @weights param = f32 grad = f32 master = none
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
  dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8,
               weight_decay = 1.0e-2}
  dfa.param "conv.weight" : tensor<64x3x7x7xf32>, order = [0, 2, 3, 1],
    class = @weights, group = 0
  dfa.param "conv.bias" : tensor<64xf32>, class = @weights, group = 0
  dfa.param "fc.weight" : tensor<1000x512xf32>, class = @weights, group = 0
  dfa.param "fc.bias" : tensor<1000xf32>, class = @weights, group = 0
}

func.func @step(%grad: !flat {dfa.role = "grad"},
                %param: !flat {dfa.role = "param"},
                %m: !flat {dfa.role = "exp_avg"},
                %v: !flat {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!flat {dfa.role = "param"}, !flat {dfa.role = "exp_avg"},
        !flat {dfa.role = "exp_avg_sq"},
        !dfa.control {dfa.role = "control"}) {
  %flag = dfa.non_finite %grad : !flat -> !dfa.partial<flag, whole>
  %inf = dfa.flag_finish %flag : !dfa.partial<flag, whole> -> i1
  %new:3 = dfa.adam adamw ins(%grad : !flat)
    outs(%param, %m, %v : !flat, !flat, !flat) control(%ctl) unless %inf
    -> !flat, !flat, !flat
  %counted = dfa.step_count %ctl unless %inf
  return %new#0, %new#1, %new#2, %counted
    : !flat, !flat, !flat, !dfa.control
}
