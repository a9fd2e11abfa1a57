// RUN: dfa-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expects elements of type f64, f32, f16, bf16, i16 or i8, but got 'i32'}}
func.func private @f(!dfa.flat<@l, @w, full, i32>)

// -----

// expected-error@+2 {{expected ::mlir::dfa::Part to be one of: full, shard}}
// expected-error@+1 {{failed to parse Dfa_FlatType parameter 'part'}}
func.func private @f(!dfa.flat<@l, @w, half, f32>)

// -----

// expected-error@+1 {{expects the order of an lp norm, as in '!dfa.partial<lp, whole, 3.0>'}}
func.func private @f(!dfa.partial<lp, whole>)

// -----

// expected-error@+1 {{expects an order for lp norms only}}
func.func private @f(!dfa.partial<l2, whole, 2.0>)

// -----

// expected-error@+1 {{expects the order of an lp norm to be an integer from 1 to 64}}
func.func private @f(!dfa.partial<lp, whole, 0.5>)

// -----

// expected-error@+1 {{expects the order of an lp norm to be an integer from 1 to 64}}
func.func private @f(!dfa.partial<lp, whole, 65.0>)

// -----

// expected-error@+1 {{expects the order of an lp norm to be an integer from 1 to 64}}
func.func private @f(!dfa.partial<lp, whole, 2.5>)

// -----

// expected-error@+1 {{expects the order of an lp norm to be an integer from 1 to 64}}
func.func private @f(!dfa.partial<lp, whole, -3.0>)

// -----

// expected-error@+1 {{expects the order of an lp norm}}
func.func private @f(!dfa.partial<lp, whole, 1.0e400>)

// -----

// expected-error@+2 {{unexpected decimal integer literal for a floating point value}}
// expected-note@+1 {{add a trailing dot to make the literal a float}}
func.func private @f(!dfa.partial<lp, whole, 3>)

// -----

// expected-error@+1 {{expected '>'}}
func.func private @f(!dfa.partial<lp, whole, 3.0, 4.0>)

// -----

// expected-error@+1 {{expected '<'}}
func.func private @f(!dfa.partial)

// -----

// expected-error@+1 {{expected one of [l1, l2, lp, inf, flag] for kind of accumulator, got: l3}}
func.func private @f(!dfa.partial<l3, whole>)

// -----

// expected-error@+1 {{expected one of [whole, group, param] for scope of a statistic, got: all}}
func.func private @f(!dfa.partial<l2, all>)

// -----

// expected-error@+1 {{expects scope 'whole' for a flag, but got 'param'}}
func.func private @f(!dfa.partial<flag, param>)

// -----

// expected-error@+1 {{expects scope 'group' or 'param', but got 'whole'; use the element type itself}}
func.func private @f(!dfa.per<whole, f64>)

// -----

// expected-error@+1 {{expects element type f32 or f64, but got 'f16'}}
func.func private @f(!dfa.per<param, f16>)

// -----

// expected-error@+1 {{expects the name of an array}}
func.func private @f() attributes {a = #dfa.array<"", f32, read>}

// -----

// expected-error@+1 {{expects elements of type f64, f32, f16, bf16, i16 or i8, but got 'tensor<3xf32>'}}
func.func private @f() attributes {a = #dfa.array<"g", tensor<3xf32>, read>}

// -----

// expected-error@+2 {{expected ::mlir::dfa::Access to be one of: read, write, readwrite}}
// expected-error@+1 {{failed to parse Dfa_KernelArrayAttr parameter 'access'}}
func.func private @f() attributes {a = #dfa.array<"g", f32, none>}

// -----

// expected-error@+1 {{has no attribute 'dfa.contrl' in dialect 'dfa'}}
func.func private @f() attributes {dfa.contrl = {}}

// -----

// expected-error@+1 {{expects 'dfa.control' on a function only}}
dfa.mesh @m(a = 1) {dfa.control = {}}

// -----

// expected-error@+1 {{expects 'dfa.control' to be a dictionary of control fields, but got 3}}
func.func private @f() attributes {dfa.control = 3}

// -----

// expected-error@+1 {{has no control field 'scal'; fields are norm, max_norm}}
func.func private @f() attributes {dfa.control = {scal = 1.0}}

// -----

// expected-error@+1 {{has no control field 'reserved0'}}
func.func private @f() attributes {dfa.control = {reserved0 = 1}}

// -----

// expected-error@+1 {{expects control field 'scale' to be a float, but got 65536}}
func.func private @f() attributes {dfa.control = {scale = 65536}}

// -----

// expected-error@+1 {{expects control field 'max_norm' to be finite as 'f64'}}
func.func private @f() attributes {dfa.control = {max_norm = 0x7FF0000000000000 : f64}}

// -----

// expected-error@+1 {{expects control field 'scale' to be finite as 'f32', but got 9.9999}}
func.func private @f() attributes {dfa.control = {scale = 1.0e39}}

// -----

// expected-error@+1 {{expects control field 'scale' to be finite as 'f32'}}
func.func private @f() attributes {dfa.control = {scale = 0x7FF8000000000000 : f64}}

// -----

// expected-error@+1 {{expects control field 'scale' to be above 0, but got -1.0}}
func.func private @f() attributes {dfa.control = {scale = -1.0}}

// -----

// expected-error@+1 {{expects control field 'max_norm' to be at least 0}}
func.func private @f() attributes {dfa.control = {max_norm = -1.0}}

// -----

// expected-error@+1 {{expects control field 'step' to be an integer, but got 1.0}}
func.func private @f() attributes {dfa.control = {step = 1.0}}

// -----

// expected-error@+1 {{expects control field 'step' to be at least 0, but got -5}}
func.func private @f() attributes {dfa.control = {step = -5}}

// -----

// expected-error@+1 {{expects control field 'growth_interval' to be above 0, but got 0}}
func.func private @f() attributes {dfa.control = {growth_interval = 0}}

// -----

// expected-error@+1 {{expects control field 'growth_interval' to fit 'i32', but got 4294967296}}
func.func private @f() attributes {dfa.control = {growth_interval = 4294967296}}

// -----

// expected-error@+1 {{has no attribute 'dfa.rol' in dialect 'dfa'}}
func.func private @f(f32 {dfa.rol = "x"})

// -----

// expected-error@+1 {{expects 'dfa.role' of argument #0 to be a non-empty string, but got 3}}
func.func private @f(f32 {dfa.role = 3})

// -----

// expected-error@+1 {{expects 'dfa.role' of result #0 to be a non-empty string, but got ""}}
func.func private @f() -> (f32 {dfa.role = ""})

// -----

// expected-error@+1 {{argument #1 of type '!dfa.control' has role 'grad'}}
func.func private @f(f32, !dfa.control {dfa.role = "grad"})

// -----

// expected-error@+1 {{argument #0 of type 'f32' has role 'control'}}
func.func private @f(f32 {dfa.role = "control"})

// -----

// expected-error@+1 {{has no attribute 'dfa.rol' in dialect 'dfa'}}
func.func private @f() -> (f32 {dfa.rol = "x"})
