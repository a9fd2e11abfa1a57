// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-lsp-server: diagnostics, hover and go-to-definition in editors.
// Registration only.

#include "dfa/IR/Dfa.h"
#include "dfa/Support/Version.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::dfa::DfaDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect>();
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "dfa " << DFA_VERSION_STRING << " (LLVM " << LLVM_VERSION_STRING
       << ")\n";
  });
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
