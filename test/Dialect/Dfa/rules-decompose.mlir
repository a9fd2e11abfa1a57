// RUN: dfa-opt %s --dfa-generalize-rules | FileCheck %s

// The trees of docs/rules.md, operation by operation.

!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>

// CHECK-LABEL: func.func @adam_plain(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S2:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:3 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]], %[[S2]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "beta1", "beta2", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = dfa.powi %[[BETA1]], %[[T]] : f64
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.subf %[[V1]], %[[V2]] : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.divf %[[LR]], %[[V3]] : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = dfa.powi %[[BETA2]], %[[T]] : f64
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.subf %[[V1]], %[[V5]] : f64
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = math.sqrt %[[V6]] : f64
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.divf %[[V1]], %[[V7]] : f64
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA1]] : f64
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = arith.truncf %[[V9]] : f64 to f32
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA2]] : f64
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.truncf %[[V11]] : f64 to f32
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.truncf %[[V4]] : f64 to f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.truncf %[[V8]] : f64 to f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V10]], %[[V12]], %[[V13]], %[[V14]], %[[V15]], %[[V16]] : f32, f32, f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[X3:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32, %[[D4:[a-z0-9_]+]]: f32, %[[D5:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = math.fma %[[D5]], %[[X1]], %[[X0]] : f32
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = arith.subf %[[V17]], %[[X2]] : f32
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = math.fma %[[D0]], %[[V18]], %[[X2]] : f32
// CHECK-NEXT: %[[V20:[a-z0-9_]+]] = arith.negf %[[X3]] : f32
// CHECK-NEXT: %[[V21:[a-z0-9_]+]] = math.fma %[[V17]], %[[V17]], %[[V20]] : f32
// CHECK-NEXT: %[[V22:[a-z0-9_]+]] = math.fma %[[D1]], %[[V21]], %[[X3]] : f32
// CHECK-NEXT: %[[V23:[a-z0-9_]+]] = math.sqrt %[[V22]] : f32
// CHECK-NEXT: %[[V24:[a-z0-9_]+]] = math.fma %[[V23]], %[[D3]], %[[D4]] : f32
// CHECK-NEXT: %[[V25:[a-z0-9_]+]] = arith.divf %[[V19]], %[[V24]] : f32
// CHECK-NEXT: %[[V26:[a-z0-9_]+]] = arith.mulf %[[D2]], %[[V25]] : f32
// CHECK-NEXT: %[[V27:[a-z0-9_]+]] = arith.subf %[[X1]], %[[V26]] : f32
// CHECK-NEXT: dfa.yield %[[V27]], %[[V19]], %[[V22]] : f32, f32, f32
// CHECK-NEXT: }
func.func @adam_plain(%g: !f, %s0: !f, %s1: !f, %s2: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f, !f) {
  %r:3 = dfa.adam adam ins(%g : !f)
    outs(%s0, %s1, %s2 : !f, !f, !f)
    control(%c) unless %i -> !f, !f, !f
  return %r#0, %r#1, %r#2 : !f, !f, !f
}

// CHECK-LABEL: func.func @adamw(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S2:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:3 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]], %[[S2]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "beta1", "beta2", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = dfa.powi %[[BETA1]], %[[T]] : f64
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.subf %[[V1]], %[[V2]] : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.divf %[[LR]], %[[V3]] : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = dfa.powi %[[BETA2]], %[[T]] : f64
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.subf %[[V1]], %[[V5]] : f64
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = math.sqrt %[[V6]] : f64
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.divf %[[V1]], %[[V7]] : f64
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA1]] : f64
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = arith.truncf %[[V9]] : f64 to f32
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA2]] : f64
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.truncf %[[V11]] : f64 to f32
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.truncf %[[V4]] : f64 to f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.truncf %[[V8]] : f64 to f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = arith.mulf %[[LR]], %[[WEIGHT_DECAY]] : f64
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = arith.truncf %[[V16]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V10]], %[[V12]], %[[V13]], %[[V14]], %[[V15]], %[[V17]] : f32, f32, f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[X3:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32, %[[D4:[a-z0-9_]+]]: f32, %[[D5:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = arith.subf %[[X0]], %[[X2]] : f32
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = math.fma %[[D0]], %[[V18]], %[[X2]] : f32
// CHECK-NEXT: %[[V20:[a-z0-9_]+]] = arith.negf %[[X3]] : f32
// CHECK-NEXT: %[[V21:[a-z0-9_]+]] = math.fma %[[X0]], %[[X0]], %[[V20]] : f32
// CHECK-NEXT: %[[V22:[a-z0-9_]+]] = math.fma %[[D1]], %[[V21]], %[[X3]] : f32
// CHECK-NEXT: %[[V23:[a-z0-9_]+]] = math.sqrt %[[V22]] : f32
// CHECK-NEXT: %[[V24:[a-z0-9_]+]] = math.fma %[[V23]], %[[D3]], %[[D4]] : f32
// CHECK-NEXT: %[[V25:[a-z0-9_]+]] = arith.divf %[[V19]], %[[V24]] : f32
// CHECK-NEXT: %[[V26:[a-z0-9_]+]] = arith.mulf %[[D5]], %[[X1]] : f32
// CHECK-NEXT: %[[V27:[a-z0-9_]+]] = math.fma %[[D2]], %[[V25]], %[[V26]] : f32
// CHECK-NEXT: %[[V28:[a-z0-9_]+]] = arith.subf %[[X1]], %[[V27]] : f32
// CHECK-NEXT: dfa.yield %[[V28]], %[[V19]], %[[V22]] : f32, f32, f32
// CHECK-NEXT: }
func.func @adamw(%g: !f, %s0: !f, %s1: !f, %s2: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f, !f) {
  %r:3 = dfa.adam adamw ins(%g : !f)
    outs(%s0, %s1, %s2 : !f, !f, !f)
    control(%c) unless %i -> !f, !f, !f
  return %r#0, %r#1, %r#2 : !f, !f, !f
}

// CHECK-LABEL: func.func @adamw_amsgrad_maximize(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S2:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S3:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:4 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]], %[[S2]], %[[S3]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "beta1", "beta2", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = dfa.powi %[[BETA1]], %[[T]] : f64
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.subf %[[V1]], %[[V2]] : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.divf %[[LR]], %[[V3]] : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = dfa.powi %[[BETA2]], %[[T]] : f64
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.subf %[[V1]], %[[V5]] : f64
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = math.sqrt %[[V6]] : f64
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.divf %[[V1]], %[[V7]] : f64
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA1]] : f64
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = arith.truncf %[[V9]] : f64 to f32
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA2]] : f64
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.truncf %[[V11]] : f64 to f32
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.truncf %[[V4]] : f64 to f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.truncf %[[V8]] : f64 to f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = arith.mulf %[[LR]], %[[WEIGHT_DECAY]] : f64
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = arith.truncf %[[V16]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V10]], %[[V12]], %[[V13]], %[[V14]], %[[V15]], %[[V17]] : f32, f32, f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[X3:[a-z0-9_]+]]: f32, %[[X4:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32, %[[D4:[a-z0-9_]+]]: f32, %[[D5:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = arith.negf %[[X0]] : f32
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = arith.subf %[[V18]], %[[X2]] : f32
// CHECK-NEXT: %[[V20:[a-z0-9_]+]] = math.fma %[[D0]], %[[V19]], %[[X2]] : f32
// CHECK-NEXT: %[[V21:[a-z0-9_]+]] = arith.negf %[[X3]] : f32
// CHECK-NEXT: %[[V22:[a-z0-9_]+]] = math.fma %[[V18]], %[[V18]], %[[V21]] : f32
// CHECK-NEXT: %[[V23:[a-z0-9_]+]] = math.fma %[[D1]], %[[V22]], %[[X3]] : f32
// CHECK-NEXT: %[[V24:[a-z0-9_]+]] = arith.cmpf olt, %[[V23]], %[[X4]] : f32
// CHECK-NEXT: %[[V25:[a-z0-9_]+]] = arith.select %[[V24]], %[[X4]], %[[V23]] : f32
// CHECK-NEXT: %[[V26:[a-z0-9_]+]] = math.sqrt %[[V25]] : f32
// CHECK-NEXT: %[[V27:[a-z0-9_]+]] = math.fma %[[V26]], %[[D3]], %[[D4]] : f32
// CHECK-NEXT: %[[V28:[a-z0-9_]+]] = arith.divf %[[V20]], %[[V27]] : f32
// CHECK-NEXT: %[[V29:[a-z0-9_]+]] = arith.mulf %[[D5]], %[[X1]] : f32
// CHECK-NEXT: %[[V30:[a-z0-9_]+]] = math.fma %[[D2]], %[[V28]], %[[V29]] : f32
// CHECK-NEXT: %[[V31:[a-z0-9_]+]] = arith.subf %[[X1]], %[[V30]] : f32
// CHECK-NEXT: dfa.yield %[[V31]], %[[V20]], %[[V23]], %[[V25]] : f32, f32, f32, f32
// CHECK-NEXT: }
func.func @adamw_amsgrad_maximize(%g: !f, %s0: !f, %s1: !f, %s2: !f, %s3: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f, !f, !f) {
  %r:4 = dfa.adam adamw ins(%g : !f)
    outs(%s0, %s1, %s2, %s3 : !f, !f, !f, !f)
    control(%c) unless %i {amsgrad, maximize} -> !f, !f, !f, !f
  return %r#0, %r#1, %r#2, %r#3 : !f, !f, !f, !f
}

// CHECK-LABEL: func.func @adamw_no_bias_correction(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S2:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:3 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]], %[[S2]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "beta1", "beta2", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA1]] : f64
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.truncf %[[V2]] : f64 to f32
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA2]] : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.truncf %[[V4]] : f64 to f32
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.truncf %[[LR]] : f64 to f32
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = arith.truncf %[[V1]] : f64 to f32
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.mulf %[[LR]], %[[WEIGHT_DECAY]] : f64
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = arith.truncf %[[V9]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V3]], %[[V5]], %[[V6]], %[[V7]], %[[V8]], %[[V10]] : f32, f32, f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[X3:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32, %[[D4:[a-z0-9_]+]]: f32, %[[D5:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = arith.subf %[[X0]], %[[X2]] : f32
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = math.fma %[[D0]], %[[V11]], %[[X2]] : f32
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.negf %[[X3]] : f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = math.fma %[[X0]], %[[X0]], %[[V13]] : f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = math.fma %[[D1]], %[[V14]], %[[X3]] : f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = math.sqrt %[[V15]] : f32
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = math.fma %[[V16]], %[[D3]], %[[D4]] : f32
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = arith.divf %[[V12]], %[[V17]] : f32
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = arith.mulf %[[D5]], %[[X1]] : f32
// CHECK-NEXT: %[[V20:[a-z0-9_]+]] = math.fma %[[D2]], %[[V18]], %[[V19]] : f32
// CHECK-NEXT: %[[V21:[a-z0-9_]+]] = arith.subf %[[X1]], %[[V20]] : f32
// CHECK-NEXT: dfa.yield %[[V21]], %[[V12]], %[[V15]] : f32, f32, f32
// CHECK-NEXT: }
func.func @adamw_no_bias_correction(%g: !f, %s0: !f, %s1: !f, %s2: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f, !f) {
  %r:3 = dfa.adam adamw ins(%g : !f)
    outs(%s0, %s1, %s2 : !f, !f, !f)
    control(%c) unless %i {no_bias_correction} -> !f, !f, !f
  return %r#0, %r#1, %r#2 : !f, !f, !f
}

// CHECK-LABEL: func.func @sgd_plain(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]] = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.truncf %[[LR]] : f64 to f32
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V1]], %[[V2]] : f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = math.fma %[[D1]], %[[X1]], %[[X0]] : f32
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = math.fma %[[V4]], %[[V3]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V5]] : f32
// CHECK-NEXT: }
func.func @sgd_plain(%g: !f, %s0: !f, %c: !dfa.control, %i: i1)
    -> (!f) {
  %r = dfa.sgd ins(%g : !f)
    outs(%s0 : !f)
    control(%c) unless %i -> !f
  return %r : !f
}

// CHECK-LABEL: func.func @sgd_momentum(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:2 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "weight_decay", "momentum", "dampening"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64, %[[MOMENTUM:[a-z0-9_]+]]: f64, %[[DAMPENING:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.truncf %[[LR]] : f64 to f32
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.constant 1 : i64
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.cmpi eq, %[[T]], %[[V5]] : i64
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = arith.select %[[V6]], %[[V4]], %[[MOMENTUM]] : f64
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.truncf %[[V7]] : f64 to f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.subf %[[V3]], %[[DAMPENING]] : f64
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = arith.select %[[V6]], %[[V3]], %[[V9]] : f64
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = arith.truncf %[[V10]] : f64 to f32
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.truncf %[[MOMENTUM]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V1]], %[[V2]], %[[V8]], %[[V11]], %[[V12]] : f32, f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32, %[[D4:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = math.fma %[[D1]], %[[X1]], %[[X0]] : f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.mulf %[[D3]], %[[V13]] : f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = math.fma %[[D2]], %[[X2]], %[[V14]] : f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = math.fma %[[V16]], %[[V15]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V17]], %[[V15]] : f32, f32
// CHECK-NEXT: }
func.func @sgd_momentum(%g: !f, %s0: !f, %s1: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f) {
  %r:2 = dfa.sgd ins(%g : !f)
    outs(%s0, %s1 : !f, !f)
    control(%c) unless %i -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// CHECK-LABEL: func.func @sgd_nesterov(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:2 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "weight_decay", "momentum", "dampening"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64, %[[MOMENTUM:[a-z0-9_]+]]: f64, %[[DAMPENING:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.truncf %[[LR]] : f64 to f32
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.constant 1 : i64
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.cmpi eq, %[[T]], %[[V5]] : i64
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = arith.select %[[V6]], %[[V4]], %[[MOMENTUM]] : f64
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.truncf %[[V7]] : f64 to f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.subf %[[V3]], %[[DAMPENING]] : f64
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = arith.select %[[V6]], %[[V3]], %[[V9]] : f64
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = arith.truncf %[[V10]] : f64 to f32
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.truncf %[[MOMENTUM]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V1]], %[[V2]], %[[V8]], %[[V11]], %[[V12]] : f32, f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32, %[[D4:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.negf %[[X0]] : f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = math.fma %[[D1]], %[[X1]], %[[V13]] : f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = arith.mulf %[[D3]], %[[V14]] : f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = math.fma %[[D2]], %[[X2]], %[[V15]] : f32
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = math.fma %[[D4]], %[[V16]], %[[V14]] : f32
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = math.fma %[[V18]], %[[V17]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V19]], %[[V16]] : f32, f32
// CHECK-NEXT: }
func.func @sgd_nesterov(%g: !f, %s0: !f, %s1: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f) {
  %r:2 = dfa.sgd ins(%g : !f)
    outs(%s0, %s1 : !f, !f)
    control(%c) unless %i {nesterov, maximize} -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// CHECK-LABEL: func.func @lion(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:2 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "beta1", "beta2", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-DAG: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-DAG: %[[V2:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA1]] : f64
// CHECK-DAG: %[[V3:[a-z0-9_]+]] = arith.truncf %[[V2]] : f64 to f32
// CHECK-DAG: %[[V4:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA2]] : f64
// CHECK-DAG: %[[V5:[a-z0-9_]+]] = arith.truncf %[[V4]] : f64 to f32
// CHECK-DAG: %[[V6:[a-z0-9_]+]] = arith.truncf %[[LR]] : f64 to f32
// CHECK-DAG: %[[V7:[a-z0-9_]+]] = arith.mulf %[[LR]], %[[WEIGHT_DECAY]] : f64
// CHECK-DAG: %[[V8:[a-z0-9_]+]] = arith.truncf %[[V7]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V3]], %[[V5]], %[[V6]], %[[V8]] : f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32):
// CHECK-DAG: %[[V9:[a-z0-9_]+]] = arith.subf %[[X0]], %[[X2]] : f32
// CHECK-DAG: %[[V10:[a-z0-9_]+]] = math.fma %[[D0]], %[[V9]], %[[X2]] : f32
// CHECK-DAG: %[[V11:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[V12:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[V13:[a-z0-9_]+]] = arith.constant -1.000000e+00 : f32
// CHECK-DAG: %[[V14:[a-z0-9_]+]] = arith.mulf %[[V10]], %[[V11]] : f32
// CHECK-DAG: %[[V15:[a-z0-9_]+]] = arith.cmpf olt, %[[V10]], %[[V11]] : f32
// CHECK-DAG: %[[V16:[a-z0-9_]+]] = arith.select %[[V15]], %[[V13]], %[[V14]] : f32
// CHECK-DAG: %[[V17:[a-z0-9_]+]] = arith.cmpf olt, %[[V11]], %[[V10]] : f32
// CHECK-DAG: %[[V18:[a-z0-9_]+]] = arith.select %[[V17]], %[[V12]], %[[V16]] : f32
// CHECK-DAG: %[[V19:[a-z0-9_]+]] = arith.mulf %[[D3]], %[[X1]] : f32
// CHECK-DAG: %[[V20:[a-z0-9_]+]] = math.fma %[[D2]], %[[V18]], %[[V19]] : f32
// CHECK-DAG: %[[V21:[a-z0-9_]+]] = arith.subf %[[X1]], %[[V20]] : f32
// CHECK-DAG: %[[V22:[a-z0-9_]+]] = math.fma %[[D1]], %[[V9]], %[[X2]] : f32
// CHECK-NEXT: dfa.yield %[[V21]], %[[V22]] : f32, f32
// CHECK-NEXT: }
func.func @lion(%g: !f, %s0: !f, %s1: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f) {
  %r:2 = dfa.lion ins(%g : !f)
    outs(%s0, %s1 : !f, !f)
    control(%c) unless %i -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// CHECK-LABEL: func.func @adagrad(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:2 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "lr_decay", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[LR_DECAY:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.sitofp %[[T]] : i64 to f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.subf %[[V1]], %[[V2]] : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.mulf %[[V3]], %[[LR_DECAY]] : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.addf %[[V2]], %[[V4]] : f64
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.divf %[[LR]], %[[V5]] : f64
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = arith.truncf %[[V6]] : f64 to f32
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V7]], %[[V8]], %[[V9]] : f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = math.fma %[[D2]], %[[X1]], %[[X0]] : f32
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = math.fma %[[V10]], %[[V10]], %[[X2]] : f32
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = math.sqrt %[[V11]] : f32
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.addf %[[V12]], %[[D1]] : f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.divf %[[V10]], %[[V13]] : f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = math.fma %[[V15]], %[[V14]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V16]], %[[V11]] : f32, f32
// CHECK-NEXT: }
func.func @adagrad(%g: !f, %s0: !f, %s1: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f) {
  %r:2 = dfa.adagrad ins(%g : !f)
    outs(%s0, %s1 : !f, !f)
    control(%c) unless %i -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// CHECK-LABEL: func.func @rmsprop_plain(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:2 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "alpha", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[ALPHA:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.truncf %[[LR]] : f64 to f32
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.subf %[[V1]], %[[ALPHA]] : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.truncf %[[V3]] : f64 to f32
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V2]], %[[V4]], %[[V5]], %[[V6]] : f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = math.fma %[[D3]], %[[X1]], %[[X0]] : f32
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.negf %[[X2]] : f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = math.fma %[[V7]], %[[V7]], %[[V8]] : f32
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = math.fma %[[D1]], %[[V9]], %[[X2]] : f32
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = math.sqrt %[[V10]] : f32
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.addf %[[V11]], %[[D2]] : f32
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.divf %[[V7]], %[[V12]] : f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = math.fma %[[V14]], %[[V13]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V15]], %[[V10]] : f32, f32
// CHECK-NEXT: }
func.func @rmsprop_plain(%g: !f, %s0: !f, %s1: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f) {
  %r:2 = dfa.rmsprop ins(%g : !f)
    outs(%s0, %s1 : !f, !f)
    control(%c) unless %i -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// CHECK-LABEL: func.func @rmsprop_centered_momentum(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S2:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S3:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:4 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S0]], %[[S1]], %[[S2]], %[[S3]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["lr", "alpha", "eps", "weight_decay", "momentum"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[ALPHA:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64, %[[MOMENTUM:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.truncf %[[LR]] : f64 to f32
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.subf %[[V1]], %[[ALPHA]] : f64
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.truncf %[[V3]] : f64 to f32
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = arith.truncf %[[MOMENTUM]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V2]], %[[V4]], %[[V5]], %[[V6]], %[[V7]] : f32, f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[X3:[a-z0-9_]+]]: f32, %[[X4:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32, %[[D4:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = math.fma %[[D3]], %[[X1]], %[[X0]] : f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = arith.negf %[[X2]] : f32
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = math.fma %[[V8]], %[[V8]], %[[V9]] : f32
// CHECK-NEXT: %[[V11:[a-z0-9_]+]] = math.fma %[[D1]], %[[V10]], %[[X2]] : f32
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.subf %[[V8]], %[[X3]] : f32
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = math.fma %[[D1]], %[[V12]], %[[X3]] : f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.negf %[[V13]] : f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = math.fma %[[V14]], %[[V13]], %[[V11]] : f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = arith.cmpf olt, %[[V15]], %[[V16]] : f32
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = arith.select %[[V17]], %[[V16]], %[[V15]] : f32
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = math.sqrt %[[V18]] : f32
// CHECK-NEXT: %[[V20:[a-z0-9_]+]] = arith.addf %[[V19]], %[[D2]] : f32
// CHECK-NEXT: %[[V21:[a-z0-9_]+]] = arith.divf %[[V8]], %[[V20]] : f32
// CHECK-NEXT: %[[V22:[a-z0-9_]+]] = math.fma %[[D4]], %[[X4]], %[[V21]] : f32
// CHECK-NEXT: %[[V23:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V24:[a-z0-9_]+]] = math.fma %[[V23]], %[[V22]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V24]], %[[V11]], %[[V13]], %[[V22]] : f32, f32, f32, f32
// CHECK-NEXT: }
func.func @rmsprop_centered_momentum(%g: !f, %s0: !f, %s1: !f, %s2: !f, %s3: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f, !f, !f) {
  %r:4 = dfa.rmsprop ins(%g : !f)
    outs(%s0, %s1, %s2, %s3 : !f, !f, !f, !f)
    control(%c) unless %i {centered, with_momentum} -> !f, !f, !f, !f
  return %r#0, %r#1, %r#2, %r#3 : !f, !f, !f, !f
}

// CHECK-LABEL: func.func @lamb(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S2:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:2 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S1]], %[[S2]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["beta1", "beta2"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA1]] : f64
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.truncf %[[V2]] : f64 to f32
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA2]] : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.truncf %[[V4]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V3]], %[[V5]] : f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.subf %[[X0]], %[[X1]] : f32
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = math.fma %[[D0]], %[[V6]], %[[X1]] : f32
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.negf %[[X2]] : f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = math.fma %[[X0]], %[[X0]], %[[V8]] : f32
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = math.fma %[[D1]], %[[V9]], %[[X2]] : f32
// CHECK-NEXT: dfa.yield %[[V7]], %[[V10]] : f32, f32
// CHECK-NEXT: }
// CHECK: %[[V11:[a-z0-9_]+]] = dfa.update
// CHECK-SAME: ins(%[[S0]], %[[V0]]#0, %[[V0]]#1
// CHECK-SAME: control(%[[C]]) hyper ["beta1", "beta2", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = dfa.powi %[[BETA1]], %[[T]] : f64
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.subf %[[V12]], %[[V13]] : f64
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = arith.divf %[[V12]], %[[V14]] : f64
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = dfa.powi %[[BETA2]], %[[T]] : f64
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = arith.subf %[[V12]], %[[V16]] : f64
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = math.sqrt %[[V17]] : f64
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = arith.divf %[[V12]], %[[V18]] : f64
// CHECK-NEXT: %[[V20:[a-z0-9_]+]] = arith.truncf %[[V15]] : f64 to f32
// CHECK-NEXT: %[[V21:[a-z0-9_]+]] = arith.truncf %[[V19]] : f64 to f32
// CHECK-NEXT: %[[V22:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V23:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V20]], %[[V21]], %[[V22]], %[[V23]] : f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V24:[a-z0-9_]+]] = math.sqrt %[[X2]] : f32
// CHECK-NEXT: %[[V25:[a-z0-9_]+]] = math.fma %[[V24]], %[[D1]], %[[D2]] : f32
// CHECK-NEXT: %[[V26:[a-z0-9_]+]] = arith.divf %[[X1]], %[[V25]] : f32
// CHECK-NEXT: %[[V27:[a-z0-9_]+]] = arith.mulf %[[D3]], %[[X0]] : f32
// CHECK-NEXT: %[[V28:[a-z0-9_]+]] = math.fma %[[D0]], %[[V26]], %[[V27]] : f32
// CHECK-NEXT: dfa.yield %[[V28]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V29:[a-z0-9_]+]] = dfa.norm_partial %[[S0]]
// CHECK-NEXT: %[[V30:[a-z0-9_]+]] = dfa.combine %[[V29]] over ["shard"]
// CHECK-NEXT: %[[V31:[a-z0-9_]+]] = dfa.norm_finish %[[V30]]
// CHECK-NEXT: %[[V32:[a-z0-9_]+]] = dfa.norm_partial %[[V11]]
// CHECK-NEXT: %[[V33:[a-z0-9_]+]] = dfa.combine %[[V32]] over ["shard"]
// CHECK-NEXT: %[[V34:[a-z0-9_]+]] = dfa.norm_finish %[[V33]]
// CHECK-NEXT: %[[V35:[a-z0-9_]+]] = dfa.trust_ratio %[[V31]], %[[V34]]
// CHECK: %[[V36:[a-z0-9_]+]] = dfa.update
// CHECK-SAME: ins(%[[V11]]
// CHECK-SAME: outs(%[[S0]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] with(%[[V35]]{{.*}}) hyper ["lr"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[TRUST:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V37:[a-z0-9_]+]] = arith.mulf %[[LR]], %[[TRUST]] : f64
// CHECK-NEXT: %[[V38:[a-z0-9_]+]] = arith.truncf %[[V37]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V38]] : f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V39:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V40:[a-z0-9_]+]] = math.fma %[[V39]], %[[X0]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V40]] : f32
// CHECK-NEXT: }
func.func @lamb(%g: !s, %s0: !s, %s1: !s, %s2: !s, %c: !dfa.control, %i: i1)
    -> (!s, !s, !s) {
  %r:3 = dfa.lamb ins(%g : !s)
    outs(%s0, %s1, %s2 : !s, !s, !s)
    control(%c) unless %i -> !s, !s, !s
  return %r#0, %r#1, %r#2 : !s, !s, !s
}

// CHECK-LABEL: func.func @lamb_full(
// CHECK-SAME: %[[G:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S0:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S1:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[S2:[a-z0-9]+]]: !dfa.flat<
// CHECK-SAME: %[[C:[a-z0-9]+]]: !dfa.control, %[[I:[a-z0-9]+]]: i1
// CHECK: %[[V0:[a-z0-9_]+]]:2 = dfa.update
// CHECK-SAME: ins(%[[G]]
// CHECK-SAME: outs(%[[S1]], %[[S2]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] hyper ["beta1", "beta2"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA1]] : f64
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = arith.truncf %[[V2]] : f64 to f32
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = arith.subf %[[V1]], %[[BETA2]] : f64
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.truncf %[[V4]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V3]], %[[V5]] : f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.subf %[[X0]], %[[X1]] : f32
// CHECK-NEXT: %[[V7:[a-z0-9_]+]] = math.fma %[[D0]], %[[V6]], %[[X1]] : f32
// CHECK-NEXT: %[[V8:[a-z0-9_]+]] = arith.negf %[[X2]] : f32
// CHECK-NEXT: %[[V9:[a-z0-9_]+]] = math.fma %[[X0]], %[[X0]], %[[V8]] : f32
// CHECK-NEXT: %[[V10:[a-z0-9_]+]] = math.fma %[[D1]], %[[V9]], %[[X2]] : f32
// CHECK-NEXT: dfa.yield %[[V7]], %[[V10]] : f32, f32
// CHECK-NEXT: }
// CHECK: %[[V11:[a-z0-9_]+]] = dfa.update
// CHECK-SAME: ins(%[[S0]], %[[V0]]#0, %[[V0]]#1
// CHECK-SAME: control(%[[C]]) hyper ["beta1", "beta2", "eps", "weight_decay"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[BETA1:[a-z0-9_]+]]: f64, %[[BETA2:[a-z0-9_]+]]: f64, %[[EPS:[a-z0-9_]+]]: f64, %[[WEIGHT_DECAY:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V12:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[V13:[a-z0-9_]+]] = arith.truncf %[[V12]] : f64 to f32
// CHECK-NEXT: %[[V14:[a-z0-9_]+]] = arith.truncf %[[V12]] : f64 to f32
// CHECK-NEXT: %[[V15:[a-z0-9_]+]] = arith.truncf %[[EPS]] : f64 to f32
// CHECK-NEXT: %[[V16:[a-z0-9_]+]] = arith.truncf %[[WEIGHT_DECAY]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V13]], %[[V14]], %[[V15]], %[[V16]] : f32, f32, f32, f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[X2:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32, %[[D1:[a-z0-9_]+]]: f32, %[[D2:[a-z0-9_]+]]: f32, %[[D3:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V17:[a-z0-9_]+]] = math.sqrt %[[X2]] : f32
// CHECK-NEXT: %[[V18:[a-z0-9_]+]] = math.fma %[[V17]], %[[D1]], %[[D2]] : f32
// CHECK-NEXT: %[[V19:[a-z0-9_]+]] = arith.divf %[[X1]], %[[V18]] : f32
// CHECK-NEXT: %[[V20:[a-z0-9_]+]] = arith.mulf %[[D3]], %[[X0]] : f32
// CHECK-NEXT: %[[V21:[a-z0-9_]+]] = math.fma %[[D0]], %[[V19]], %[[V20]] : f32
// CHECK-NEXT: dfa.yield %[[V21]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: %[[V22:[a-z0-9_]+]] = dfa.norm_partial %[[S0]]
// CHECK-NEXT: %[[V23:[a-z0-9_]+]] = dfa.norm_finish %[[V22]]
// CHECK-NEXT: %[[V24:[a-z0-9_]+]] = dfa.norm_partial %[[V11]]
// CHECK-NEXT: %[[V25:[a-z0-9_]+]] = dfa.norm_finish %[[V24]]
// CHECK-NEXT: %[[V26:[a-z0-9_]+]] = dfa.trust_ratio %[[V23]], %[[V25]]
// CHECK: %[[V27:[a-z0-9_]+]] = dfa.update
// CHECK-SAME: ins(%[[V11]]
// CHECK-SAME: outs(%[[S0]]
// CHECK-SAME: control(%[[C]]) unless %[[I]] with(%[[V26]]{{.*}}) hyper ["lr"] derive {
// CHECK-NEXT: ^bb0(%[[T:[a-z0-9_]+]]: i64, %[[LR:[a-z0-9_]+]]: f64, %[[TRUST:[a-z0-9_]+]]: f64):
// CHECK-NEXT: %[[V28:[a-z0-9_]+]] = arith.mulf %[[LR]], %[[TRUST]] : f64
// CHECK-NEXT: %[[V29:[a-z0-9_]+]] = arith.truncf %[[V28]] : f64 to f32
// CHECK-NEXT: dfa.yield %[[V29]] : f32
// CHECK-NEXT: } apply {
// CHECK-NEXT: ^bb0(%[[X0:[a-z0-9_]+]]: f32, %[[X1:[a-z0-9_]+]]: f32, %[[D0:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V30:[a-z0-9_]+]] = arith.negf %[[D0]] : f32
// CHECK-NEXT: %[[V31:[a-z0-9_]+]] = math.fma %[[V30]], %[[X0]], %[[X1]] : f32
// CHECK-NEXT: dfa.yield %[[V31]] : f32
// CHECK-NEXT: }
func.func @lamb_full(%g: !f, %s0: !f, %s1: !f, %s2: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f, !f) {
  %r:3 = dfa.lamb ins(%g : !f)
    outs(%s0, %s1, %s2 : !f, !f, !f)
    control(%c) unless %i {no_bias_correction} -> !f, !f, !f
  return %r#0, %r#1, %r#2 : !f, !f, !f
}
