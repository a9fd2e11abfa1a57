// RUN: dfa-opt %s --dfa-verify-capturable --split-input-file --verify-diagnostics

// One failing program for each reason, after one that passes: pure work on
// constants and on the rank is harmless.

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["grad"] types [f32] parts [full] derived 0
  dfa.entry finish {
    %c = arith.constant 1 : index
    %r = dfa.rank over "shard" : index
    %s = arith.addi %r, %c : index
    dfa.upload "groups"
    dfa.for_each_bucket @w {
      dfa.launch_elements @k on @w over chunks acc 0
    }
    dfa.memset @w "grad"
    dfa.read_back
  }
}

// -----

// Read-back of a device value.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    // expected-error @below {{cannot be recorded: reads a device value back and waits for it}}
    %s = dfa.fetch "scale" : f32
  }
}

// -----

// Allocation.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'reduce'}}
  dfa.entry reduce {
    %n = llvm.mlir.constant(64 : i64) : i64
    // expected-error @below {{cannot be recorded: allocates or frees memory; do it before the capture}}
    %m = llvm.alloca %n x i8 : (i64) -> !llvm.ptr
  }
}

// -----

// An unknown call.
func.func private @f()
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    // expected-error @below {{cannot be recorded: calls a function that is not known to be recordable}}
    func.call @f() : () -> ()
  }
}

// -----

// A module load.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    // expected-error @below {{cannot be recorded: loads a module; do it before the capture}}
    dfa.load_module "kernels"
  }
}

// -----

// Communicator creation.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    // expected-error @below {{cannot be recorded: creates a communicator; do it before the capture}}
    dfa.create_communicator over "shard"
  }
}

// -----

// A scalar argument that may change between steps.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["grad"] types [f32] parts [full] derived 0
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    %lr = arith.constant 1.0 : f32
    // expected-error @below {{cannot be recorded: a host scalar argument may change between steps; pass it through device memory}}
    dfa.launch_elements @k on @w over chunks acc 0 args(%lr : f32)
  }
}

// -----

// Nothing to prove is no proof.
// expected-error @below {{expects a 'dfa.program' with entries; run dfa-form-kernels first}}
module {
}

// -----

// Known ops that read or write host memory are no commands.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    %p = llvm.mlir.zero : !llvm.ptr
    // expected-error @below {{cannot be recorded: is not known to be recordable}}
    %v = llvm.load %p : !llvm.ptr -> i1
  }
}
