// RUN: not dfa-opt %s --dfa-verify-lowered=phase=never 2>&1 | FileCheck %s
// RUN: dfa-opt %s --dfa-verify-lowered=phase=loops

// Arithmetic on scalars may wait for the last phase.
// CHECK: error: expects phase 'loops' or 'llvm', but got 'never'
func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  return %b : i32
}
