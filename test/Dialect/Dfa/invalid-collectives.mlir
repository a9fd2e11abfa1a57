// RUN: dfa-opt %s --split-input-file --verify-diagnostics

// Case B38: each is refused with what was expected and what was found.

func.func @f(%g: !dfa.flat<@l, @w, full, i16>) {
  // expected-error@+1 {{expects float elements, but got}}
  %0 = dfa.reduce_scatter sum %g over "shard" : !dfa.flat<@l, @w, full, i16> -> !dfa.flat<@l, @w, shard, i16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects axis 'shard', along which layouts are cut, but got 'replicate'}}
  %0 = dfa.reduce_scatter sum %g over "replicate" : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, shard, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, shard, f32>) {
  // expected-error@+1 {{expects an input of part 'full', but got}}
  %0 = dfa.reduce_scatter sum %g over "shard" : !dfa.flat<@l, @w, shard, f32> -> !dfa.flat<@l, @w, shard, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a result of type '!dfa.flat<@l, @w, shard, f32>', but got '!dfa.flat<@l, @w, full, f32>'}}
  %0 = dfa.reduce_scatter sum %g over "shard" : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a result of type '!dfa.flat<@l, @w, shard, f32>', but got '!dfa.flat<@l, @w, shard, bf16>'}}
  %0 = dfa.reduce_scatter sum %g over "shard" : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, shard, bf16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a result of type '!dfa.flat<@l, @w, shard, f32>', but got '!dfa.flat<@l, @v, shard, f32>'}}
  %0 = dfa.reduce_scatter sum %g over "shard" : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @v, shard, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expected one of [sum, max] for reduction over ranks, got: avg}}
  %0 = dfa.reduce_scatter avg %g over "shard" : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, shard, f32>
  return
}

// -----

// expected-note@+1 {{mesh defined here}}
dfa.mesh @m(replicate = 2)
dfa.layout @l on @m {
}
func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects an axis of mesh '@m', but got 'shard'}}
  %0 = dfa.reduce_scatter sum %g over "shard" : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, shard, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, i16>) {
  // expected-error@+1 {{expects float elements, but got}}
  %0 = dfa.all_reduce sum %g over "shard" : !dfa.flat<@l, @w, full, i16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, shard, f32>) {
  // expected-error@+1 {{expects an axis on which ranks hold the same elements, but '!dfa.flat<@l, @w, shard, f32>' differs along 'shard'}}
  %0 = dfa.all_reduce sum %g over "shard" : !dfa.flat<@l, @w, shard, f32>
  return
}

// -----

// expected-note@+1 {{mesh defined here}}
dfa.mesh @m(replicate = 2, shard = 4)
dfa.layout @l on @m {
}
func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects an axis of mesh '@m', but got 'model'}}
  %0 = dfa.all_reduce sum %g over "model" : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

dfa.mesh @m(replicate = 2, shard = 4)
dfa.layout @l {
}
func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects layout @l to be on a mesh}}
  %0 = dfa.all_reduce sum %g over "shard" : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{failed to verify that all of {input, result} have same type}}
  %0 = "dfa.all_reduce"(%g) <{reduction = #dfa<reduction sum>, axis = "a"}> : (!dfa.flat<@l, @w, full, f32>) -> !dfa.flat<@l, @w, full, bf16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, shard, f32>) {
  // expected-error@+1 {{expects axis 'shard', along which layouts are cut, but got 'replicate'}}
  %0 = dfa.all_gather %g over "replicate" : !dfa.flat<@l, @w, shard, f32> -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects an input of part 'shard', but got}}
  %0 = dfa.all_gather %g over "shard" : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, shard, f32>) {
  // expected-error@+1 {{expects a result of type '!dfa.flat<@l, @w, full, f32>', but got '!dfa.flat<@l, @w, full, f16>'}}
  %0 = dfa.all_gather %g over "shard" : !dfa.flat<@l, @w, shard, f32> -> !dfa.flat<@l, @w, full, f16>
  return
}

// -----

// expected-note@+1 {{mesh defined here}}
dfa.mesh @m(replicate = 2)
dfa.layout @l on @m {
}
func.func @f(%g: !dfa.flat<@l, @w, shard, f32>) {
  // expected-error@+1 {{expects an axis of mesh '@m', but got 'shard'}}
  %0 = dfa.all_gather %g over "shard" : !dfa.flat<@l, @w, shard, f32> -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, shard, f32>) {
  // expected-error@+1 {{expects an axis on which ranks hold the same elements}}
  %0 = dfa.broadcast %g from 0 over "shard" : !dfa.flat<@l, @w, shard, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a root of at least 0, but got -1}}
  %0 = dfa.broadcast %g from -1 over "shard" : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

dfa.mesh @m(replicate = 2, shard = 4)
dfa.layout @l on @m {
}
func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a root below 4, the size of axis 'shard', but got 4}}
  %0 = dfa.broadcast %g from 4 over "shard" : !dfa.flat<@l, @w, full, f32>
  return
}

// -----

// expected-note@+1 {{mesh defined here}}
dfa.mesh @m(replicate = 2, shard = 4)
dfa.layout @l on @m {
}
func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects an axis of mesh '@m', but got 'x'}}
  %0 = dfa.broadcast %g from 0 over "x" : !dfa.flat<@l, @w, full, f32>
  return
}
