// RUN: dfa-opt %s --dfa-convert-kernels-to-loops | FileCheck %s
// RUN: dfa-opt %s --dfa-convert-kernels-to-loops=vector-width=1 | FileCheck %s --check-prefix=SCALAR

// Arrays take the positions of the program's class, not the kernel's own: the
// parameter is the third of four arrays, so rows are 64 bytes and its base
// address is at 32 + 2 * 8.

dfa.program @step on @l hyper ["lr", "beta1"] accumulators 2 group_stats 0 {
  dfa.program_class @w arrays ["grad", "exp_avg", "param", "copy"]
    types [bf16, f32, f32, f32] parts [full, full, full, full] derived 6
  dfa.entry finish {
    dfa.launch_elements @scale on @w over chunks acc 0
  }
}

// CHECK-LABEL: func.func @scale(
// CHECK-SAME: %[[CONTROL:.*]]: !llvm.ptr {llvm.noalias}, %[[SEGMENTS:.*]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %[[DERIVED:.*]]: !llvm.ptr {llvm.noalias}, %[[CHUNKS:.*]]: !llvm.ptr {llvm.noalias}, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %{{.*}}: i32, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64)
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK: arith.extui %{{.*}} : i32 to i64
// CHECK: %[[ROW:.*]] = arith.constant 64 : i64
// CHECK: arith.muli %{{.*}}, %[[ROW]] : i64
// CHECK: %[[DERIVEDROW:.*]] = arith.constant 24 : i64
// CHECK: %[[BASE:.*]] = arith.constant 48 : i64
// CHECK: llvm.getelementptr %{{.*}}[%[[BASE]]]
// CHECK: llvm.inttoptr
// CHECK: scf.if
// CHECK: vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
// CHECK: scf.for
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32

// SCALAR-LABEL: func.func @scale(
// SCALAR-NOT: vector<
// SCALAR: arith.mulf %{{.*}}, %{{.*}} : f32
// SCALAR-NOT: arith.mulf
// SCALAR: return
dfa.kernel @scale on @l::@w arrays [#dfa.array<"param", f32, readwrite>]
    accumulators [] uniform {
  %true = arith.constant true
  %f = dfa.load_derived 5 : f32
  dfa.yield %true, %f : i1, f32
} body {
^bb0(%f: f32, %p: f32):
  %q = arith.mulf %p, %f : f32
  dfa.yield %q : f32
}

// A reduction keeps one f64 a column and writes one a chunk.

// CHECK-LABEL: func.func @norm(
// CHECK: llvm.alloca %{{.*}} x f64 {alignment = 64 : i64}
// CHECK: scf.for
// CHECK: arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK: arith.extf %{{.*}} : vector<16xf32> to vector<16xf64>
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<16xf64>
// CHECK: vector.shuffle
// CHECK: vector.extract
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : f64, !llvm.ptr
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

// Fields of the control block by their offsets.

// CHECK-LABEL: func.func @finish(
// CHECK: llvm.icmp "eq" %{{.*}}, %{{.*}} : !llvm.ptr
// CHECK: scf.if
// CHECK: math.sqrt
dfa.control_kernel @finish accumulators [sum] {
^bb0(%sum: f64):
  %norm = math.sqrt %sum : f64
  dfa.store_control "norm", %norm : f64
  dfa.yield
}

// The group row has two columns: 16 bytes.

// CHECK-LABEL: func.func @rows(
// CHECK: %[[HYPER:.*]] = arith.constant 16 : i64
// CHECK: scf.while
// CHECK: arith.cmpi sgt
// CHECK: arith.mulf
// CHECK: arith.shrui
dfa.segment_kernel @rows on @l::@w accumulators [] {
  %t = dfa.load_segment step : i64
  %b = dfa.load_hyper "beta1" at 1 : f64
  %p = dfa.powi %b, %t : f64
  %a = arith.truncf %p : f64 to f32
  dfa.store_derived 0, %a : f32
  dfa.yield
}
