// RUN: dfa-opt %s --dfa-verify-lowered=phase=llvm --split-input-file --verify-diagnostics

// expected-error@+1 {{'dfa.control_kernel' op expects to be lowered by now}}
dfa.control_kernel @k accumulators [] {
  dfa.yield
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    // expected-error@+1 {{'dfa.launch_control' op expects @k to be a function by now}}
    dfa.launch_control @k mode whole acc 0
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    // expected-note@+1 {{launched here}}
    dfa.launch_control @k mode whole acc 0
  }
}
// expected-error@+1 {{expects 11 arguments, as the runtime's interface has them, but got 1}}
llvm.func @k(%a: i64) {
  llvm.return
}

// -----

// expected-error@+1 {{'func.func' op expects to be an 'llvm.func' by now}}
func.func private @f()

// -----

llvm.func @k(%a: i32) -> i32 {
  // expected-error@+1 {{'arith.addi' op expects to be of dialect 'llvm' or 'nvvm' by now}}
  %b = arith.addi %a, %a : i32
  llvm.return %b : i32
}

// -----

llvm.func @k(%a: i32) {
  // expected-error@+1 {{expects no conversion between types of two levels}}
  %b = builtin.unrealized_conversion_cast %a : i32 to index
  llvm.return
}

// -----

// An element kernel that returns something.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays [] types [] parts [] derived 0
  dfa.entry finish {
    dfa.launch_segments @k on @w acc 0
  }
}
// expected-error@+1 {{expects a kernel to return nothing}}
llvm.func @k(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64,
             !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr) -> i32
