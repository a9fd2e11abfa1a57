// RUN: not dfa-opt %s --dfa-convert-kernels-to-loops=vector-width=3 2>&1 | FileCheck %s --check-prefix=WIDTH
// RUN: not dfa-opt %s --dfa-convert-kernels-to-loops=vector-width=64 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not dfa-opt %s --dfa-convert-kernels-to-gpu=vector-width=16 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: not dfa-opt %s --dfa-convert-kernels-to-gpu=block=48 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not dfa-opt %s --dfa-convert-kernels-to-gpu=max-registers=300 2>&1 | FileCheck %s --check-prefix=REGISTERS

// WIDTH: error: expects a vector-width that is a power of two up to 32, but got 3
// WIDE: error: expects a vector-width that is a power of two up to 32, but got 64
// LANES: error: expects a vector-width of 1, 2, 4 or 8, but got 16
// BLOCK: error: expects a block that is a multiple of 32 up to 1024, but got 48
// REGISTERS: error: expects max-registers up to 255, but got 300
module {}
