// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enumerations: every choice that the dialect offers, instead of strings.

#ifndef DFA_IR_DFAENUMS_TD
#define DFA_IR_DFAENUMS_TD

include "mlir/IR/EnumAttr.td"
include "dfa/IR/DfaDialect.td"
include "dfa/IR/DfaFormatInterface.td"

class Dfa_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::dfa";
  let genSpecializedAttr = 0;
}

class Dfa_EnumAttr<I32EnumAttr enum, string mnemonic>
    : EnumAttr<Dfa_Dialect, enum, mnemonic>;

/// Which part of a layout a value covers on this rank.
def Dfa_Part : Dfa_Enum<"Part", "part of a layout", [
  I32EnumAttrCase<"Full", 0, "full">,
  I32EnumAttrCase<"Shard", 1, "shard">
]>;

def Dfa_PartAttr : Dfa_EnumAttr<Dfa_Part, "part"> {
  let assemblyFormat = "$value";
}

/// How an array element is stored.
def Dfa_Format : Dfa_Enum<"Format", "storage format", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"F64", 1, "f64">,
  I32EnumAttrCase<"F32", 2, "f32">,
  I32EnumAttrCase<"F16", 3, "f16">,
  I32EnumAttrCase<"BF16", 4, "bf16">,
  I32EnumAttrCase<"Remainder", 5, "remainder">
]>;
def Dfa_FormatAttr : EnumAttr<Dfa_Dialect, Dfa_Format, "format", [
    DeclareAttrInterfaceMethods<Dfa_StorageFormatInterface>]> {
  let assemblyFormat = "$value";
}

/// What a statistic of a storage format, a norm or a factor is taken over.
def Dfa_Scope : Dfa_Enum<"Scope", "scope of a statistic", [
  I32EnumAttrCase<"Whole", 0, "whole">,
  I32EnumAttrCase<"Group", 1, "group">,
  I32EnumAttrCase<"Param", 2, "param">
]>;
def Dfa_ScopeAttr : Dfa_EnumAttr<Dfa_Scope, "scope"> {
  let assemblyFormat = "$value";
}

/// What a partial accumulates.
def Dfa_Accumulation : Dfa_Enum<"Accumulation", "kind of accumulator", [
  I32EnumAttrCase<"L1", 0, "l1">,
  I32EnumAttrCase<"L2", 1, "l2">,
  I32EnumAttrCase<"Lp", 2, "lp">,
  I32EnumAttrCase<"Inf", 3, "inf">,
  I32EnumAttrCase<"Flag", 4, "flag">
]>;
def Dfa_AccumulationAttr : Dfa_EnumAttr<Dfa_Accumulation, "accumulation"> {
  let assemblyFormat = "$value";
}

/// How two accumulators become one.
def Dfa_Combine : Dfa_Enum<"Combine", "reduction of accumulators", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Max", 1, "max">
]>;
def Dfa_CombineAttr : Dfa_EnumAttr<Dfa_Combine, "combine_kind"> {
  let assemblyFormat = "$value";
}

/// Reductions of gradients over ranks.
def Dfa_Reduction : Dfa_Enum<"Reduction", "reduction over ranks", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Max", 1, "max">
]>;
def Dfa_ReductionAttr : Dfa_EnumAttr<Dfa_Reduction, "reduction"> {
  let assemblyFormat = "$value";
}

/// In which order a collective adds.
def Dfa_Order : Dfa_Enum<"Order", "order of accumulation over ranks", [
  I32EnumAttrCase<"Any", 0, "any">,
  I32EnumAttrCase<"Rank", 1, "rank">
]>;
def Dfa_OrderAttr : Dfa_EnumAttr<Dfa_Order, "order"> {
  let assemblyFormat = "$value";
}

/// Who carries the collectives of a mesh axis.
def Dfa_Transport : Dfa_Enum<"Transport", "transport of a mesh axis", [
  I32EnumAttrCase<"Any", 0, "any">,
  I32EnumAttrCase<"Library", 1, "library">,
  I32EnumAttrCase<"Peer", 2, "peer">
]>;
def Dfa_TransportAttr : Dfa_EnumAttr<Dfa_Transport, "transport"> {
  let assemblyFormat = "$value";
}

/// The named update rules.
def Dfa_Rule : Dfa_Enum<"Rule", "update rule", [
  I32EnumAttrCase<"Adam", 0, "adam">,
  I32EnumAttrCase<"AdamW", 1, "adamw">,
  I32EnumAttrCase<"SGD", 2, "sgd">,
  I32EnumAttrCase<"Lion", 3, "lion">,
  I32EnumAttrCase<"Adagrad", 4, "adagrad">,
  I32EnumAttrCase<"RMSprop", 5, "rmsprop">,
  I32EnumAttrCase<"Lamb", 6, "lamb">,
  I32EnumAttrCase<"Custom", 7, "custom">
]>;
def Dfa_RuleAttr : Dfa_EnumAttr<Dfa_Rule, "rule"> {
  let assemblyFormat = "$value";
}

/// Where weight decay enters an Adam update.
def Dfa_AdamMode : Dfa_Enum<"AdamMode", "kind of weight decay", [
  I32EnumAttrCase<"Adam", 0, "adam">,
  I32EnumAttrCase<"AdamW", 1, "adamw">
]>;
def Dfa_AdamModeAttr : Dfa_EnumAttr<Dfa_AdamMode, "adam_mode"> {
  let assemblyFormat = "$value";
}

/// How gradients are forgotten.
def Dfa_ZeroMode : Dfa_Enum<"ZeroMode", "how gradients are forgotten", [
  I32EnumAttrCase<"Generation", 0, "generation">,
  I32EnumAttrCase<"Memset", 1, "memset">
]>;
def Dfa_ZeroModeAttr : Dfa_EnumAttr<Dfa_ZeroMode, "zero_mode"> {
  let assemblyFormat = "$value";
}

/// What a kernel does with an array.
def Dfa_Access : Dfa_Enum<"Access", "access to an array", [
  I32EnumAttrCase<"Read", 0, "read">,
  I32EnumAttrCase<"Write", 1, "write">,
  I32EnumAttrCase<"ReadWrite", 2, "readwrite">
]>;
def Dfa_AccessAttr : Dfa_EnumAttr<Dfa_Access, "access_mode"> {
  let assemblyFormat = "$value";
}

/// Fields of a segment's device-side state.
def Dfa_SegmentField : Dfa_Enum<"SegmentField", "field of a segment", [
  I32EnumAttrCase<"Step", 0, "step">,
  I32EnumAttrCase<"Active", 1, "active">,
  I32EnumAttrCase<"Generation", 2, "generation">
]>;
def Dfa_SegmentFieldAttr : Dfa_EnumAttr<Dfa_SegmentField, "segment_field"> {
  let assemblyFormat = "$value";
}

/// Streams of a program. What is on `side` runs beside `compute` in
/// recordings, and in order with it elsewhere.
def Dfa_Stream : Dfa_Enum<"Stream", "stream of a program", [
  I32EnumAttrCase<"Compute", 0, "compute">,
  I32EnumAttrCase<"Comm", 1, "comm">,
  I32EnumAttrCase<"Side", 2, "side">
]>;
def Dfa_StreamAttr : Dfa_EnumAttr<Dfa_Stream, "stream"> {
  let assemblyFormat = "$value";
}

/// Tables that an element kernel is launched over.
def Dfa_Table : Dfa_Enum<"Table", "launch table", [
  I32EnumAttrCase<"Chunks", 0, "chunks">,
  I32EnumAttrCase<"Atoms", 1, "atoms">,
  I32EnumAttrCase<"Full", 2, "full">
]>;
def Dfa_TableAttr : Dfa_EnumAttr<Dfa_Table, "table"> {
  let assemblyFormat = "$value";
}

/// Entry points of a program.
def Dfa_Entry : Dfa_Enum<"Entry", "entry point of a program", [
  I32EnumAttrCase<"Fill", 0, "fill">,
  I32EnumAttrCase<"Reduce", 1, "reduce">,
  I32EnumAttrCase<"Finish", 2, "finish">,
  I32EnumAttrCase<"ZeroGrad", 3, "zero_grad">
]>;
def Dfa_EntryAttr : Dfa_EnumAttr<Dfa_Entry, "entry"> {
  let assemblyFormat = "$value";
}

/// Collectives of a program.
def Dfa_Collective : Dfa_Enum<"Collective", "kind of collective", [
  I32EnumAttrCase<"ReduceScatter", 0, "reduce_scatter">,
  I32EnumAttrCase<"AllReduce", 1, "all_reduce">,
  I32EnumAttrCase<"AllGather", 2, "all_gather">,
  I32EnumAttrCase<"Broadcast", 3, "broadcast">
]>;
def Dfa_CollectiveAttr : Dfa_EnumAttr<Dfa_Collective, "collective_kind"> {
  let assemblyFormat = "$value";
}

/// How a control kernel is launched.
def Dfa_ControlMode : Dfa_Enum<"ControlMode", "mode of a control kernel", [
  I32EnumAttrCase<"Whole", 0, "whole">,
  I32EnumAttrCase<"Local", 1, "local">,
  I32EnumAttrCase<"Gathered", 2, "gathered">
]>;
def Dfa_ControlModeAttr : Dfa_EnumAttr<Dfa_ControlMode, "control_mode"> {
  let assemblyFormat = "$value";
}

#endif // DFA_IR_DFAENUMS_TD
