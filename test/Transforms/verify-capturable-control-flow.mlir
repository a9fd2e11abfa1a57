// RUN: dfa-opt %s --dfa-verify-capturable --split-input-file --verify-diagnostics

// Control flow must go the same way in every replay on every rank.

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    %true = arith.constant true
    scf.if %true {
      dfa.upload "groups"
    }
  }
}

// -----

// On a loaded value, however it is computed.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    // expected-error @below {{cannot be recorded: reads a device value back and waits for it}}
    %n = dfa.fetch "step" : i64
    %c = arith.constant 10 : i64
    %late = arith.cmpi sgt, %n, %c : i64
    // expected-error @below {{cannot be recorded: branches on a value loaded from the device}}
    scf.if %late {
      dfa.upload "groups"
    }
  }
}

// -----

// On the rank: the others would wait in the collective for ever.
dfa.program @step on @l hyper [] accumulators 1 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    %r = dfa.rank over "shard" : index
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %r, %zero : index
    // expected-error @below {{cannot be recorded: branches on the rank; all ranks must record the same commands}}
    scf.if %first {
      dfa.collective all_gather over "shard" "sums" to "sums" reduce sum order rank acc 0 accs 1
    }
  }
}

// -----

// A bound is a branch too.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    %r = dfa.rank over "shard" : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    // expected-error @below {{branches on the rank}}
    scf.for %i = %zero to %r step %one {
      dfa.upload "groups"
    }
  }
}

// -----

// And so is the end of a loop's turn.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    scf.while : () -> () {
      %r = dfa.rank over "shard" : index
      %zero = arith.constant 0 : index
      %first = arith.cmpi eq, %r, %zero : index
      // expected-error @below {{branches on the rank}}
      scf.condition(%first)
    } do {
      scf.yield
    }
  }
}

// -----

// A value that a loop carries is not the same in each turn.
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  // expected-note @below {{in entry 'finish'}}
  dfa.entry finish {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    scf.for %i = %zero to %two step %one {
      %odd = arith.cmpi eq, %i, %one : index
      // expected-error @below {{branches on a value that may change between steps}}
      scf.if %odd {
        dfa.upload "groups"
      }
    }
  }
}
