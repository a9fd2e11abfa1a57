// RUN: dfa-opt %s --dfa-assign-layout --split-input-file --verify-diagnostics

// expected-error @below {{expects axes 'replicate' and 'shard' under a layout, but got 'tensor' of size 2}}
dfa.mesh @m(tensor = 2, shard = 4)
dfa.layout @l on @m {
}
