// Case B42, with test/unit/Target/ToolchainTest.cpp: which assembler, and why not.
// RUN: not dfa-opt %s --dfa-kernels-to-cuda=chip=sm_999 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not dfa-opt %s --dfa-kernels-to-cuda=format=elf 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not dfa-opt %s --dfa-kernels-to-cuda=ptxas=/nowhere/ptxas 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: env DFA_PTXAS=/nowhere/own not dfa-opt %s --dfa-kernels-to-cuda 2>&1 | FileCheck %s --check-prefix=VARIABLE

// CHIP: error: expects a chip of sm_80, {{.*}}, but got 'sm_999' (assembler: {{.*}})
// FORMAT: error: expects format ptx, cubin or fatbin, but got 'elf'
// OPTION: error: expects an assembler that can be run, but '/nowhere/ptxas', given by option 'ptxas', does not exist; no other was tried
// VARIABLE: error: expects an assembler that can be run, but '/nowhere/own', given by DFA_PTXAS, does not exist; no other was tried
dfa.control_kernel @tick accumulators [] {
  %t = dfa.load_control "step" : i64
  %one = arith.constant 1 : i64
  %u = arith.addi %t, %one : i64
  dfa.store_control "step", %u : i64
  dfa.yield
}
