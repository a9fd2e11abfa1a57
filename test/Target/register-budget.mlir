// REQUIRES: ptxas
// Registers decide how many threads a processor holds: at most 64, none
// spilled, on each generation. LAMB's norms hold an update and two f64
// accumulators a column.
// RUN: dfa-opt %S/Inputs/kernels.mlir --dfa-kernels-to-cuda=chip=sm_80 | %python %S/Inputs/check_budget.py 19 64 lamb_norms=96
// RUN: dfa-opt %S/Inputs/kernels.mlir --dfa-kernels-to-cuda=chip=sm_90 | %python %S/Inputs/check_budget.py 19 64 lamb_norms=96
// RUN: dfa-opt %S/Inputs/kernels.mlir --dfa-kernels-to-cuda=chip=sm_100 | %python %S/Inputs/check_budget.py 19 64 lamb_norms=96
