// RUN: dfa-opt %s --split-input-file --verify-diagnostics

func.func @f(%g: !dfa.flat<@l, @w, full, i16>, %s: f32) {
  // expected-error@+1 {{expects float elements, but got 'i16'}}
  %0 = dfa.unscale %g by %s : !dfa.flat<@l, @w, full, i16>, f32 -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>, %s: f32) {
  // expected-error@+1 {{expects a result of element type 'f32', but got 'bf16'}}
  %0 = dfa.unscale %g by %s : !dfa.flat<@l, @w, full, bf16>, f32 -> !dfa.flat<@l, @w, full, bf16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %s: f32) {
  // expected-error@+1 {{expects the result to cover the elements of}}
  %0 = dfa.unscale %g by %s : !dfa.flat<@l, @w, full, f32>, f32 -> !dfa.flat<@l, @v, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %s: f16) {
  // expected-error@+1 {{operand #1 must be factor, but got 'f16'}}
  %0 = dfa.unscale %g by %s : !dfa.flat<@l, @w, full, f32>, f16 -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>, %n: !dfa.per<param, f32>, %m: f64) {
  // expected-error@+1 {{operand #1 must be norm, but got '!dfa.per<param, f32>'}}
  %0 = dfa.clip %g with %n to %m : !dfa.flat<@l, @w, full, f32>, !dfa.per<param, f32>, f64
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>, %m: f64) {
  // expected-error@+1 {{expects an input of element type 'f32', but got 'bf16'}}
  %0 = dfa.clip %g with %m to %m : !dfa.flat<@l, @w, full, bf16>, f64, f64
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>, %m: f64) {
  // expected-error@+1 {{expects an input of element type 'f32', but got 'bf16'}}
  %0 = dfa.clip_value %g to %m : !dfa.flat<@l, @w, full, bf16>, f64
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>) {
  // expected-error@+1 {{expects a decoded value of element type 'f32', but got 'bf16'}}
  %0 = dfa.encode bf16 %g : !dfa.flat<@l, @w, full, bf16> -> !dfa.flat<@l, @w, full, bf16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a format with elements, but got 'none'}}
  %0 = dfa.encode none %g : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects 2 results for format 'remainder', but got 1}}
  %0 = dfa.encode remainder %g : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, bf16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects stored value #1 of element type 'i16', but got 'bf16'}}
  %0:2 = dfa.encode remainder %g : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, bf16>, !dfa.flat<@l, @w, full, bf16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a stored value to cover the elements of}}
  %0 = dfa.encode f16 %g : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, shard, f16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expected one of [none, f64, f32, f16, bf16, remainder] for storage format, got: f8}}
  %0 = dfa.encode f8 %g : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, full, f16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>) {
  // expected-error@+1 {{expects a decoded value of element type 'f32', but got 'f16'}}
  %0 = dfa.decode bf16 %g : !dfa.flat<@l, @w, full, bf16> -> !dfa.flat<@l, @w, full, f16>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>) {
  // expected-error@+1 {{expects 2 operands for format 'remainder', but got 1}}
  %0 = dfa.decode remainder %g : !dfa.flat<@l, @w, full, bf16> -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, bf16>) {
  // expected-error@+1 {{expects stored value #0 of element type 'f16', but got 'bf16'}}
  %0 = dfa.decode f16 %g : !dfa.flat<@l, @w, full, bf16> -> !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, i8>, %b: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects float elements, but got}}
  %0 = dfa.accumulate %g into %b : !dfa.flat<@l, @w, full, i8>, !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @v, full, f32>, %b: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects the input to cover the elements of}}
  %0 = dfa.accumulate %g into %b : !dfa.flat<@l, @v, full, f32>, !dfa.flat<@l, @w, full, f32>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a norm to accumulate, but got 'flag'}}
  %0 = dfa.norm_partial %g : !dfa.flat<@l, @w, full, f32> -> !dfa.partial<flag, whole>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, i8>) {
  // expected-error@+1 {{expects float elements, but got}}
  %0 = dfa.norm_partial %g : !dfa.flat<@l, @w, full, i8> -> !dfa.partial<l2, whole>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, f32>) {
  // expected-error@+1 {{expects a result of type '!dfa.partial<flag, whole>', but got}}
  %0 = dfa.non_finite %g : !dfa.flat<@l, @w, full, f32> -> !dfa.partial<l2, whole>
  return
}

// -----

func.func @f(%g: !dfa.flat<@l, @w, full, i8>) {
  // expected-error@+1 {{expects float elements, but got}}
  %0 = dfa.non_finite %g : !dfa.flat<@l, @w, full, i8> -> !dfa.partial<flag, whole>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected 1 or more operands, but found 0}}
  %0 = "dfa.combine"() : () -> !dfa.partial<l2, whole>
  return
}

// -----

func.func @f(%a: !dfa.partial<l2, whole>, %b: !dfa.partial<l1, whole>) {
  // expected-error@+1 {{requires the same}}
  %0 = "dfa.combine"(%a, %b) : (!dfa.partial<l2, whole>, !dfa.partial<l1, whole>) -> !dfa.partial<l2, whole>
  return
}

// -----

func.func @f(%a: !dfa.partial<l2, whole>) {
  // expected-error@+1 {{expects at least one axis after 'over'}}
  %0 = dfa.combine %a over [] : !dfa.partial<l2, whole>
  return
}

// -----

func.func @f(%a: !dfa.partial<l2, whole>) {
  // expected-error@+1 {{expects axes that differ, but got "s" twice}}
  %0 = dfa.combine %a over ["s", "s"] : !dfa.partial<l2, whole>
  return
}

// -----

func.func @f(%a: !dfa.partial<flag, whole>) {
  // expected-error@+1 {{expects partials of a norm, but got a flag; use 'dfa.flag_finish'}}
  %0 = dfa.norm_finish %a : !dfa.partial<flag, whole> -> f64
  return
}

// -----

func.func @f(%a: !dfa.partial<l2, param>) {
  // expected-error@+1 {{expects a result of type '!dfa.per<param, f64>', but got 'f64'}}
  %0 = dfa.norm_finish %a : !dfa.partial<l2, param> -> f64
  return
}

// -----

func.func @f(%a: !dfa.partial<l2, whole>) {
  // expected-error@+1 {{expects a result of type 'f64', but got '!dfa.per<param, f64>'}}
  %0 = dfa.norm_finish %a : !dfa.partial<l2, whole> -> !dfa.per<param, f64>
  return
}

// -----

func.func @f(%a: !dfa.partial<l2, whole>) {
  // expected-error@+1 {{expects partials of a flag, but got '!dfa.partial<l2, whole>'}}
  %0 = dfa.flag_finish %a : !dfa.partial<l2, whole> -> i1
  return
}
