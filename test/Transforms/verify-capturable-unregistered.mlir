// RUN: not dfa-opt %s --dfa-verify-capturable --allow-unregistered-dialect 2>&1 \
// RUN:   | FileCheck %s

// What nobody has vouched for is reported, with its place; all of it.

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    // CHECK: verify-capturable-unregistered.mlir:[[#@LINE+1]]:5: error: 'vendor.launch' op cannot be recorded: is not known to be recordable
    "vendor.launch"() : () -> ()
    dfa.for_each_bucket @w {
      // CHECK: verify-capturable-unregistered.mlir:[[#@LINE+1]]:7: error: 'vendor.sync' op cannot be recorded: is not known to be recordable
      "vendor.sync"() : () -> ()
    }
  }
  dfa.program_class @w arrays [] types [] parts [] derived 0
}
