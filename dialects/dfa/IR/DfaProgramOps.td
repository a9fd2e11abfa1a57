// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level C: the program, a list of commands. Each op has its counterpart in
// runtime/include/dfa-rt/program.def, or is one that cannot be recorded.

#ifndef DFA_IR_DFAPROGRAMOPS_TD
#define DFA_IR_DFAPROGRAMOPS_TD

include "dfa/IR/DfaBase.td"
include "mlir/IR/SymbolInterfaces.td"

/// A number of things, or the index of one.
def Dfa_Count : ConfinedAttr<I64Attr, [IntNonNegative]>;

def Dfa_ProgramOp : Dfa_Op<"program", [
    Symbol, NoTerminator, SingleBlock,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "what the runtime executes for one optimizer";
  let description = [{
    The entry points, and the sizes of the tables that they share: columns of
    the group table (`hyper`), accumulator rows an atom, statistics a group.
    `classes` lists, for each class, its arrays in the order of base addresses
    and the number of derived values a segment.

    Example:

    ```mlir
    dfa.program @step on @l hyper ["lr"] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
        parts [full, full] derived 1
      dfa.entry finish {
        dfa.launch_segments @rows on @w acc 0
        dfa.launch_elements @update on @w over chunks acc 0
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$layout,
                       StrArrayAttr:$hyper, Dfa_Count:$accumulators,
                       Dfa_Count:$group_stats);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `on` $layout `hyper` $hyper `accumulators` $accumulators
    `group_stats` $group_stats attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Dfa_ProgramClassOp : Dfa_Op<"program_class", [HasParent<"ProgramOp">]> {
  let summary = "the arrays of a class, in the order of base addresses";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
        parts [full, full] derived 1
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$cls, StrArrayAttr:$arrays,
                       TypeArrayAttr:$types,
                       TypedArrayAttrBase<Dfa_PartAttr, "parts">:$parts,
                       Dfa_Count:$derived);
  let assemblyFormat = [{
    $cls `arrays` $arrays `types` $types `parts` custom<Parts>($parts)
    `derived` $derived attr-dict
  }];
  let hasVerifier = 1;
}

def Dfa_EntryOp : Dfa_Op<"entry", [
    HasParent<"ProgramOp">, NoTerminator, SingleBlock]> {
  let summary = "an entry point: commands in order";
  let description = [{
    `fill` puts the gradients of a full bucket into place, `reduce` reduces a
    full bucket, `finish` ends the step, `zero_grad` forgets gradients. Each is
    recordable by itself.

    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.upload "groups"
      }
    }
    ```
  }];
  let arguments = (ins Dfa_EntryAttr:$kind);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<EnumWord>($kind) attr-dict-with-keyword $body";
}

class Dfa_CommandOp<string mnemonic, list<Trait> traits = []>
    : Dfa_Op<mnemonic, !listconcat(
        [DeclareOpInterfaceMethods<Dfa_RecordableOpInterface>], traits)>;

def Dfa_LaunchElementsOp : Dfa_CommandOp<"launch_elements"> {
  let summary = "runs an element kernel over a table of a class";
  let description = [{
    `acc` is the first accumulator row. Host scalars in `args` are copied into
    the launch: such a command cannot be recorded, since they may change.

    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
        parts [full, full] derived 1
      dfa.entry finish {
        dfa.launch_elements @update on @w over chunks acc 0
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, FlatSymbolRefAttr:$cls,
                       Dfa_TableAttr:$table, Dfa_Count:$acc,
                       Variadic<AnyType>:$args);
  let assemblyFormat = [{
    $kernel `on` $cls `over` custom<EnumWord>($table) `acc` $acc
    (`args` `(` $args^ `:` type($args) `)`)? attr-dict
  }];
}

def Dfa_LaunchControlOp : Dfa_CommandOp<"launch_control"> {
  let summary = "runs a control kernel";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 1 group_stats 0 {
      dfa.entry finish {
        dfa.launch_control @finish mode whole acc 0
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Dfa_ControlModeAttr:$mode,
                       Dfa_Count:$acc);
  let assemblyFormat = [{
    $kernel `mode` custom<EnumWord>($mode) `acc` $acc attr-dict
  }];
}

def Dfa_LaunchSegmentsOp : Dfa_CommandOp<"launch_segments"> {
  let summary = "runs a segment kernel over all segments of a class";
  let description = [{
    Of several ranks: `mode local` only combines a rank's own accumulators of
    each segment into its statistics; `mode gathered` combines those of all
    ranks, in rank order, and runs the kernel.

    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
        parts [full, full] derived 1
      dfa.entry finish {
        dfa.launch_segments @rows on @w acc 0
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, FlatSymbolRefAttr:$cls,
                       Dfa_Count:$acc,
                       DefaultValuedAttr<
                         Dfa_ControlModeAttr,
                         "::mlir::dfa::ControlMode::Whole">:$mode,
                       DefaultValuedAttr<
                         Dfa_StreamAttr,
                         "::mlir::dfa::Stream::Compute">:$stream);
  let assemblyFormat = [{
    $kernel `on` $cls `acc` $acc (`mode` custom<EnumWord>($mode)^)?
    (`stream` custom<EnumWord>($stream)^)? attr-dict
  }];
}

def Dfa_CollectiveOp : Dfa_CommandOp<"collective"> {
  let summary = "one collective over one mesh axis";
  let description = [{
    `source` and `target` name arrays of the class (in place where equal),
    `presence`, a word a parameter that says whether any rank has its gradient,
    `stats`, the combined accumulators of its segments, or, without a class,
    `sums`, the combined accumulators of each rank, the last `group_accs` of
    which there are for each group.

    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
        parts [full, full] derived 1
      dfa.entry finish {
        dfa.collective all_gather over "shard" class @w "param" to "param"
          reduce sum order any acc 0 accs 0
      }
    }
    ```
  }];
  let arguments = (ins Dfa_CollectiveAttr:$kind, StrAttr:$axis,
                       OptionalAttr<FlatSymbolRefAttr>:$cls,
                       StrAttr:$source, StrAttr:$target,
                       Dfa_ReductionAttr:$reduction, Dfa_OrderAttr:$order,
                       Dfa_Count:$acc, Dfa_Count:$accs,
                       DefaultValuedAttr<Dfa_Count, "0">:$group_accs);
  let assemblyFormat = [{
    custom<EnumWord>($kind) `over` $axis (`class` $cls^)? $source `to`
    $target `reduce` custom<EnumWord>($reduction) `order`
    custom<EnumWord>($order) `acc` $acc `accs` $accs attr-dict
  }];
  let hasVerifier = 1;
}

def Dfa_ForEachBucketOp : Dfa_CommandOp<"for_each_bucket", [
    NoTerminator, SingleBlock]> {
  let summary = "repeats commands for each bucket of a class, in plan order";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
        parts [full, full] derived 1
      dfa.entry finish {
        dfa.for_each_bucket @w {
          dfa.launch_elements @update on @w over chunks acc 0
          dfa.record "updated" on compute
          dfa.wait "updated" on comm
        }
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$cls);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$cls attr-dict-with-keyword $body";
}

def Dfa_RecordOp : Dfa_CommandOp<"record"> {
  let summary = "records an event on a stream";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.record "updated" on compute
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$event, Dfa_StreamAttr:$stream);
  let assemblyFormat = "$event `on` custom<EnumWord>($stream) attr-dict";
}

def Dfa_WaitOp : Dfa_CommandOp<"wait"> {
  let summary = "makes a stream wait for an event";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.record "updated" on compute
        dfa.wait "updated" on comm
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$event, Dfa_StreamAttr:$stream);
  let assemblyFormat = "$event `on` custom<EnumWord>($stream) attr-dict";
}

def Dfa_MemsetOp : Dfa_CommandOp<"memset"> {
  let summary = "writes zeros to an array of a class";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.program_class @w arrays ["grad", "param"] types [f32, f32]
        parts [full, full] derived 1
      dfa.entry zero_grad {
        dfa.memset @w "grad"
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$cls, StrAttr:$array);
  let assemblyFormat = "$cls $array attr-dict";
}

def Dfa_UploadOp : Dfa_CommandOp<"upload"> {
  let summary = "copies a host-written table to the device if it changed";
  let description = [{
    Tables are segments, groups and chunks.

    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.upload "groups"
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$table);
  let assemblyFormat = "$table attr-dict";
  let hasVerifier = 1;
}

def Dfa_ReadBackOp : Dfa_CommandOp<"read_back"> {
  let summary = "copies the control block to its host mirror, without waiting";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.record "decided" on compute
        dfa.wait "decided" on side
        dfa.read_back on side
      }
    }
    ```
  }];
  let arguments = (ins DefaultValuedAttr<
      Dfa_StreamAttr, "::mlir::dfa::Stream::Compute">:$stream);
  let assemblyFormat = "(`on` custom<EnumWord>($stream)^)? attr-dict";
}

def Dfa_BarrierOp : Dfa_CommandOp<"barrier"> {
  let summary = "waits on the device for every rank of an axis";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.barrier over "shard"
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$axis);
  let assemblyFormat = "`over` $axis attr-dict";
}

//===----------------------------------------------------------------------===//
// Host work that no graph can record
//===----------------------------------------------------------------------===//

def Dfa_FetchOp : Dfa_CommandOp<"fetch"> {
  let summary = "waits for the device and reads a control field on the host";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        %s = dfa.fetch "scale" : f32
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$field);
  let results = (outs Dfa_Scalar:$result);
  let assemblyFormat = "$field attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dfa_LoadModuleOp : Dfa_CommandOp<"load_module"> {
  let summary = "loads the kernels' binary";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.load_module "kernels"
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$image);
  let assemblyFormat = "$image attr-dict";
}

def Dfa_CreateCommunicatorOp : Dfa_CommandOp<"create_communicator"> {
  let summary = "creates the communicator of a mesh axis";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        dfa.create_communicator over "shard"
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$axis);
  let assemblyFormat = "`over` $axis attr-dict";
}

def Dfa_RankOp : Dfa_CommandOp<"rank"> {
  let summary = "this rank's index on an axis, on the host";
  let description = [{
    Example:

    ```mlir
    dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
      dfa.entry finish {
        %r = dfa.rank over "shard" : index
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "`over` $axis attr-dict `:` type($result)";
}

#endif // DFA_IR_DFAPROGRAMOPS_TD
