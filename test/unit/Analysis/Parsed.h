// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module from text, and the diagnostics about it.

#ifndef DFA_TEST_UNIT_ANALYSIS_PARSED_H
#define DFA_TEST_UNIT_ANALYSIS_PARSED_H

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include <string>

namespace dfa_test {

class Parsed {
public:
  explicit Parsed(llvm::StringRef text)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          messages += diagnostic.str() + "\n";
        }) {
    context.loadDialect<mlir::dfa::DfaDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }

  mlir::ModuleOp get() { return *module; }
  mlir::dfa::LayoutOp layout() {
    return *module->getOps<mlir::dfa::LayoutOp>().begin();
  }

  std::string messages;

private:
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace dfa_test

#endif // DFA_TEST_UNIT_ANALYSIS_PARSED_H
