// Every example goes through every pipeline; the program that comes out can be
// recorded.
//
// RUN: dfa-opt %examples/adamw.mlir --dfa-to-kernels --dfa-verify-capturable | FileCheck %s --check-prefixes=KERNELS
// RUN: dfa-opt %examples/mixed_precision.mlir --dfa-to-kernels --dfa-verify-capturable | FileCheck %s --check-prefixes=KERNELS
// RUN: dfa-opt %examples/lamb.mlir --dfa-to-kernels --dfa-verify-capturable | FileCheck %s --check-prefixes=KERNELS
// RUN: dfa-opt %examples/user_rule.mlir --dfa-to-kernels --dfa-verify-capturable | FileCheck %s --check-prefixes=KERNELS
// RUN: dfa-opt %examples/zero2.mlir --dfa-to-kernels --dfa-verify-capturable | FileCheck %s --check-prefixes=KERNELS
//
// RUN: dfa-opt %examples/adamw.mlir --dfa-to-cpu | FileCheck %s --check-prefixes=CPU
// RUN: dfa-opt %examples/mixed_precision.mlir --dfa-to-cpu | FileCheck %s --check-prefixes=CPU
// RUN: dfa-opt %examples/lamb.mlir --dfa-to-cpu | FileCheck %s --check-prefixes=CPU
// RUN: dfa-opt %examples/user_rule.mlir --dfa-to-cpu | FileCheck %s --check-prefixes=CPU
// RUN: dfa-opt %examples/zero2.mlir --dfa-to-cpu | FileCheck %s --check-prefixes=CPU
//
// RUN: dfa-opt %examples/adamw.mlir --dfa-to-cuda="format=ptx" | FileCheck %s --check-prefixes=CUDA
// RUN: dfa-opt %examples/mixed_precision.mlir --dfa-to-cuda="format=ptx" | FileCheck %s --check-prefixes=CUDA
// RUN: dfa-opt %examples/lamb.mlir --dfa-to-cuda="format=ptx" | FileCheck %s --check-prefixes=CUDA
// RUN: dfa-opt %examples/user_rule.mlir --dfa-to-cuda="format=ptx" | FileCheck %s --check-prefixes=CUDA
// RUN: dfa-opt %examples/zero2.mlir --dfa-to-cuda="format=ptx" | FileCheck %s --check-prefixes=CUDA

// KERNELS-NOT: func.func
// KERNELS: dfa.kernel @update_weights
// KERNELS: dfa.segment_kernel @segments_weights
// KERNELS: dfa.control_kernel @control
// KERNELS: dfa.program @step
// KERNELS: dfa.launch_elements @update_weights

// CPU-NOT: dfa.kernel
// CPU: llvm.func @update_weights(
// CPU-NOT: {{(scf|cf|vector|arith|math)\.}}

// CUDA-NOT: dfa.kernel
// CUDA: gpu.binary @{{.*}} .entry update_weights(
