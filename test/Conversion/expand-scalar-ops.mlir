// RUN: dfa-opt %s --dfa-expand-scalar-ops --split-input-file --verify-diagnostics | FileCheck %s
// RUN: dfa-opt %s --dfa-expand-scalar-ops=expand-bf16 --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=BF16

// CHECK-LABEL: func.func @exact
// CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) : (f32) -> f32
// CHECK: llvm.call_intrinsic "llvm.fma"(%{{.*}}) : (f32, f32, f32) -> f32
// CHECK: llvm.call_intrinsic "llvm.roundeven"(%{{.*}}) : (f32) -> f32
func.func @exact(%x: f32) -> f32 {
  %a = math.sqrt %x : f32
  %b = math.fma %a, %x, %x : f32
  %c = math.roundeven %b : f32
  return %c : f32
}

// CHECK-LABEL: func.func @reciprocal_root
// CHECK: %[[S:.*]] = llvm.call_intrinsic "llvm.sqrt"
// CHECK: arith.divf %{{.*}}, %[[S]] : vector<4xf32>
func.func @reciprocal_root(%x: vector<4xf32>) -> vector<4xf32> {
  %a = math.rsqrt %x : vector<4xf32>
  return %a : vector<4xf32>
}

// No library function is left.
// CHECK-LABEL: func.func @polynomials
// CHECK-NOT: math.
// CHECK: return
func.func @polynomials(%x: vector<4xf32>, %y: f32) -> (vector<4xf32>, f32) {
  %a = math.exp %x : vector<4xf32>
  %b = math.log %a : vector<4xf32>
  %c = math.tanh %b : vector<4xf32>
  %d = math.powf %y, %y : f32
  return %c, %d : vector<4xf32>, f32
}

// CHECK-LABEL: func.func @maximum
// CHECK-NOT: arith.maximumf
// CHECK: arith.cmpf
// CHECK: arith.select
func.func @maximum(%x: f32, %y: f32) -> f32 {
  %a = arith.maximumf %x, %y : f32
  return %a : f32
}

// CHECK-LABEL: func.func @brain
// CHECK: arith.truncf
// BF16-LABEL: func.func @brain
// BF16-NOT: arith.truncf
// BF16: arith.shrui
func.func @brain(%x: vector<4xf32>) -> vector<4xbf16> {
  %a = arith.truncf %x : vector<4xf32> to vector<4xbf16>
  return %a : vector<4xbf16>
}

// -----

func.func @no_library(%x: f64) -> f64 {
  // expected-error@+1 {{has no lowering of type 'f64' without a mathematics library}}
  %a = math.exp %x : f64
  return %a : f64
}
