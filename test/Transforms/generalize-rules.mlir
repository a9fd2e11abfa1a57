// RUN: dfa-opt %s --dfa-generalize-rules | FileCheck %s --implicit-check-not="dfa.{{adam|sgd|lion|adagrad|rmsprop|lamb}} "

// Nothing is left that knows a rule by name. The trees themselves are in
// test/Dialect/Dfa/rules-decompose.mlir.

!f = !dfa.flat<@l, @w, full, f32>
!s = !dfa.flat<@l, @w, shard, f32>

// CHECK-LABEL: func.func @adam(
// CHECK: %[[R:.*]]:3 = dfa.update ins(%arg0 : {{.*}}) outs(%arg1, %arg2, %arg3 : {{.*}}) control(%arg4) unless %arg5 hyper ["lr", "beta1", "beta2", "eps", "weight_decay"]
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @adam(%g: !f, %p: !f, %m: !f, %v: !f, %c: !dfa.control, %i: i1)
    -> (!f, !f, !f) {
  %r:3 = dfa.adam adamw ins(%g : !f) outs(%p, %m, %v : !f, !f, !f)
    control(%c) unless %i -> !f, !f, !f
  return %r#0, %r#1, %r#2 : !f, !f, !f
}

// CHECK-LABEL: func.func @sgd(
// CHECK: dfa.update {{.*}} hyper ["lr", "weight_decay"]
func.func @sgd(%g: !f, %p: !f, %c: !dfa.control) -> !f {
  %r = dfa.sgd ins(%g : !f) outs(%p : !f) control(%c) -> !f
  return %r : !f
}

// CHECK-LABEL: func.func @lion(
// CHECK: dfa.update {{.*}} hyper ["lr", "beta1", "beta2", "weight_decay"]
func.func @lion(%g: !f, %p: !f, %m: !f, %c: !dfa.control) -> (!f, !f) {
  %r:2 = dfa.lion ins(%g : !f) outs(%p, %m : !f, !f) control(%c) -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// CHECK-LABEL: func.func @adagrad(
// CHECK: dfa.update {{.*}} hyper ["lr", "lr_decay", "eps", "weight_decay"]
func.func @adagrad(%g: !f, %p: !f, %s: !f, %c: !dfa.control) -> (!f, !f) {
  %r:2 = dfa.adagrad ins(%g : !f) outs(%p, %s : !f, !f) control(%c) -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// CHECK-LABEL: func.func @rmsprop(
// CHECK: dfa.update {{.*}} hyper ["lr", "alpha", "eps", "weight_decay"]
func.func @rmsprop(%g: !f, %p: !f, %s: !f, %c: !dfa.control) -> (!f, !f) {
  %r:2 = dfa.rmsprop ins(%g : !f) outs(%p, %s : !f, !f) control(%c) -> !f, !f
  return %r#0, %r#1 : !f, !f
}

// A shard's norms are combined with those of the other shards.
// CHECK-LABEL: func.func @lamb(
// CHECK: %[[S:.*]]:2 = dfa.update ins(%arg0 : {{.*}}) outs(%arg2, %arg3 :
// CHECK: %[[D:.*]] = dfa.update ins(%arg1, %[[S]]#0, %[[S]]#1 :
// CHECK: %[[A:.*]] = dfa.norm_partial %arg1 {{.*}} -> !dfa.partial<l2, param>
// CHECK: %[[AC:.*]] = dfa.combine %[[A]] over ["shard"]
// CHECK: %[[AN:.*]] = dfa.norm_finish %[[AC]]
// CHECK: %[[B:.*]] = dfa.norm_partial %[[D]]
// CHECK: %[[BC:.*]] = dfa.combine %[[B]] over ["shard"]
// CHECK: %[[BN:.*]] = dfa.norm_finish %[[BC]]
// CHECK: %[[T:.*]] = dfa.trust_ratio %[[AN]], %[[BN]]
// CHECK: %[[P:.*]] = dfa.update ins(%[[D]] : {{.*}}) outs(%arg1 : {{.*}}) control(%arg4) with(%[[T]] :
// CHECK: return %[[P]], %[[S]]#0, %[[S]]#1
func.func @lamb(%g: !s, %p: !s, %m: !s, %v: !s, %c: !dfa.control)
    -> (!s, !s, !s) {
  %r:3 = dfa.lamb ins(%g : !s) outs(%p, %m, %v : !s, !s, !s)
    control(%c) -> !s, !s, !s
  return %r#0, %r#1, %r#2 : !s, !s, !s
}
