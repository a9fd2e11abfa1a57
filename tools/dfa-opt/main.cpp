// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-opt: mlir-opt with our dialect, passes and pipelines. Registration only.

#include "dfa/Conversion/Passes.h"
#include "dfa/IR/Dfa.h"
#include "dfa/Pipelines/Frontend.h"
#include "dfa/Support/OptMain.h"
#include "dfa/Target/Passes.h"
#include "dfa/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

/// What people type most; every pass has its entry further down in --help.
static constexpr const char ourOptions[] = R"(
DFA OPTIONS:

  --dfa-to-kernels          levels A and B to fused kernels and the program
  --dfa-to-cpu              all the way to the LLVM dialect for the host
    ="vector-width=N"         elements of a vector (default 16)
  --dfa-to-cuda             all the way to a GPU binary
    ="chip=sm_90"             GPU to compile for
    ="format=ptx|cubin|fatbin"
    ="ptxas=PATH"             assembler; also DFA_PTXAS in the environment
    ="vector-width=N block=N unroll=N max-registers=N"   shape of the kernels
  --dfa-verify-capturable   proves the program graph-capturable, or points at
                            the op that is not
  --dfa-report              what the compiled step costs, on stdout; the module
                            is then printed only with -o
    ="format=text|json bandwidth=GB/s link=GB/s replicate=N shard=N"
  --remarks-filter=dfa      what was fused, and what was declined and why
  --mlir-print-ir-after-all the module after every pass
)";

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::dfa::DfaDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::dfa::registerDfaPipelines();
  mlir::dfa::registerDfaReportPass();
  mlir::dfa::registerDfaTransformsPasses();
  mlir::dfa::registerDfaConversionPasses();
  mlir::dfa::registerDfaTargetPasses();
  mlir::dfa::registerDfaBackendPipelines();
  mlir::dfa::registerDfaBackendTranslations(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::dfa::runOptMain(argc, argv, "dfa: compiles optimizer steps\n",
                               registry, ourOptions);
}
