// RUN: dfa-opt %s -o %t.mlir
// RUN: dfa-opt %t.mlir | diff %t.mlir -
// RUN: dfa-opt %s --mlir-print-op-generic | dfa-opt | diff %t.mlir -
// RUN: dfa-opt %s --emit-bytecode | dfa-opt | diff %t.mlir -
// RUN: FileCheck %s --input-file=%t.mlir

// Types, and attributes outside of op syntax.

// CHECK-LABEL: func.func private @flat(
// CHECK-SAME: !dfa.flat<@l, @w, full, f64>, !dfa.flat<@l, @w, full, f32>
// CHECK-SAME: !dfa.flat<@l, @w, shard, f16>, !dfa.flat<@l, @w, shard, bf16>
// CHECK-SAME: !dfa.flat<@l, @w, shard, i16>, !dfa.flat<@l, @w, shard, i8>
func.func private @flat(
  !dfa.flat<@l, @w, full, f64>, !dfa.flat<@l, @w, full, f32>,
  !dfa.flat<@l, @w, shard, f16>, !dfa.flat<@l, @w, shard, bf16>,
  !dfa.flat<@l, @w, shard, i16>, !dfa.flat<@l, @w, shard, i8>)

// CHECK-LABEL: func.func private @partial(
// CHECK-SAME: !dfa.partial<l1, whole>, !dfa.partial<l2, group>
// CHECK-SAME: !dfa.partial<lp, param, 3.000000e+00>
// CHECK-SAME: !dfa.partial<inf, param>, !dfa.partial<flag, whole>
func.func private @partial(
  !dfa.partial<l1, whole>, !dfa.partial<l2, group>,
  !dfa.partial<lp, param, 3.0>,
  !dfa.partial<inf, param>, !dfa.partial<flag, whole>)

// CHECK-LABEL: func.func private @scalars(
// CHECK-SAME: !dfa.per<group, f32>, !dfa.per<param, f64>, !dfa.control
func.func private @scalars(!dfa.per<group, f32>, !dfa.per<param, f64>,
                           !dfa.control)

// CHECK-LABEL: func.func private @attributes
// CHECK-SAME: accumulation = [#dfa<accumulation l1>, #dfa<accumulation inf>]
// CHECK-SAME: array = #dfa.array<"exp_avg", f32, readwrite>
// CHECK-SAME: axis = #dfa.axis<"shard", 8, peer>
// CHECK-SAME: more = [#dfa<adam_mode adamw>, #dfa<zero_mode memset>,
// CHECK-SAME: #dfa<access_mode write>, #dfa<segment_field active>,
// CHECK-SAME: #dfa<stream comm>, #dfa<table atoms>, #dfa<entry reduce>,
// CHECK-SAME: #dfa<collective_kind broadcast>, #dfa<control_mode gathered>,
// CHECK-SAME: #dfa<combine_kind max>, #dfa<reduction sum>, #dfa<order rank>,
// CHECK-SAME: #dfa<transport library>, #dfa<rule lamb>, #dfa<scope group>,
// CHECK-SAME: #dfa<format remainder>, #dfa<part shard>]
// CHECK-SAME: state = #dfa.state<"exp_avg", bf16>
func.func private @attributes() attributes {
  accumulation = [#dfa<accumulation l1>, #dfa<accumulation inf>],
  array = #dfa.array<"exp_avg", f32, readwrite>,
  axis = #dfa.axis<"shard", 8, peer>,
  more = [#dfa<adam_mode adamw>, #dfa<zero_mode memset>,
          #dfa<access_mode write>, #dfa<segment_field active>,
          #dfa<stream comm>, #dfa<table atoms>, #dfa<entry reduce>,
          #dfa<collective_kind broadcast>, #dfa<control_mode gathered>,
          #dfa<combine_kind max>, #dfa<reduction sum>, #dfa<order rank>,
          #dfa<transport library>, #dfa<rule lamb>, #dfa<scope group>,
          #dfa<format remainder>, #dfa<part shard>],
  state = #dfa.state<"exp_avg", bf16>}

// CHECK-LABEL: func.func @step(
// CHECK-SAME: {dfa.role = "grad"}
// CHECK-SAME: !dfa.control {dfa.role = "control"}
// CHECK-SAME: -> (!dfa.control {dfa.role = "control"})
// CHECK-SAME: dfa.control = {growth_interval = 10 : i64,
// CHECK-SAME: hysteresis_tracker = -2 : i64, max_norm = 1.000000e+00 : f64,
// CHECK-SAME: scale = 6.553600e+04 : f64}
func.func @step(%g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"},
                %c: !dfa.control {dfa.role = "control"})
    -> (!dfa.control {dfa.role = "control"})
    attributes {dfa.control = {scale = 65536.0, growth_interval = 10,
                               hysteresis_tracker = -2, max_norm = 1.0}} {
  return %c : !dfa.control
}
