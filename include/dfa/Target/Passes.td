// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that produce machine code.

#ifndef DFA_TARGET_PASSES_TD
#define DFA_TARGET_PASSES_TD

include "mlir/Pass/PassBase.td"

def DfaSerializeKernels : Pass<"dfa-serialize-kernels", "::mlir::ModuleOp"> {
  let summary = "Assembles GPU modules in the NVVM dialect";
  let description = [{
    Each `gpu.module` becomes a `gpu.binary` of its name, which holds PTX text,
    machine code of one chip (cubin), or machine code with its PTX (fatbin).
    Machine code is made by ptxas: the one of the option `ptxas`, else the one
    of `DFA_PTXAS`; else the first found under `CUDA_HOME`, `CUDA_PATH`, in
    `PATH`, in `/usr/local/cuda`, and in the Python environment.

    Precondition: only LLVM and NVVM ops in the module. Limits: an unknown
    chip or format, or an assembler that fails, is an error; no other chip or
    assembler is tried instead.

    The registers and spilled bytes of each kernel, as ptxas reports them, are
    properties of the object.

    Before:

    ```mlir
    gpu.module @dfa_kernels {
      llvm.func @scale(%control: !llvm.ptr, ...) attributes {nvvm.kernel} {
        ...
      }
    }
    ```

    After:

    ```mlir
    gpu.binary @dfa_kernels
      [#gpu.object<#nvvm.target<chip = "sm_90">, bin = "...">]
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_90\"",
           "GPU to compile for, such as sm_90">,
    Option<"format", "format", "std::string", "\"cubin\"",
           "ptx, cubin or fatbin">,
    Option<"ptxas", "ptxas", "std::string", "\"\"",
           "Assembler to use instead of the one found">
  ];
  let dependentDialects = [
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect"
  ];
}

#endif // DFA_TARGET_PASSES_TD
