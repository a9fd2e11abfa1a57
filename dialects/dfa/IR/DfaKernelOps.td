// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level C: kernels. What they load and store besides array elements is
// visible as ops of their own.

#ifndef DFA_IR_DFAKERNELOPS_TD
#define DFA_IR_DFAKERNELOPS_TD

include "dfa/IR/DfaBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Dfa_KernelOp : Dfa_Op<"kernel", [
    Symbol, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<Dfa_KernelOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "elementwise work and reductions, one pass over the elements";
  let description = [{
    Runs over all elements of a class. `uniform` runs once a chunk: it loads
    scalars and yields a predicate (false: the chunk is left alone), then the
    scalars that `body` needs. `body` runs once an element: its arguments are
    those scalars, then one element for each array that is read; it yields one
    element for each array that is written, then one f64 for each accumulator.

    Every array is read once and written once. With accumulators the kernel
    runs over atoms, otherwise over chunks (`runtime/include/dfa-rt/abi.h`).

    Example:

    ```mlir
    dfa.kernel @norm on @l::@w arrays [#dfa.array<"grad", bf16, read>]
        accumulators [sum] uniform {
      %true = arith.constant true
      dfa.yield %true : i1
    } body {
    ^bb0(%g: bf16):
      %w = arith.extf %g : bf16 to f64
      %s = arith.mulf %w, %w : f64
      dfa.yield %s : f64
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, SymbolRefAttr:$cls,
                       TypedArrayAttrBase<Dfa_KernelArrayAttr, "arrays">:$arrays,
                       TypedArrayAttrBase<Dfa_CombineAttr,
                                          "accumulators">:$accumulators);
  let regions = (region SizedRegion<1>:$uniform, SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `on` $cls `arrays` $arrays `accumulators`
    custom<Combines>($accumulators) attr-dict-with-keyword
    `uniform` $uniform `body` $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Dfa_ControlKernelOp : Dfa_Op<"control_kernel", [
    Symbol, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<Dfa_KernelOpInterface>]> {
  let summary = "combines accumulators, then scalar work, once";
  let description = [{
    The arguments of the body are the accumulators, combined over all atoms
    (and ranks). `group_accumulators` are combined for each group besides, and
    kept for segment kernels (`dfa.load_group_stat`).

    Example:

    ```mlir
    dfa.control_kernel @finish accumulators [sum] {
    ^bb0(%sum: f64):
      %norm = math.sqrt %sum : f64
      dfa.store_control "norm", %norm : f64
      dfa.yield
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypedArrayAttrBase<Dfa_CombineAttr,
                                          "accumulators">:$accumulators,
                       TypedArrayAttrBase<Dfa_CombineAttr,
                         "accumulators">:$group_accumulators);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `accumulators` custom<Combines>($accumulators)
    custom<GroupCombines>($group_accumulators)
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Dfa_SegmentKernelOp : Dfa_Op<"segment_kernel", [
    Symbol, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<Dfa_KernelOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "scalar work, once a parameter";
  let description = [{
    The arguments of the body are the accumulators, combined over the
    parameter's own atoms.

    Example:

    ```mlir
    dfa.segment_kernel @rows on @l::@w accumulators [] {
      %t = dfa.load_segment step : i64
      %lr = dfa.load_hyper "lr" at 0 : f64
      %a = arith.truncf %lr : f64 to f32
      dfa.store_derived 0, %a : f32
      dfa.yield
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, SymbolRefAttr:$cls,
                       TypedArrayAttrBase<Dfa_CombineAttr,
                                          "accumulators">:$accumulators);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `on` $cls `accumulators` custom<Combines>($accumulators)
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loads and stores of tables
//===----------------------------------------------------------------------===//

def Dfa_ControlMemory : Resource<"::mlir::dfa::ControlMemory">;

class Dfa_LoadOp<string mnemonic>
    : Dfa_Op<mnemonic, [MemoryEffects<[MemRead<Dfa_ControlMemory>]>]> {
  let results = (outs AnyType:$result);
}

class Dfa_StoreOp<string mnemonic>
    : Dfa_Op<mnemonic, [MemoryEffects<[MemWrite<Dfa_ControlMemory>]>]>;

def Dfa_LoadControlOp : Dfa_LoadOp<"load_control"> {
  let summary = "loads a field of the control block";
  let description = [{
    Example:

    ```mlir
    dfa.control_kernel @k accumulators [] {
      %s = dfa.load_control "scale" : f32
      dfa.yield
    }
    ```
  }];
  let arguments = (ins StrAttr:$field);
  let assemblyFormat = "$field attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dfa_StoreControlOp : Dfa_StoreOp<"store_control"> {
  let summary = "stores a field of the control block";
  let description = [{
    Example:

    ```mlir
    dfa.control_kernel @k accumulators [] {
      %n = arith.constant 1.0 : f64
      dfa.store_control "norm", %n : f64
      dfa.yield
    }
    ```
  }];
  let arguments = (ins StrAttr:$field, AnyType:$value);
  let assemblyFormat = "$field `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Dfa_LoadScratchOp : Dfa_LoadOp<"load_scratch"> {
  let summary = "loads a scalar that a control kernel left for later kernels";
  let description = [{
    A slot is 8 bytes; its type is the one it was stored with.

    Example:

    ```mlir
    dfa.control_kernel @k accumulators [] {
      %f = dfa.load_scratch 0 : f32
      dfa.yield
    }
    ```
  }];
  let arguments = (ins I64Attr:$slot);
  let assemblyFormat = "$slot attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dfa_StoreScratchOp : Dfa_StoreOp<"store_scratch"> {
  let summary = "leaves a scalar for later kernels";
  let description = [{
    Example:

    ```mlir
    dfa.control_kernel @k accumulators [] {
      %f = arith.constant 1.0 : f32
      dfa.store_scratch 0, %f : f32
      dfa.yield
    }
    ```
  }];
  let arguments = (ins I64Attr:$slot, AnyType:$value);
  let assemblyFormat = "$slot `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Dfa_LoadHyperOp : Dfa_LoadOp<"load_hyper"> {
  let summary = "loads a hyper-parameter of the segment's group";
  let description = [{
    `at` is the column of the group table.

    Example:

    ```mlir
    dfa.segment_kernel @k on @l::@w accumulators [] {
      %lr = dfa.load_hyper "lr" at 0 : f64
      dfa.yield
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$column);
  let assemblyFormat = "$name `at` $column attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dfa_LoadSegmentOp : Dfa_LoadOp<"load_segment"> {
  let summary = "loads a field of the segment's state";
  let description = [{
    `step` is i64; `active` and `generation` are i32.

    Example:

    ```mlir
    dfa.segment_kernel @k on @l::@w accumulators [] {
      %t = dfa.load_segment step : i64
      dfa.yield
    }
    ```
  }];
  let arguments = (ins Dfa_SegmentFieldAttr:$field);
  let assemblyFormat =
    "custom<EnumWord>($field) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dfa_StoreSegmentOp : Dfa_StoreOp<"store_segment"> {
  let summary = "stores a field of the segment's state";
  let description = [{
    Example:

    ```mlir
    dfa.segment_kernel @k on @l::@w accumulators [] {
      %t = dfa.load_segment step : i64
      dfa.store_segment step, %t : i64
      dfa.yield
    }
    ```
  }];
  let arguments = (ins Dfa_SegmentFieldAttr:$field, AnyType:$value);
  let assemblyFormat =
    "custom<EnumWord>($field) `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Dfa_LoadDerivedOp : Dfa_LoadOp<"load_derived"> {
  let summary = "loads a derived value of the segment";
  let description = [{
    Example:

    ```mlir
    dfa.segment_kernel @k on @l::@w accumulators [] {
      %a = dfa.load_derived 0 : f32
      dfa.yield
    }
    ```
  }];
  let arguments = (ins I64Attr:$slot);
  let assemblyFormat = "$slot attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dfa_StoreDerivedOp : Dfa_StoreOp<"store_derived"> {
  let summary = "stores a derived value of the segment";
  let description = [{
    Example:

    ```mlir
    dfa.segment_kernel @k on @l::@w accumulators [] {
      %a = arith.constant 1.0 : f32
      dfa.store_derived 0, %a : f32
      dfa.yield
    }
    ```
  }];
  let arguments = (ins I64Attr:$slot, AnyType:$value);
  let assemblyFormat = "$slot `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Dfa_LoadGroupStatOp : Dfa_LoadOp<"load_group_stat"> {
  let summary = "loads a combined accumulator of the segment's group";
  let description = [{
    Example:

    ```mlir
    dfa.segment_kernel @k on @l::@w accumulators [] {
      %s = dfa.load_group_stat 0 : f64
      dfa.yield
    }
    ```
  }];
  let arguments = (ins I64Attr:$slot);
  let assemblyFormat = "$slot attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // DFA_IR_DFAKERNELOPS_TD
