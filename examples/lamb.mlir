// LAMB: a trust ratio a parameter. The compiler makes two element kernels of
// it, and computes the direction twice instead of storing it.
//
//   dfa-opt examples/lamb.mlir --dfa-report
//   dfa-run examples/lamb.mlir --target=cpu --steps=3 --verify

!flat = !dfa.flat<@model, @weights, full, f32>

dfa.layout @model {
  dfa.class @weights param = f32 grad = f32 master = none
    states = [exp_avg : f32, exp_avg_sq : f32] rule = lamb
  dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-6,
               weight_decay = 1.0e-2}
  dfa.param "query.weight" : tensor<256x256xf32>, class = @weights, group = 0
  dfa.param "query.bias" : tensor<256xf32>, class = @weights, group = 0
  dfa.param "key.weight" : tensor<256x256xf32>, order = [1, 0],
    class = @weights, group = 0
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
  %new:3 = dfa.lamb ins(%grad : !flat)
    outs(%param, %m, %v : !flat, !flat, !flat) control(%ctl) unless %inf
    -> !flat, !flat, !flat
  %counted = dfa.step_count %ctl unless %inf
  return %new#0, %new#1, %new#2, %counted
    : !flat, !flat, !flat, !dfa.control
}
