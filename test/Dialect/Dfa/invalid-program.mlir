// RUN: dfa-opt %s --split-input-file --allow-unregistered-dialect --verify-diagnostics

// expected-error@+1 {{expects hyper-parameters that differ, but got "lr" twice}}
dfa.program @p on @l hyper ["lr", "lr"] accumulators 0 group_stats 0 {
}

// -----

// expected-error@+1 {{attribute 'accumulators' failed to satisfy constraint}}
dfa.program @p on @l hyper [] accumulators -1 group_stats 0 {
}

// -----

// expected-error@+1 {{attribute 'group_stats' failed to satisfy constraint}}
dfa.program @p on @l hyper [] accumulators 0 group_stats -1 {
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{is not allowed in a 'dfa.program'; expects 'dfa.program_class' or 'dfa.entry'}}
  dfa.upload "groups"
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.entry finish {
  }
  // expected-error@+1 {{defines entry 'finish' twice}}
  dfa.entry finish {
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  // expected-error@+1 {{defines class @w twice}}
  dfa.program_class @w arrays [] types [] parts [] derived 0
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{expected one of [fill, reduce, finish, zero_grad] for entry point of a program, got: end}}
  dfa.entry end {
  }
}

// -----

// expected-error@+1 {{expects parent op 'dfa.program'}}
dfa.entry finish {
}

// -----

// expected-error@+1 {{expects parent op 'dfa.program'}}
dfa.program_class @w arrays [] types [] parts [] derived 0

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{expects one type and one part for each of 1 arrays, but got 2 and 1}}
  dfa.program_class @w arrays ["a"] types [f32, f32] parts [full] derived 0
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{expects one type and one part for each of 1 arrays, but got 1 and 0}}
  dfa.program_class @w arrays ["a"] types [f32] parts [] derived 0
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{expects arrays that differ, but got "a" twice}}
  dfa.program_class @w arrays ["a", "a"] types [f32, f32] parts [full, full] derived 0
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{expects arrays of type f64, f32, f16, bf16, i16 or i8, but got 'index'}}
  dfa.program_class @w arrays ["a"] types [index] parts [full] derived 0
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{attribute 'derived' failed to satisfy constraint}}
  dfa.program_class @w arrays [] types [] parts [] derived -1
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-error@+1 {{expects part full or shard, but got 'half'}}
  dfa.program_class @w arrays ["a"] types [f32] parts [half] derived 0
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @v to be a 'dfa.program_class' of the program}}
    dfa.launch_elements @k on @v over chunks acc 0
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @v to be a 'dfa.program_class' of the program}}
    dfa.launch_segments @k on @v acc 0
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @v to be a 'dfa.program_class' of the program}}
    dfa.for_each_bucket @v {
    }
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @v to be a 'dfa.program_class' of the program}}
    dfa.memset @v "grad"
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @v to be a 'dfa.program_class' of the program}}
    dfa.collective all_gather over "shard" class @v "param" to "param"
      reduce sum order any acc 0 accs 0
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-note@+1 {{class defined here}}
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects an array of class @w, but got 'grd'}}
    dfa.memset @w "grd"
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-note@+1 {{class defined here}}
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects an array of class @w, but got 'x'}}
    dfa.collective all_gather over "shard" class @w "x" to "param"
      reduce sum order any acc 0 accs 0
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  // expected-note@+1 {{class defined here}}
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects an array of class @w, but got 'y'}}
    dfa.collective all_gather over "shard" class @w "param" to "y"
      reduce sum order any acc 0 accs 0
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects 'sums' to be both source and target}}
    dfa.collective all_gather over "shard" "sums" to "param" reduce sum order any
      acc 0 accs 1
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects no class for 'sums', but got @w}}
    dfa.collective all_gather over "shard" class @w "sums" to "sums" reduce sum order any
      acc 0 accs 1
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects a class for array 'param'}}
    dfa.collective all_gather over "shard" "param" to "param" reduce sum order any
      acc 0 accs 0
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects at least one accumulator for 'sums'}}
    dfa.collective all_gather over "shard" "sums" to "sums" reduce sum order any
      acc 0 accs 0
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects table 'segments', 'groups' or 'chunks', but got 'rows'}}
    dfa.upload "rows"
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{has no control field 'scal'; fields are norm}}
    %0 = dfa.fetch "scal" : f32
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects type 'f32', but got 'f64'}}
    %0 = dfa.fetch "scale" : f64
  }
}

// -----

dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{attribute 'acc' failed to satisfy constraint}}
    dfa.launch_control @k mode whole acc -1
  }
}

// -----

// expected-note@+1 {{kernel defined here}}
dfa.control_kernel @k accumulators [sum] {
^bb0(%s: f64):
  dfa.yield
}
dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @k to be a 'dfa.kernel'}}
    dfa.launch_elements @k on @w over chunks acc 0
  }
}

// -----

// expected-note@+1 {{kernel defined here}}
dfa.control_kernel @k accumulators [sum] {
^bb0(%s: f64):
  dfa.yield
}
dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @k to be a 'dfa.segment_kernel'}}
    dfa.launch_segments @k on @w acc 0
  }
}

// -----

// expected-note@+1 {{kernel defined here}}
dfa.segment_kernel @k on @l::@w accumulators [sum] {
^bb0(%s: f64):
  dfa.yield
}
dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects @k to be a 'dfa.control_kernel'}}
    dfa.launch_control @k mode whole acc 0
  }
}

// -----

// expected-note@+1 {{kernel defined here}}
dfa.control_kernel @k accumulators [sum] {
^bb0(%s: f64):
  dfa.yield
}
dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects its 1 accumulators from row 1 to be among the program's 1}}
    dfa.launch_control @k mode whole acc 1
  }
}

// -----

// expected-note@+1 {{kernel defined here}}
dfa.segment_kernel @k on @l::@w accumulators [sum] {
^bb0(%s: f64):
  dfa.yield
}
dfa.program @p on @l hyper [] accumulators 1 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
    parts [full, full] derived 1
  dfa.entry finish {
    // expected-error@+1 {{expects its 1 accumulators from row 9223372036854775807 to be among}}
    dfa.launch_segments @k on @w acc 9223372036854775807
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    // expected-error@+1 {{expects 'presence' to be both source and target}}
    dfa.collective all_reduce over "shard" "presence" to "grad" reduce max order any acc 0 accs 0
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.entry finish {
    // expected-error@+1 {{expects an all_reduce of 'presence', but got all_gather}}
    dfa.collective all_gather over "shard" "presence" to "presence" reduce max order any acc 0 accs 0
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 1 group_stats 0 {
  dfa.entry finish {
    // expected-error@+1 {{expects 'stats' to be both source and target}}
    dfa.collective all_gather over "shard" class @w "stats" to "grad" reduce sum order rank acc 0 accs 1
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 1 group_stats 0 {
  dfa.entry finish {
    // expected-error@+1 {{expects an all_gather of 'stats', but got all_reduce}}
    dfa.collective all_reduce over "shard" class @w "stats" to "stats" reduce sum order rank acc 0 accs 1
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 1 group_stats 0 {
  dfa.entry finish {
    // expected-error@+1 {{expects at least one accumulator for 'stats'}}
    dfa.collective all_gather over "shard" class @w "stats" to "stats" reduce sum order rank acc 0 accs 0
  }
}

// -----

dfa.program @step on @l hyper [] accumulators 1 group_stats 1 {
  dfa.entry finish {
    // expected-error@+1 {{expects accumulators of groups among those of 'sums', but got 2}}
    dfa.collective all_gather over "shard" "sums" to "sums" reduce sum order rank acc 0 accs 1 {group_accs = 2}
  }
}
