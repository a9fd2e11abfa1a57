// RUN: dfa-opt %s --dfa-verify-kernels --split-input-file --verify-diagnostics

// One failing module for each check. Kinds of kernels, classes and arrays of
// commands are checked by dfa.program itself (test/Dialect/Dfa).

// expected-error @below {{expects no step function at level C; run dfa-form-kernels first}}
func.func @step() {
  return
}

// -----

func.func @helper(%g: !dfa.flat<@l, @w, full, f32>, %s: f64) {
  // expected-error @below {{expects no op of level B at level C; only functions named 'step' are compiled}}
  %u = dfa.unscale %g by %s : !dfa.flat<@l, @w, full, f32>, f64 -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays [] types [] parts [] derived 0
  dfa.entry finish {
    // expected-error @below {{expects @k to be a 'dfa.kernel', but found none}}
    dfa.launch_elements @k on @w over chunks acc 0
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    // expected-error @below {{expects @k to be a 'dfa.control_kernel', but found none}}
    dfa.launch_control @k mode whole acc 0
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays [] types [] parts [] derived 0
  dfa.entry finish {
    // expected-error @below {{expects @k to be a 'dfa.segment_kernel', but found none}}
    dfa.launch_segments @k on @w acc 0
  }
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"grad", f32, read>] accumulators [sum] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%g: f32):
  %w = arith.extf %g : f32 to f64
  dfa.yield %w : f64
}
dfa.program @step on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad"] types [f32] parts [full] derived 0
  dfa.entry finish {
    // expected-error @below {{expects a kernel with accumulators to run over 'atoms'}}
    dfa.launch_elements @k on @w over chunks acc 0
  }
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"grad", f32, read>] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%g: f32):
  dfa.yield
}
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["grad"] types [f32] parts [full] derived 0
  dfa.entry finish {
    // expected-error @below {{expects a kernel without accumulators to run over 'chunks'}}
    dfa.launch_elements @k on @w over atoms acc 0
  }
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"grad", f32, read>] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%g: f32):
  dfa.yield
}
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["param"] types [f32] parts [full] derived 0
  dfa.entry finish {
    // expected-error @below {{expects class @w to have the kernel's array "grad"}}
    dfa.launch_elements @k on @w over chunks acc 0
  }
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"grad", f32, read>] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%g: f32):
  dfa.yield
}
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["grad"] types [bf16] parts [full] derived 0
  dfa.entry finish {
    // expected-error @below {{expects array "grad" with elements of type 'bf16', but the kernel has 'f32'}}
    dfa.launch_elements @k on @w over chunks acc 0
  }
}

// -----

dfa.segment_kernel @k on @l::@w accumulators [] {
  // expected-error @below {{expects a column of the group table below 1, but got 1}}
  %x = dfa.load_hyper "lr" at 1 : f64
  dfa.yield
}
dfa.program @step on @l hyper ["lr"] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays [] types [] parts [] derived 0
  dfa.entry finish {
    // expected-note @below {{launched here}}
    dfa.launch_segments @k on @w acc 0
  }
}

// -----

dfa.segment_kernel @k on @l::@w accumulators [] {
  // expected-error @below {{expects column 0 to be "eps", but the program has "lr"}}
  %x = dfa.load_hyper "eps" at 0 : f64
  dfa.yield
}
dfa.program @step on @l hyper ["lr"] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays [] types [] parts [] derived 0
  dfa.entry finish {
    dfa.launch_segments @k on @w acc 0
  }
}

// -----

dfa.segment_kernel @k on @l::@w accumulators [] {
  // expected-error @below {{expects a group statistic below 1, but got 2}}
  %x = dfa.load_group_stat 2 : f64
  dfa.yield
}
dfa.program @step on @l hyper [] accumulators 0 group_stats 1 {
  dfa.program_class @w arrays [] types [] parts [] derived 0
  dfa.entry finish {
    // expected-note @below {{launched here}}
    dfa.launch_segments @k on @w acc 0
  }
}

// -----

dfa.segment_kernel @k on @l::@w accumulators [] {
  %x = arith.constant 1.0 : f32
  // expected-error @below {{expects a derived value below 2, but got 2}}
  dfa.store_derived 2, %x : f32
  dfa.yield
}
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays [] types [] parts [] derived 2
  dfa.entry finish {
    // expected-note @below {{launched here}}
    dfa.launch_segments @k on @w acc 0
  }
}

// -----

dfa.kernel @k on @l::@w arrays [#dfa.array<"grad", f32, read>] accumulators [] uniform {
  %true = arith.constant true
  // expected-error @below {{expects a derived value below 2, but got 3}}
  %x = dfa.load_derived 3 : f32
  dfa.yield %true, %x : i1, f32
} body {
^bb0(%x: f32, %g: f32):
  dfa.yield
}
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["grad"] types [f32] parts [full] derived 2
  dfa.entry finish {
    // expected-note @below {{launched here}}
    dfa.launch_elements @k on @w over chunks acc 0
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 1 group_stats 0 {
  dfa.entry finish {
    // expected-error @below {{expects accumulator rows 0 to 1 to be among the 1 of the program}}
    dfa.collective all_gather over "shard" "sums" to "sums" reduce sum order rank acc 0 accs 2
  }
}

// -----

dfa.control_kernel @k accumulators [] groups [sum] {
  dfa.yield
}
dfa.program @step on @l hyper [] accumulators 1 group_stats 1 {
  dfa.entry finish {
    // expected-error @below {{expects accumulator rows 1 to 1 to be among the 1 of the program}}
    dfa.launch_control @k mode whole acc 1
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    dfa.record "e0" on compute
  }
  dfa.entry zero_grad {
    // expected-error @below {{expects event 'e0' to be recorded before in this entry}}
    dfa.wait "e0" on comm
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    // expected-error @below {{expects event 'e0' to be recorded before in this entry}}
    dfa.wait "e0" on comm
    dfa.record "e0" on compute
  }
}
