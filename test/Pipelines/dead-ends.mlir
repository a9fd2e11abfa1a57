// RUN: not dfa-opt %s --dfa-to-kernels 2>&1 | FileCheck %s
// RUN: not dfa-opt %s --dfa-report 2>&1 | FileCheck %s

// A mistake in a step is one located error, and no half-made module.

// CHECK: dead-ends.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: expects a 'dfa.layout' @l, but found none
// CHECK-NOT: module {
func.func @step(%g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"}) {
  return
}
