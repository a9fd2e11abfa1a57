// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes from level C to host loops and GPU kernels. Each has a folder or file
// of its own name in lib/Conversion and a test in test/Conversion.

#ifndef DFA_CONVERSION_PASSES_TD
#define DFA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def DfaConvertKernelsToLoops
    : Pass<"dfa-convert-kernels-to-loops", "::mlir::ModuleOp"> {
  let summary = "Makes a host function of every kernel";
  let description = [{
    Every `dfa.kernel`, `dfa.control_kernel` and `dfa.segment_kernel` becomes
    a function of the same name, with the signature of
    `runtime/include/dfa-rt/abi.h`: a loop over chunks, in it a loop over
    vectors and one over the elements that remain. Vector accesses are aligned
    as their elements only. Reductions keep one accumulator a column in memory
    and combine them in the fixed tree of `abi.h`, so their bits depend on no
    width.

    Preconditions: level C; if the module has a `dfa.program`, it has one, and
    its class lists the kernel's arrays. Without a program the arrays lie in
    the kernel's own order. Postcondition: no kernel op is left; the program
    is untouched.

    Limits: ops on 16-bit floats other than conversions and comparisons, and
    conversions from f64 to them, are errors, since their rounding differs
    between targets.

    Before:

    ```mlir
    dfa.kernel @scale on @l::@w arrays [#dfa.array<"param", f32, readwrite>]
        accumulators [] uniform {
      %true = arith.constant true
      %f = dfa.load_control "factor" : f32
      dfa.yield %true, %f : i1, f32
    } body {
    ^bb0(%f: f32, %p: f32):
      %q = arith.mulf %p, %f : f32
      dfa.yield %q : f32
    }
    ```

    After (`vector-width=16`, shortened):

    ```mlir
    func.func @scale(%control: !llvm.ptr, %segments: !llvm.ptr, ...) {
      scf.for %chunk = %chunk_begin to %chunk_end step %c1 : i64 {
        ...
        %f = llvm.load %address {alignment = 4 : i64} : !llvm.ptr -> f32
        scf.if %true {
          %wide = vector.broadcast %f : f32 to vector<16xf32>
          scf.for %i = %c0 to %main step %c16 : i64 {
            %p = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
            %q = arith.mulf %p, %wide : vector<16xf32>
            llvm.store %q, %a {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
          }
          scf.for %i = %main to %length step %c1 : i64 { ... }
        }
      }
      return
    }
    ```
  }];
  let options = [
    Option<"vectorWidth", "vector-width", "unsigned", "16",
           "Elements of a vector: a power of two up to 32; 1 for scalar loops">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def DfaConvertKernelsToGPU
    : Pass<"dfa-convert-kernels-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Makes a GPU kernel of every kernel";
  let description = [{
    Every kernel becomes a function of the same name in `gpu.module
    @dfa_kernels`, with the signature and the grid of
    `runtime/include/dfa-rt/abi.h`, and plain pointers.

    - Element kernels: one block a part of a chunk, one vector a thread, then
      the block ends. Parts that are not whole, and segments that are not
      aligned, take a scalar body.
    - With accumulators: one warp an atom; lanes hold runs of adjacent columns
      in registers, with `unroll` vector loads in flight.
    - Control kernels: one block, a thread a column of the partials.
    - Segment kernels: a thread a segment, or a warp where its atoms are
      combined.

    Reductions follow the fixed tree of `abi.h`: the bits are those of the
    host's loops. The kernels need devices with warps of 32.

    Preconditions and limits: those of `dfa-convert-kernels-to-loops`.

    Before: as there. After (shortened):

    ```mlir
    gpu.module @dfa_kernels {
      gpu.func @scale(%control: !llvm.ptr {llvm.noalias}, ...) kernel
          attributes {nvvm.maxntid = array<i32: 128>} {
        %thread = gpu.thread_id x
        ...
        scf.if %whole_and_aligned {
          %p = llvm.load %a {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
          %q = arith.mulf %p, %wide : vector<4xf32>
          llvm.store %q, %a {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
        } else {
          scf.for %i = %first to %end step %c128 : i64 { ... }
        }
        gpu.return
      }
    }
    ```
  }];
  let options = [
    Option<"vectorWidth", "vector-width", "unsigned", "4",
           "Elements a thread handles in element kernels: 1, 2, 4 or 8">,
    Option<"block", "block", "unsigned", "128",
           "Threads of a block in element kernels: a multiple of 32">,
    Option<"unroll", "unroll", "unsigned", "4",
           "Vector loads in flight in a thread that reduces">,
    Option<"maxRegisters", "max-registers", "unsigned", "0",
           "Most registers of a thread; 0 lets the assembler choose">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def DfaExpandScalarOps : Pass<"dfa-expand-scalar-ops"> {
  let summary = "Writes scalar ops as exact instructions, alike on all targets";
  let description = [{
    Square root, fma, absolute value, copysign and the roundings become LLVM
    intrinsics, which every back end lowers to an exact instruction. Minima and
    maxima of floats become compares and selects. exp, log, tanh, pow, erf and
    their like on f32 become upstream's polynomials, so hosts and devices give
    the same bits and no mathematics library is called.

    Postcondition: no `math` op is left. Limits: a `math` op without such a
    form (exp of f64, for one) is an error at that op.

    Before:

    ```mlir
    %r = math.rsqrt %x : f32
    ```

    After:

    ```mlir
    %one = arith.constant 1.0 : f32
    %s = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
    %r = arith.divf %one, %s : f32
    ```
  }];
  let options = [
    Option<"expandBF16", "expand-bf16", "bool", "false",
           "Write conversions from and to bf16 as integer ops: x86's own "
           "instruction flushes subnormals">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"
  ];
}

def DfaVerifyLowered : Pass<"dfa-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "Checks what a phase below level C leaves";
  let description = [{
    Closes the phases below level C. After `phase=loops`: no op of level A, B
    or C is left outside of the layout and the program, and every kernel that
    the program launches is a function with the arguments of
    `runtime/include/dfa-rt/abi.h`. After `phase=llvm` functions are of the LLVM
    dialect too, and so is all that is in them (on GPUs also NVVM); casts
    between types of two levels are gone.

    Precondition: ops that verify by themselves. Postcondition: the module can
    be translated. Limits: types of arguments are counted, not compared; GPU
    modules that are binaries already are not looked into.

    Changes nothing.
  }];
  let options = [
    Option<"phase", "phase", "std::string", "\"llvm\"",
           "What has run: loops or llvm">
  ];
}

#endif // DFA_CONVERSION_PASSES_TD
