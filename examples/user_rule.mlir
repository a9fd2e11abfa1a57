// A rule of one's own: AdaBelief, which follows the variance of the gradient
// around its mean (Zhuang et al., arXiv:2010.07468). `derive` runs once a
// parameter, in f64; `apply` runs once an element, in f32. Everything else -
// fusion, skipping, capture, reports - comes with dfa.update.
//
//   dfa-opt examples/user_rule.mlir --dfa-to-kernels
//   dfa-run examples/user_rule.mlir --target=cpu --steps=3 --verify

!flat = !dfa.flat<@model, @weights, full, f32>

dfa.layout @model {
  dfa.class @weights param = f32 grad = f32 master = none
    states = [mean : f32, variance : f32] rule = custom
  dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8}
  dfa.param "weight" : tensor<256x128xf32>, class = @weights, group = 0
  dfa.param "bias" : tensor<256xf32>, class = @weights, group = 0
}

func.func @step(%grad: !flat {dfa.role = "grad"},
                %param: !flat {dfa.role = "param"},
                %mean: !flat {dfa.role = "mean"},
                %variance: !flat {dfa.role = "variance"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!flat {dfa.role = "param"}, !flat {dfa.role = "mean"},
        !flat {dfa.role = "variance"},
        !dfa.control {dfa.role = "control"}) {
  %flag = dfa.non_finite %grad : !flat -> !dfa.partial<flag, whole>
  %inf = dfa.flag_finish %flag : !dfa.partial<flag, whole> -> i1
  %new:3 = dfa.update ins(%grad : !flat)
    outs(%param, %mean, %variance : !flat, !flat, !flat)
    control(%ctl) unless %inf hyper ["lr", "beta1", "beta2", "eps"]
    derive {
  ^bb0(%step: i64, %lr: f64, %beta1: f64, %beta2: f64, %eps: f64):
    %one = arith.constant 1.0 : f64
    %p1 = dfa.powi %beta1, %step : f64
    %p2 = dfa.powi %beta2, %step : f64
    %b1 = arith.subf %one, %p1 : f64
    %b2 = arith.subf %one, %p2 : f64
    %rate = arith.divf %lr, %b1 : f64
    %root = math.sqrt %b2 : f64
    %inverse = arith.divf %one, %root : f64
    %c1 = arith.subf %one, %beta1 : f64
    %c2 = arith.subf %one, %beta2 : f64
    %d0 = arith.truncf %c1 : f64 to f32
    %d1 = arith.truncf %c2 : f64 to f32
    %d2 = arith.truncf %rate : f64 to f32
    %d3 = arith.truncf %inverse : f64 to f32
    %d4 = arith.truncf %eps : f64 to f32
    dfa.yield %d0, %d1, %d2, %d3, %d4 : f32, f32, f32, f32, f32
  } apply {
  ^bb0(%g: f32, %p: f32, %m: f32, %s: f32,
       %c1: f32, %c2: f32, %rate: f32, %inverse: f32, %eps: f32):
    %distance = arith.subf %g, %m : f32
    %m1 = math.fma %c1, %distance, %m : f32
    %surprise = arith.subf %g, %m1 : f32
    %square = arith.mulf %surprise, %surprise : f32
    %change = arith.subf %square, %s : f32
    %s1 = math.fma %c2, %change, %s : f32
    %root = math.sqrt %s1 : f32
    %denominator = math.fma %root, %inverse, %eps : f32
    %ratio = arith.divf %m1, %denominator : f32
    %scaled = arith.mulf %rate, %ratio : f32
    %p1 = arith.subf %p, %scaled : f32
    dfa.yield %p1, %m1, %s1 : f32, f32, f32
  } : !flat, !flat, !flat
  %counted = dfa.step_count %ctl unless %inf
  return %new#0, %new#1, %new#2, %counted
    : !flat, !flat, !flat, !dfa.control
}
