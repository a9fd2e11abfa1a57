dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.param "a" : tensor<3xf32>, class = @w, group = 0
}
