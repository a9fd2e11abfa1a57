// RUN: dfa-opt %s --dfa-convert-kernels-to-gpu | FileCheck %s
// RUN: dfa-opt %s --dfa-convert-kernels-to-gpu="vector-width=8 block=256 max-registers=64" | FileCheck %s --check-prefix=SHAPE

// CHECK: gpu.module @dfa_kernels
// CHECK: llvm.mlir.global internal @finish_shared() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<32 x f64>

// CHECK-LABEL: gpu.func @scale(
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly}
// CHECK-SAME: kernel attributes {nvvm.maxntid = array<i32: 128>}
// CHECK: gpu.thread_id x
// CHECK: gpu.block_id x
// CHECK: arith.shrui
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: } else {
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: gpu.return

// SHAPE-LABEL: gpu.func @scale(
// SHAPE-SAME: nvvm.maxnreg = 64 : i32, nvvm.maxntid = array<i32: 256>
// Arrays of 16-bit elements lie at multiples of 8 bytes only.
// SHAPE: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<8xbf16>
dfa.kernel @scale on @l::@w arrays [#dfa.array<"param", f32, readwrite>,
    #dfa.array<"grad", bf16, read>] accumulators [] uniform {
  %true = arith.constant true
  %f = dfa.load_control "factor" : f32
  dfa.yield %true, %f : i1, f32
} body {
^bb0(%f: f32, %p: f32, %g: bf16):
  %w = arith.extf %g : bf16 to f32
  %q = math.fma %w, %f, %p : f32
  dfa.yield %q : f32
}

// A lane has one run of eight columns; four rows are loaded at once.

// CHECK-LABEL: gpu.func @norm(
// CHECK: llvm.ptrtoint
// CHECK: scf.for
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.addf %{{.*}}, %{{.*}} : f64
// CHECK: gpu.shuffle down
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : f64, !llvm.ptr<1>
dfa.kernel @norm on @l::@w arrays [#dfa.array<"grad", bf16, read>]
    accumulators [sum] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%g: bf16):
  %w = arith.extf %g : bf16 to f64
  %s = arith.mulf %w, %w : f64
  dfa.yield %s : f64
}

// With two accumulators a lane holds four columns at a time, and goes twice
// over its rows.

// CHECK-LABEL: gpu.func @norm_and_largest(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
// CHECK: arith.maxui %{{.*}}, %{{.*}} : i64
dfa.kernel @norm_and_largest on @l::@w arrays [#dfa.array<"grad", bf16, read>]
    accumulators [sum, max] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%g: bf16):
  %w = arith.extf %g : bf16 to f64
  %s = arith.mulf %w, %w : f64
  %a = math.absf %w : f64
  dfa.yield %s, %a : f64, f64
}

// CHECK-LABEL: gpu.func @finish(
// CHECK-SAME: nvvm.maxntid = array<i32: 1024>
// CHECK: gpu.shuffle down
// CHECK: gpu.barrier
// CHECK: gpu.shuffle down
// CHECK: gpu.barrier
dfa.control_kernel @finish accumulators [sum] {
^bb0(%sum: f64):
  %norm = math.sqrt %sum : f64
  dfa.store_control "norm", %norm : f64
  dfa.yield
}

// A thread a segment.

// CHECK-LABEL: gpu.func @rows(
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
dfa.segment_kernel @rows on @l::@w accumulators [] {
  %lr = dfa.load_hyper "lr" at 0 : f64
  %a = arith.truncf %lr : f64 to f32
  dfa.store_derived 0, %a : f32
  dfa.yield
}

// A warp a segment.

// CHECK-LABEL: gpu.func @sums(
// CHECK: gpu.shuffle down
// CHECK: gpu.return
dfa.segment_kernel @sums on @l::@w accumulators [sum] {
^bb0(%s: f64):
  %a = arith.truncf %s : f64 to f32
  dfa.store_derived 0, %a : f32
  dfa.yield
}
