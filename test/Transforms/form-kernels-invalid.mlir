// RUN: dfa-opt %s --dfa-generalize-rules --dfa-defer-factors --dfa-form-kernels \
// RUN:   --split-input-file --verify-diagnostics

// Hazards.
// 
// The update overwrites the parameter that a later stage needs as it was.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"},
                // expected-error @below {{is needed after array 'param' of class '@w' was overwritten; it would need a buffer of its own}}
                %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "other"}) {
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) -> !f
  %a = dfa.norm_partial %r : !f -> !dfa.partial<l2, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %o = dfa.unscale %p by %n : !f, f64 -> !f
  return %r, %o : !f, !f
}

// -----

// A collective in place overwrites the gradient of this rank alone.

!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(
    // expected-error @below {{is needed after array 'grad' of class '@w' was overwritten}}
    %g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
    %ctl: !dfa.control {dfa.role = "control"}) -> (!f {dfa.role = "param"}) {
  %r = dfa.all_reduce sum %g over "replicate" : !f
  %a = dfa.non_finite %g : !f -> !dfa.partial<flag, whole>
  %i = dfa.flag_finish %a : !dfa.partial<flag, whole> -> i1
  %n = dfa.sgd ins(%r : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  return %n : !f
}

// -----

// Returned as it came, but not there any more.

!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "grad"}, !f {dfa.role = "param"}) {
  %r = dfa.all_reduce sum %g over "replicate" : !f
  %n = dfa.sgd ins(%r : !f) outs(%p : !f) control(%ctl) -> !f
  // expected-error @below {{expects result #0 to be what is in its memory at the end, but role 'grad' was overwritten}}
  return %g, %n : !f, !f
}

// -----

// Results that swap their memory.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "grad"}) {
  // expected-error @below {{expects result #0 to keep the role 'grad' of the memory it is in, but got 'param'}}
  return %g, %p : !f, !f
}

// -----

// Two values for one memory.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "param"}) {
  %a = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) -> !f
  %b = dfa.sgd ins(%a : !f) outs(%p : !f) control(%ctl) -> !f
  // expected-error @below {{expects one value in role 'param' of class '@w', but got two}}
  return %a, %b : !f, !f
}

// -----

// Two flags: each kernel needs what the other overwrites.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %q: !f {dfa.role = "q"}, %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "q"}) {
  %i = arith.constant true
  %t = dfa.read %ctl["step"] : i64
  %z = arith.constant 0 : i64
  %j = arith.cmpi eq, %t, %z : i64
  // expected-error @below {{is computed apart from other values, by their 'unless' flags, and each needs what the other overwrites}}
  %a = dfa.sgd ins(%q : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  %b = dfa.sgd ins(%p : !f) outs(%q : !f) control(%ctl) unless %j -> !f
  return %a, %b : !f, !f
}

// -----

// Two flags for one value.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!f {dfa.role = "param"}) {
  %i = arith.constant true
  %j = arith.constant false
  %a = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  // expected-error @below {{expects one 'unless' flag for values that are computed together}}
  %b = dfa.sgd ins(%g : !f) outs(%a : !f) control(%ctl) unless %j -> !f
  return %b : !f
}

// -----

// Two flags for one step count.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %q: !f {dfa.role = "q"}, %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "param"}, !f {dfa.role = "q"}) {
  %i = arith.constant true
  // expected-note @below {{another update}}
  %a = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  // expected-error @below {{expects the 'unless' flag of the other updates of class '@w': a parameter has one step count}}
  %b = dfa.sgd ins(%g : !f) outs(%q : !f) control(%ctl) -> !f
  return %a, %b : !f, !f
}

// -----

// The norm of values that a flag may keep, wanted even then.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!f {dfa.role = "param"}, !dfa.control {dfa.role = "control"}) {
  %i = arith.constant true
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%ctl) unless %i -> !f
  // expected-error @below {{reduces values that an 'unless' flag may keep from changing, but its result is needed even then}}
  %a = dfa.norm_partial %r : !f -> !dfa.partial<l2, whole>
  %n = dfa.norm_finish %a : !dfa.partial<l2, whole> -> f64
  %k = dfa.write %n, %ctl["norm"] : f64
  return %r, %k : !f, !dfa.control
}

// -----

// Partials.
// 
// Ready together, combined over different ranks.

!full = !dfa.flat<@l, @w, full, f32>
!f = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, whole>
  %b = dfa.non_finite %g : !f -> !dfa.partial<flag, whole>
  %c = dfa.combine %a over ["shard"] : !dfa.partial<l2, whole>
  %d = dfa.combine %b over ["replicate"] : !dfa.partial<flag, whole>
  %n = dfa.norm_finish %c : !dfa.partial<l2, whole> -> f64
  // expected-error @below {{expects all partials that are ready together to be combined over the same ranks}}
  %i = dfa.flag_finish %d : !dfa.partial<flag, whole> -> i1
  %k = dfa.write %n, %ctl["norm"] : f64
  %k2 = dfa.step_count %k unless %i
  return %k2 : !dfa.control
}

// -----

// Over two axes.

!full = !dfa.flat<@l, @w, full, f32>
!f = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!dfa.control {dfa.role = "control"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, whole>
  // expected-error @below {{expects partials to be combined over one axis, once}}
  %c = dfa.combine %a over ["shard", "replicate"] : !dfa.partial<l2, whole>
  %n = dfa.norm_finish %c : !dfa.partial<l2, whole> -> f64
  %k = dfa.write %n, %ctl["norm"] : f64
  return %k : !dfa.control
}

// -----

// Of groups, at two times: there is one table.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!f {dfa.role = "param"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, group>
  %n = dfa.norm_finish %a : !dfa.partial<l2, group> -> !dfa.per<group, f64>
  %u = dfa.unscale %g by %n : !f, !dfa.per<group, f64> -> !f
  // expected-error @below {{expects all statistics of groups to be ready together}}
  %b = dfa.norm_partial %u : !f -> !dfa.partial<l1, group>
  %m = dfa.norm_finish %b : !dfa.partial<l1, group> -> !dfa.per<group, f64>
  %v = dfa.unscale %u by %m : !f, !dfa.per<group, f64> -> !f
  return %v : !f
}

// -----

// From outside.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

// expected-error @below {{expects arguments of type '!dfa.flat' or '!dfa.control', but argument #1 is of type '!dfa.partial<l2, whole>'}}
func.func @step(%g: !f {dfa.role = "grad"}, %a: !dfa.partial<l2, whole> {dfa.role = "x"}) {
  %c = dfa.combine %a, %a : !dfa.partial<l2, whole>
  %n = dfa.norm_finish %c : !dfa.partial<l2, whole> -> f64
  return
}

// -----

// One scalar a group from outside.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

// expected-error @below {{but argument #1 is of type '!dfa.per<group, f64>'}}
func.func @step(%g: !f {dfa.role = "grad"}, %n: !dfa.per<group, f64> {dfa.role = "x"}) -> (!f {dfa.role = "out"}) {
  %u = dfa.unscale %g by %n : !f, !dfa.per<group, f64> -> !f
  return %u : !f
}

// -----

// More scalars between kernels than there is room for.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %ctl: !dfa.control {dfa.role = "control"})
    -> (!f {dfa.role = "out"}) {
  %x0 = dfa.read %ctl["max_norm"] : f64
  %u0 = dfa.clip_value %g to %x0 : !f, f64
  %x1 = arith.addf %x0, %x0 : f64
  %u1 = dfa.clip_value %u0 to %x1 : !f, f64
  %x2 = arith.addf %x1, %x1 : f64
  %u2 = dfa.clip_value %u1 to %x2 : !f, f64
  %x3 = arith.addf %x2, %x2 : f64
  %u3 = dfa.clip_value %u2 to %x3 : !f, f64
  %x4 = arith.addf %x3, %x3 : f64
  %u4 = dfa.clip_value %u3 to %x4 : !f, f64
  %x5 = arith.addf %x4, %x4 : f64
  %u5 = dfa.clip_value %u4 to %x5 : !f, f64
  %x6 = arith.addf %x5, %x5 : f64
  %u6 = dfa.clip_value %u5 to %x6 : !f, f64
  %x7 = arith.addf %x6, %x6 : f64
  %u7 = dfa.clip_value %u6 to %x7 : !f, f64
  %x8 = arith.addf %x7, %x7 : f64
  %u8 = dfa.clip_value %u7 to %x8 : !f, f64
  %x9 = arith.addf %x8, %x8 : f64
  %u9 = dfa.clip_value %u8 to %x9 : !f, f64
  %x10 = arith.addf %x9, %x9 : f64
  %u10 = dfa.clip_value %u9 to %x10 : !f, f64
  %x11 = arith.addf %x10, %x10 : f64
  %u11 = dfa.clip_value %u10 to %x11 : !f, f64
  %x12 = arith.addf %x11, %x11 : f64
  %u12 = dfa.clip_value %u11 to %x12 : !f, f64
  %x13 = arith.addf %x12, %x12 : f64
  %u13 = dfa.clip_value %u12 to %x13 : !f, f64
  %x14 = arith.addf %x13, %x13 : f64
  %u14 = dfa.clip_value %u13 to %x14 : !f, f64
  %x15 = arith.addf %x14, %x14 : f64
  %u15 = dfa.clip_value %u14 to %x15 : !f, f64
  %x16 = arith.addf %x15, %x15 : f64
  %u16 = dfa.clip_value %u15 to %x16 : !f, f64
  %x17 = arith.addf %x16, %x16 : f64
  %u17 = dfa.clip_value %u16 to %x17 : !f, f64
  %x18 = arith.addf %x17, %x17 : f64
  %u18 = dfa.clip_value %u17 to %x18 : !f, f64
  %x19 = arith.addf %x18, %x18 : f64
  %u19 = dfa.clip_value %u18 to %x19 : !f, f64
  %x20 = arith.addf %x19, %x19 : f64
  %u20 = dfa.clip_value %u19 to %x20 : !f, f64
  %x21 = arith.addf %x20, %x20 : f64
  %u21 = dfa.clip_value %u20 to %x21 : !f, f64
  %x22 = arith.addf %x21, %x21 : f64
  %u22 = dfa.clip_value %u21 to %x22 : !f, f64
  %x23 = arith.addf %x22, %x22 : f64
  %u23 = dfa.clip_value %u22 to %x23 : !f, f64
  %x24 = arith.addf %x23, %x23 : f64
  %u24 = dfa.clip_value %u23 to %x24 : !f, f64
  %x25 = arith.addf %x24, %x24 : f64
  %u25 = dfa.clip_value %u24 to %x25 : !f, f64
  %x26 = arith.addf %x25, %x25 : f64
  %u26 = dfa.clip_value %u25 to %x26 : !f, f64
  %x27 = arith.addf %x26, %x26 : f64
  %u27 = dfa.clip_value %u26 to %x27 : !f, f64
  %x28 = arith.addf %x27, %x27 : f64
  %u28 = dfa.clip_value %u27 to %x28 : !f, f64
  %x29 = arith.addf %x28, %x28 : f64
  %u29 = dfa.clip_value %u28 to %x29 : !f, f64
  %x30 = arith.addf %x29, %x29 : f64
  %u30 = dfa.clip_value %u29 to %x30 : !f, f64
  %x31 = arith.addf %x30, %x30 : f64
  %u31 = dfa.clip_value %u30 to %x31 : !f, f64
  // expected-error @below {{is one scalar too many; there is room for 32 between kernels}}
  %x32 = arith.addf %x31, %x31 : f64
  %u32 = dfa.clip_value %u31 to %x32 : !f, f64
  return %u32 : !f
}

// -----

// Zeros for what is not in memory.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!dfa.control {dfa.role = "control"}) {
  %s = arith.constant 2.0 : f64
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  // expected-error @below {{expects gradients that are arguments of the step or results of collectives}}
  %k = dfa.zero_grad memset %ctl, %u : !f
  return %k : !dfa.control
}

// -----

// Collectives.
// 
// A computed value has memory only if the result is returned.

!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!f {dfa.role = "param"}) {
  %s = arith.constant 2.0 : f64
  %u = dfa.unscale %g by %s : !f, f64 -> !f
  // expected-error @below {{expects the result of a collective over a computed value to be returned}}
  %r = dfa.all_reduce sum %u over "replicate" : !f
  %n = dfa.sgd ins(%r : !f) outs(%p : !f) control(%ctl) -> !f
  return %n : !f
}

// -----

// The command has no root.

!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%p: !f {dfa.role = "param"}) -> (!f {dfa.role = "param"}) {
  // expected-error @below {{expects to broadcast from rank 0 of the axis, but got 1}}
  %r = dfa.broadcast %p from 1 over "replicate" : !f
  return %r : !f
}

// -----

// What does not belong.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func private @f(f64) -> f64
func.func @step(%g: !f {dfa.role = "grad"}, %ctl: !dfa.control {dfa.role = "control"}) {
  %x = dfa.read %ctl["max_norm"] : f64
  // expected-error @below {{is not allowed in a step; expects ops of 'dfa' on values, 'arith' and 'math' on scalars}}
  %y = func.call @f(%x) : (f64) -> f64
  return
}

// -----

// A choice between vectors is no scalar op.

!f = !dfa.flat<@l, @w, full, f32>
dfa.layout @l {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}

func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}, %ctl: !dfa.control {dfa.role = "control"}) -> (!f {dfa.role = "out"}) {
  %n = dfa.read %ctl["max_norm"] : f64
  %zero = arith.constant 0.0 : f64
  %i = arith.cmpf oeq, %n, %zero : f64
  // expected-error @below {{is not allowed in a step}}
  %x = arith.select %i, %g, %p : !f
  return %x : !f
}

// -----

// No memory at all.

// expected-error @below {{expects an argument of type '!dfa.flat'}}
func.func @step(%ctl: !dfa.control {dfa.role = "control"}) -> (!dfa.control {dfa.role = "control"}) {
  %k = dfa.step_count %ctl
  return %k : !dfa.control
}

// -----

// Both norms are gathered by one collective.
!f = !dfa.flat<@l, @w, shard, f32>
dfa.mesh @dp(replicate = 2, shard = 2)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
}
func.func @step(%g: !f {dfa.role = "grad"}, %p: !f {dfa.role = "param"}) -> (!f {dfa.role = "param"}) {
  %a = dfa.norm_partial %g : !f -> !dfa.partial<l2, param>
  %b = dfa.norm_partial %p : !f -> !dfa.partial<l2, param>
  // expected-note @below {{another one}}
  %c = dfa.combine %a over ["shard"] : !dfa.partial<l2, param>
  // expected-error @below {{expects statistics of parameters that are needed together to be combined over the same ranks}}
  %d = dfa.combine %b over ["replicate"] : !dfa.partial<l2, param>
  %m = dfa.norm_finish %c : !dfa.partial<l2, param> -> !dfa.per<param, f64>
  %n = dfa.norm_finish %d : !dfa.partial<l2, param> -> !dfa.per<param, f64>
  %t = dfa.trust_ratio %m, %n : !dfa.per<param, f64>
  %u = dfa.unscale %g by %t : !f, !dfa.per<param, f64> -> !f
  return %u : !f
}
