// Mixed precision: bf16 gradients and parameters (NHWC), f32 master, loss
// scaling with its update, global norm, clipping.
//
//   dfa-opt examples/mixed_precision.mlir --dfa-report
//   dfa-run examples/mixed_precision.mlir --target=cpu --steps=3 --verify

!grad = !dfa.flat<@model, @weights, full, bf16>
!flat = !dfa.flat<@model, @weights, full, f32>

dfa.layout @model bucket_bytes = 104857600 {
  dfa.class @weights param = bf16 grad = bf16 master = f32
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
  dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8,
               weight_decay = 1.0e-2}
  dfa.group 1 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8,
               weight_decay = 0.0}
  dfa.param "conv_in.weight" : tensor<320x4x3x3xbf16>, order = [0, 2, 3, 1],
    class = @weights, group = 0
  dfa.param "conv_in.bias" : tensor<320xbf16>, class = @weights, group = 1
  dfa.param "proj.weight" : tensor<320x320x1x1xbf16>, order = [0, 2, 3, 1],
    class = @weights, group = 0
  dfa.param "norm.weight" : tensor<320xbf16>, class = @weights, group = 1
}

func.func @step(%grad: !grad {dfa.role = "grad"},
                %master: !flat {dfa.role = "master"},
                %m: !flat {dfa.role = "exp_avg"},
                %v: !flat {dfa.role = "exp_avg_sq"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!flat {dfa.role = "master"}, !flat {dfa.role = "exp_avg"},
        !flat {dfa.role = "exp_avg_sq"}, !grad {dfa.role = "param"},
        !dfa.control {dfa.role = "control"})
    attributes {dfa.control = {max_norm = 1.0, scale = 65536.0}} {
  // One factor turns the scaled gradient into the wanted one.
  %factor = dfa.grad_factor %ctl : f64
  %unscaled = dfa.unscale %grad by %factor : !grad, f64 -> !flat

  // The norm and the check share one pass over the gradient.
  %squares = dfa.norm_partial %unscaled : !flat -> !dfa.partial<l2, whole>
  %flag = dfa.non_finite %unscaled : !flat -> !dfa.partial<flag, whole>
  %norm = dfa.norm_finish %squares : !dfa.partial<l2, whole> -> f64
  %inf = dfa.flag_finish %flag : !dfa.partial<flag, whole> -> i1

  %max = dfa.read %ctl["max_norm"] : f64
  %clipped = dfa.clip %unscaled with %norm to %max : !flat, f64, f64
  %new:3 = dfa.adam adamw ins(%clipped : !flat)
    outs(%master, %m, %v : !flat, !flat, !flat) control(%ctl) unless %inf
    -> !flat, !flat, !flat
  %param = dfa.encode bf16 %new#0 : !flat -> !grad

  %c1 = dfa.write %norm, %ctl["norm"] : f64
  %c2 = dfa.scaler_update %c1, %inf
  %c3 = dfa.step_count %c2 unless %inf
  %c4 = dfa.zero_grad generation %c3
  return %new#0, %new#1, %new#2, %param, %c4
    : !flat, !flat, !flat, !grad, !dfa.control
}
