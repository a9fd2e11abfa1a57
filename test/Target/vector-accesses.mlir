// Sixteen bytes an access for f32, eight for 16-bit elements, in PTX; IEEE
// operations; nothing that is called.
// RUN: dfa-opt %s --dfa-kernels-to-cuda="chip=sm_90 format=ptx" | FileCheck %s
// RUN: dfa-opt %s --dfa-kernels-to-cuda="chip=sm_80 format=ptx" | FileCheck %s --check-prefix=AMPERE
// RUN: dfa-opt %s --dfa-kernels-to-cuda="chip=sm_120 format=ptx" | FileCheck %s --check-prefix=BLACKWELL

// AMPERE: .version 7.0{{.*}}.target sm_80
// BLACKWELL: .target sm_120

// CHECK: gpu.binary @dfa_kernels
// CHECK-SAME: #gpu.object<#nvvm.target<chip = "sm_90">, assembly =
// CHECK-SAME: .target sm_90
// CHECK-SAME: .entry update(
// CHECK-SAME: .maxntid 128
// CHECK-SAME: ld.global.v4.b32
// CHECK-SAME: sqrt.rn.f32
// CHECK-SAME: div.rn.f32
// CHECK-SAME: st.global.v4.b32
// CHECK-NOT: call.uni
dfa.kernel @update on @l::@w arrays [#dfa.array<"param", f32, readwrite>,
    #dfa.array<"grad", bf16, read>] accumulators [] uniform {
  %true = arith.constant true
  %f = dfa.load_control "factor" : f32
  dfa.yield %true, %f : i1, f32
} body {
^bb0(%f: f32, %p: f32, %g: bf16):
  %w = arith.extf %g : bf16 to f32
  %s = math.sqrt %p : f32
  %d = arith.divf %w, %s : f32
  %q = math.fma %d, %f, %p : f32
  dfa.yield %q : f32
}
