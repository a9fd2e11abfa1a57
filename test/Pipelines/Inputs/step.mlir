!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.param "a" : tensor<3xf32>, class = @w, group = 0
}
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}) {
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) -> !f
  return %r : !f
}
