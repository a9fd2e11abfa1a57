// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

!f16 = !dfa.flat<@l, @w, full, f16>
!bf16 = !dfa.flat<@l, @w, full, bf16>
!f32 = !dfa.flat<@l, @w, full, f32>
!f64 = !dfa.flat<@l, @w, full, f64>
!i16 = !dfa.flat<@l, @w, full, i16>

// CHECK-LABEL: func.func @unscale
func.func @unscale(%g: !bf16, %d: !f64, %s: f32, %t: f64,
                   %p: !dfa.per<param, f32>, %q: !dfa.per<group, f64>) {
  // CHECK: dfa.unscale %{{.*}} by %{{.*}} : {{.*}}<@l, @w, full, bf16>, f32
  // CHECK-SAME: -> {{.*}}<@l, @w, full, f32>
  %0 = dfa.unscale %g by %s : !bf16, f32 -> !f32
  // CHECK: dfa.unscale {{.*}} : {{.*}}<@l, @w, full, f64>, f64
  %1 = dfa.unscale %d by %t : !f64, f64 -> !f32
  // CHECK: dfa.unscale {{.*}}, !dfa.per<param, f32>
  %2 = dfa.unscale %g by %p : !bf16, !dfa.per<param, f32> -> !f32
  // CHECK: dfa.unscale {{.*}}, !dfa.per<group, f64>
  %3 = dfa.unscale %g by %q {note} : !bf16, !dfa.per<group, f64> -> !f32
  return
}

// CHECK-LABEL: func.func @clip
func.func @clip(%u: !f32, %n: f64, %m: f64, %p: !dfa.per<param, f64>,
                %b: f32) {
  // CHECK: dfa.clip %{{.*}} with %{{.*}} to %{{.*}} : !dfa.flat<{{.*}}>, f64, f64
  %0 = dfa.clip %u with %n to %m : !f32, f64, f64
  // CHECK: dfa.clip {{.*}}, !dfa.per<param, f64>, f64
  %1 = dfa.clip %u with %p to %m : !f32, !dfa.per<param, f64>, f64
  // CHECK: dfa.clip_value %{{.*}} to %{{.*}} : !dfa.flat<{{.*}}>, f32
  %2 = dfa.clip_value %u to %b : !f32, f32
  // CHECK: dfa.clip_value {{.*}}, !dfa.per<param, f64>
  %3 = dfa.clip_value %u to %p : !f32, !dfa.per<param, f64>
  return
}

// CHECK-LABEL: func.func @formats
func.func @formats(%x: !f32) {
  // CHECK: dfa.encode f64 %{{.*}} : {{.*}} -> {{.*}}<@l, @w, full, f64>
  %a = dfa.encode f64 %x : !f32 -> !f64
  // CHECK: dfa.encode f32 %{{.*}} : {{.*}} -> {{.*}}<@l, @w, full, f32>
  %b = dfa.encode f32 %x : !f32 -> !f32
  // CHECK: dfa.encode f16
  %c = dfa.encode f16 %x : !f32 -> !f16
  // CHECK: dfa.encode bf16
  %d = dfa.encode bf16 %x : !f32 -> !bf16
  // CHECK: %{{.*}}:2 = dfa.encode remainder %{{.*}} : {{.*}} ->
  // CHECK-SAME: {{.*}}<@l, @w, full, bf16>, {{.*}}<@l, @w, full, i16>
  %e:2 = dfa.encode remainder %x : !f32 -> !bf16, !i16
  // CHECK: dfa.decode f64
  %f = dfa.decode f64 %a : !f64 -> !f32
  // CHECK: dfa.decode f32
  %g = dfa.decode f32 %b : !f32 -> !f32
  // CHECK: dfa.decode f16
  %h = dfa.decode f16 %c : !f16 -> !f32
  // CHECK: dfa.decode bf16
  %i = dfa.decode bf16 %d : !bf16 -> !f32
  // CHECK: dfa.decode remainder %{{.*}}#0, %{{.*}}#1
  %j = dfa.decode remainder %e#0, %e#1 : !bf16, !i16 -> !f32
  return
}

// CHECK-LABEL: func.func @accumulate
func.func @accumulate(%g: !bf16, %b: !f32) -> !f32 {
  // CHECK: dfa.accumulate %{{.*}} into %{{.*}} : {{.*}}<@l, @w, full, bf16>,
  // CHECK-SAME: {{.*}}<@l, @w, full, f32>
  %0 = dfa.accumulate %g into %b : !bf16, !f32
  return %0 : !f32
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: !f32) {
  // CHECK: dfa.norm_partial %{{.*}} -> {{.*}}<l1, whole>
  %a = dfa.norm_partial %x : !f32 -> !dfa.partial<l1, whole>
  // CHECK: dfa.norm_partial %{{.*}} -> {{.*}}<l2, group>
  %b = dfa.norm_partial %x : !f32 -> !dfa.partial<l2, group>
  // CHECK: dfa.norm_partial %{{.*}} -> {{.*}}<lp, param, 4.000000e+00>
  %c = dfa.norm_partial %x : !f32 -> !dfa.partial<lp, param, 4.0>
  // CHECK: dfa.norm_partial %{{.*}} -> {{.*}}<inf, whole>
  %d = dfa.norm_partial %x : !f32 -> !dfa.partial<inf, whole>
  // CHECK: dfa.non_finite %{{.*}} -> {{.*}}<flag, whole>
  %e = dfa.non_finite %x : !f32 -> !dfa.partial<flag, whole>
  // CHECK: dfa.combine %{{.*}}, %{{.*}} : {{.*}}<l1, whole>
  %f = dfa.combine %a, %a : !dfa.partial<l1, whole>
  // CHECK: dfa.combine %{{.*}} over ["shard", "replicate"] : {{.*}}<l2
  %g = dfa.combine %b over ["shard", "replicate"] : !dfa.partial<l2, group>
  // CHECK: dfa.norm_finish %{{.*}} : {{.*}}<l1, whole> -> f64
  %h = dfa.norm_finish %f : !dfa.partial<l1, whole> -> f64
  // CHECK: dfa.norm_finish %{{.*}} -> !dfa.per<group, f64>
  %i = dfa.norm_finish %g : !dfa.partial<l2, group> -> !dfa.per<group, f64>
  // CHECK: dfa.flag_finish %{{.*}} : {{.*}}<flag, whole> -> i1
  %j = dfa.flag_finish %e : !dfa.partial<flag, whole> -> i1
  return
}
