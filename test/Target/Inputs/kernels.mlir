// The kernels of register-budget.mlir: each storage of AdamW, other rules, and
// every kind of reduction.

dfa.kernel @adamw_f32 on @l::@w arrays [
    #dfa.array<"grad", f32, read>,
    #dfa.array<"master", f32, readwrite>,
    #dfa.array<"exp_avg", f32, readwrite>,
    #dfa.array<"exp_avg_sq", f32, readwrite>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  %d4 = dfa.load_derived 4 : f32
  %d5 = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3, %d4, %d5 : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %d4: f32, %d5: f32, %g: f32, %p: f32, %m: f32, %v: f32):
  %w = arith.mulf %g, %f : f32
  %x = arith.subf %w, %m : f32
  %m1 = math.fma %d0, %x, %m : f32
  %nv = arith.negf %v : f32
  %y = math.fma %w, %w, %nv : f32
  %v1 = math.fma %d1, %y, %v : f32
  %s = math.sqrt %v1 : f32
  %den = math.fma %s, %d3, %d4 : f32
  %r = arith.divf %m1, %den : f32
  %wd = arith.mulf %d5, %p : f32
  %c = math.fma %d2, %r, %wd : f32
  %p1 = arith.subf %p, %c : f32
  dfa.yield %p1, %m1, %v1 : f32, f32, f32
}

dfa.kernel @adamw_bf16 on @l::@w arrays [
    #dfa.array<"grad", bf16, read>,
    #dfa.array<"master", f32, readwrite>,
    #dfa.array<"exp_avg", f32, readwrite>,
    #dfa.array<"exp_avg_sq", f32, readwrite>,
    #dfa.array<"param", bf16, write>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  %d4 = dfa.load_derived 4 : f32
  %d5 = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3, %d4, %d5 : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %d4: f32, %d5: f32, %g: bf16, %p: f32, %m: f32, %v: f32):
  %e = arith.extf %g : bf16 to f32
  %w = arith.mulf %e, %f : f32
  %x = arith.subf %w, %m : f32
  %m1 = math.fma %d0, %x, %m : f32
  %nv = arith.negf %v : f32
  %y = math.fma %w, %w, %nv : f32
  %v1 = math.fma %d1, %y, %v : f32
  %s = math.sqrt %v1 : f32
  %den = math.fma %s, %d3, %d4 : f32
  %r = arith.divf %m1, %den : f32
  %wd = arith.mulf %d5, %p : f32
  %c = math.fma %d2, %r, %wd : f32
  %p1 = arith.subf %p, %c : f32
  %o = arith.truncf %p1 : f32 to bf16
  dfa.yield %p1, %m1, %v1, %o : f32, f32, f32, bf16
}

dfa.kernel @adamw_f16 on @l::@w arrays [
    #dfa.array<"grad", f16, read>,
    #dfa.array<"master", f32, readwrite>,
    #dfa.array<"exp_avg", f32, readwrite>,
    #dfa.array<"exp_avg_sq", f32, readwrite>,
    #dfa.array<"param", f16, write>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  %d4 = dfa.load_derived 4 : f32
  %d5 = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3, %d4, %d5 : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %d4: f32, %d5: f32, %g: f16, %p: f32, %m: f32, %v: f32):
  %e = arith.extf %g : f16 to f32
  %w = arith.mulf %e, %f : f32
  %x = arith.subf %w, %m : f32
  %m1 = math.fma %d0, %x, %m : f32
  %nv = arith.negf %v : f32
  %y = math.fma %w, %w, %nv : f32
  %v1 = math.fma %d1, %y, %v : f32
  %s = math.sqrt %v1 : f32
  %den = math.fma %s, %d3, %d4 : f32
  %r = arith.divf %m1, %den : f32
  %wd = arith.mulf %d5, %p : f32
  %c = math.fma %d2, %r, %wd : f32
  %p1 = arith.subf %p, %c : f32
  %o = arith.truncf %p1 : f32 to f16
  dfa.yield %p1, %m1, %v1, %o : f32, f32, f32, f16
}

dfa.kernel @adamw_narrow_states on @l::@w arrays [
    #dfa.array<"grad", bf16, read>,
    #dfa.array<"master", f32, readwrite>,
    #dfa.array<"exp_avg", bf16, readwrite>,
    #dfa.array<"exp_avg_sq", bf16, readwrite>,
    #dfa.array<"param", bf16, write>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  %d4 = dfa.load_derived 4 : f32
  %d5 = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3, %d4, %d5 : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %d4: f32, %d5: f32, %g: bf16, %p: f32, %mb: bf16, %vb: bf16):
  %e = arith.extf %g : bf16 to f32
  %w = arith.mulf %e, %f : f32
  %m = arith.extf %mb : bf16 to f32
  %v = arith.extf %vb : bf16 to f32
  %x = arith.subf %w, %m : f32
  %m1 = math.fma %d0, %x, %m : f32
  %nv = arith.negf %v : f32
  %y = math.fma %w, %w, %nv : f32
  %v1 = math.fma %d1, %y, %v : f32
  %s = math.sqrt %v1 : f32
  %den = math.fma %s, %d3, %d4 : f32
  %r = arith.divf %m1, %den : f32
  %wd = arith.mulf %d5, %p : f32
  %c = math.fma %d2, %r, %wd : f32
  %p1 = arith.subf %p, %c : f32
  %mo = arith.truncf %m1 : f32 to bf16
  %vo = arith.truncf %v1 : f32 to bf16
  %o = arith.truncf %p1 : f32 to bf16
  dfa.yield %p1, %mo, %vo, %o : f32, bf16, bf16, bf16
}

dfa.kernel @adamw_remainder on @l::@w arrays [
    #dfa.array<"grad", bf16, read>,
    #dfa.array<"param", bf16, readwrite>,
    #dfa.array<"remainder", i16, readwrite>,
    #dfa.array<"exp_avg", f32, readwrite>,
    #dfa.array<"exp_avg_sq", f32, readwrite>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  %d4 = dfa.load_derived 4 : f32
  %d5 = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3, %d4, %d5 : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %d4: f32, %d5: f32, %g: bf16, %h: bf16, %l: i16, %m: f32, %v: f32):
  %hb = arith.bitcast %h : bf16 to i16
  %hw = arith.extui %hb : i16 to i32
  %c16 = arith.constant 16 : i32
  %hs = arith.shli %hw, %c16 : i32
  %lw = arith.extsi %l : i16 to i32
  %pb = arith.addi %hs, %lw : i32
  %p = arith.bitcast %pb : i32 to f32
  %e = arith.extf %g : bf16 to f32
  %w = arith.mulf %e, %f : f32
  %x = arith.subf %w, %m : f32
  %m1 = math.fma %d0, %x, %m : f32
  %nv = arith.negf %v : f32
  %y = math.fma %w, %w, %nv : f32
  %v1 = math.fma %d1, %y, %v : f32
  %s = math.sqrt %v1 : f32
  %den = math.fma %s, %d3, %d4 : f32
  %r = arith.divf %m1, %den : f32
  %wd = arith.mulf %d5, %p : f32
  %c = math.fma %d2, %r, %wd : f32
  %p1 = arith.subf %p, %c : f32
  %nb = arith.bitcast %p1 : f32 to i32
  %nl = arith.trunci %nb : i32 to i16
  %ns = arith.extsi %nl : i16 to i32
  %nd = arith.subi %nb, %ns : i32
  %nh = arith.shrui %nd, %c16 : i32
  %no = arith.trunci %nh : i32 to i16
  %o = arith.bitcast %no : i16 to bf16
  dfa.yield %o, %nl, %m1, %v1 : bf16, i16, f32, f32
}

dfa.kernel @amsgrad on @l::@w arrays [
    #dfa.array<"grad", f32, read>,
    #dfa.array<"param", f32, readwrite>,
    #dfa.array<"exp_avg", f32, readwrite>,
    #dfa.array<"exp_avg_sq", f32, readwrite>,
    #dfa.array<"max_exp_avg_sq", f32, readwrite>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  %d4 = dfa.load_derived 4 : f32
  %d5 = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3, %d4, %d5 : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %d4: f32, %d5: f32, %g: f32, %p: f32, %m: f32, %v: f32, %old: f32):
  %w = arith.mulf %g, %f : f32
  %x = arith.subf %w, %m : f32
  %m1 = math.fma %d0, %x, %m : f32
  %nv = arith.negf %v : f32
  %y = math.fma %w, %w, %nv : f32
  %v1 = math.fma %d1, %y, %v : f32
  %lt = arith.cmpf olt, %v1, %old : f32
  %v2 = arith.select %lt, %old, %v1 : f32
  %s = math.sqrt %v2 : f32
  %den = math.fma %s, %d3, %d4 : f32
  %r = arith.divf %m1, %den : f32
  %wd = arith.mulf %d5, %p : f32
  %c = math.fma %d2, %r, %wd : f32
  %p1 = arith.subf %p, %c : f32
  dfa.yield %p1, %m1, %v1, %v2 : f32, f32, f32, f32
}

dfa.kernel @sgd on @l::@w arrays [
    #dfa.array<"grad", f32, read>,
    #dfa.array<"param", f32, readwrite>,
    #dfa.array<"momentum_buffer", f32, readwrite>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  dfa.yield %go, %f, %d0, %d1, %d2 : i1, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %g: f32, %p: f32, %m: f32):
  %w = arith.mulf %g, %f : f32
  %x = math.fma %d0, %p, %w : f32
  %m1 = math.fma %d1, %m, %x : f32
  %c = arith.mulf %d2, %m1 : f32
  %p1 = arith.subf %p, %c : f32
  dfa.yield %p1, %m1 : f32, f32
}

dfa.kernel @lion on @l::@w arrays [
    #dfa.array<"grad", f32, read>,
    #dfa.array<"param", f32, readwrite>,
    #dfa.array<"momentum_buffer", f32, readwrite>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3 : i1, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %g: f32, %p: f32, %m: f32):
  %w = arith.mulf %g, %f : f32
  %x = arith.subf %w, %m : f32
  %u = math.fma %d0, %x, %m : f32
  %zero = arith.constant 0.0 : f32
  %gt = arith.cmpf ogt, %u, %zero : f32
  %lt = arith.cmpf olt, %u, %zero : f32
  %one = arith.constant 1.0 : f32
  %minus = arith.constant -1.0 : f32
  %a = arith.select %lt, %minus, %u : f32
  %sg = arith.select %gt, %one, %a : f32
  %wd = arith.mulf %d3, %p : f32
  %c = math.fma %d2, %sg, %wd : f32
  %p1 = arith.subf %p, %c : f32
  %m1 = math.fma %d1, %x, %m : f32
  dfa.yield %p1, %m1 : f32, f32
}

dfa.kernel @norm_f32 on @l::@w arrays [
    #dfa.array<"grad", f32, read>]
    accumulators [sum] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  dfa.yield %go, %f : i1, f32
} body {
^bb0(%f: f32, %g: f32):
  %x = arith.extf %g : f32 to f64
  %s = arith.mulf %x, %x : f64
  dfa.yield %s : f64
}

dfa.kernel @norm_finite_f32 on @l::@w arrays [
    #dfa.array<"grad", f32, read>]
    accumulators [sum, max] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  dfa.yield %go, %f : i1, f32
} body {
^bb0(%f: f32, %g: f32):
  %x = arith.extf %g : f32 to f64
  %s = arith.mulf %x, %x : f64
  %a = math.absf %x : f64
  %big = arith.constant 0x7FF0000000000000 : f64
  %fin = arith.cmpf olt, %a, %big : f64
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %flag = arith.select %fin, %zero, %one : f64
  dfa.yield %s, %flag : f64, f64
}

dfa.kernel @norm_bf16 on @l::@w arrays [
    #dfa.array<"grad", bf16, read>]
    accumulators [sum] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  dfa.yield %go, %f : i1, f32
} body {
^bb0(%f: f32, %g: bf16):
  %x = arith.extf %g : bf16 to f64
  %s = arith.mulf %x, %x : f64
  dfa.yield %s : f64
}

dfa.kernel @norm_finite_bf16 on @l::@w arrays [
    #dfa.array<"grad", bf16, read>]
    accumulators [sum, max] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  dfa.yield %go, %f : i1, f32
} body {
^bb0(%f: f32, %g: bf16):
  %x = arith.extf %g : bf16 to f64
  %s = arith.mulf %x, %x : f64
  %a = math.absf %x : f64
  %big = arith.constant 0x7FF0000000000000 : f64
  %fin = arith.cmpf olt, %a, %big : f64
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %flag = arith.select %fin, %zero, %one : f64
  dfa.yield %s, %flag : f64, f64
}

dfa.kernel @norm_f16 on @l::@w arrays [
    #dfa.array<"grad", f16, read>]
    accumulators [sum] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  dfa.yield %go, %f : i1, f32
} body {
^bb0(%f: f32, %g: f16):
  %x = arith.extf %g : f16 to f64
  %s = arith.mulf %x, %x : f64
  dfa.yield %s : f64
}

dfa.kernel @norm_finite_f16 on @l::@w arrays [
    #dfa.array<"grad", f16, read>]
    accumulators [sum, max] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  dfa.yield %go, %f : i1, f32
} body {
^bb0(%f: f32, %g: f16):
  %x = arith.extf %g : f16 to f64
  %s = arith.mulf %x, %x : f64
  %a = math.absf %x : f64
  %big = arith.constant 0x7FF0000000000000 : f64
  %fin = arith.cmpf olt, %a, %big : f64
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %flag = arith.select %fin, %zero, %one : f64
  dfa.yield %s, %flag : f64, f64
}

dfa.kernel @lamb_norms on @l::@w arrays [
    #dfa.array<"grad", bf16, read>,
    #dfa.array<"master", f32, read>,
    #dfa.array<"exp_avg", f32, read>,
    #dfa.array<"exp_avg_sq", f32, read>]
    accumulators [sum, sum] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %d0 = dfa.load_derived 0 : f32
  %d1 = dfa.load_derived 1 : f32
  %d2 = dfa.load_derived 2 : f32
  %d3 = dfa.load_derived 3 : f32
  %d4 = dfa.load_derived 4 : f32
  %d5 = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %d0, %d1, %d2, %d3, %d4, %d5 : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %d0: f32, %d1: f32, %d2: f32, %d3: f32, %d4: f32, %d5: f32, %g: bf16, %p: f32, %m: f32, %v: f32):
  %e = arith.extf %g : bf16 to f32
  %w = arith.mulf %e, %f : f32
  %x = arith.subf %w, %m : f32
  %m1 = math.fma %d0, %x, %m : f32
  %nv = arith.negf %v : f32
  %y = math.fma %w, %w, %nv : f32
  %v1 = math.fma %d1, %y, %v : f32
  %s = math.sqrt %v1 : f32
  %den = math.fma %s, %d3, %d4 : f32
  %r = arith.divf %m1, %den : f32
  %wd = arith.mulf %d5, %p : f32
  %c = math.fma %d2, %r, %wd : f32
  %p1 = arith.subf %p, %c : f32
  %pw = arith.extf %p : f32 to f64
  %ps = arith.mulf %pw, %pw : f64
  %cw = arith.extf %c : f32 to f64
  %cs = arith.mulf %cw, %cw : f64
  dfa.yield %ps, %cs : f64, f64
}

dfa.control_kernel @finish accumulators [sum, max] {
^bb0(%sum: f64, %max: f64):
  %n = math.sqrt %sum : f64
  dfa.store_control "norm", %n : f64
  dfa.store_scratch 0, %max : f64
  dfa.yield
}

dfa.control_kernel @group_norms accumulators [sum] groups [sum] {
^bb0(%sum: f64):
  %n = math.sqrt %sum : f64
  dfa.store_control "norm", %n : f64
  dfa.yield
}

dfa.segment_kernel @rows on @l::@w accumulators [] {
  %t = dfa.load_segment step : i64
  %one = arith.constant 1 : i64
  %u = arith.addi %t, %one : i64
  dfa.store_segment step, %u : i64
  %beta = dfa.load_hyper "beta1" at 1 : f64
  %p = dfa.powi %beta, %u : f64
  %f = arith.truncf %p : f64 to f32
  dfa.store_derived 0, %f : f32
  dfa.yield
}

dfa.segment_kernel @ratios on @l::@w accumulators [sum, sum] {
^bb0(%a: f64, %b: f64):
  %x = math.sqrt %a : f64
  %y = math.sqrt %b : f64
  %r = arith.divf %x, %y : f64
  %f = arith.truncf %r : f64 to f32
  dfa.store_derived 0, %f : f32
  dfa.yield
}
