// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The low half of an f32 is taken by an instruction of its own before a 16-bit
// store: ptxas 13.0 converts the float where its own register is stored.

// RUN: dfa-opt %s --dfa-kernels-to-cuda="chip=sm_90 format=ptx" | FileCheck %s

// CHECK: cvt.u16.u32 [[HALF:%rs[0-9]+]],
// CHECK: st.global.b16 {{[^;]*}}, [[HALF]]
dfa.kernel @split on @l::@w arrays [#dfa.array<"master", f32, read>,
    #dfa.array<"remainder", i16, write>] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%p: f32):
  %two = arith.addf %p, %p : f32
  %bits = arith.bitcast %two : f32 to i32
  %low = arith.trunci %bits : i32 to i16
  dfa.yield %low : i16
}
