// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of the tests.

#include "Kernels.h"
#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace dfa_test;

const char *const dfa_test::adamwText = R"mlir(
dfa.kernel @adamw on @l::@w arrays [
    #dfa.array<"grad", bf16, read>, #dfa.array<"master", f32, readwrite>,
    #dfa.array<"exp_avg", f32, readwrite>,
    #dfa.array<"exp_avg_sq", f32, readwrite>, #dfa.array<"param", bf16, write>]
    accumulators [] uniform {
  %inf = dfa.load_control "found_inf" : i32
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %fine = arith.cmpi eq, %inf, %zero : i32
  %has = arith.cmpi ne, %active, %zero : i32
  %go = arith.andi %fine, %has : i1
  %f = dfa.load_control "factor" : f32
  %c1 = dfa.load_derived 0 : f32
  %c2 = dfa.load_derived 1 : f32
  %rate = dfa.load_derived 2 : f32
  %root = dfa.load_derived 3 : f32
  %eps = dfa.load_derived 4 : f32
  %decay = dfa.load_derived 5 : f32
  dfa.yield %go, %f, %c1, %c2, %rate, %root, %eps, %decay
    : i1, f32, f32, f32, f32, f32, f32, f32
} body {
^bb0(%f: f32, %c1: f32, %c2: f32, %rate: f32, %root: f32, %eps: f32,
     %decay: f32, %raw: bf16, %p: f32, %m: f32, %v: f32):
  %wide = arith.extf %raw : bf16 to f32
  %g = arith.mulf %wide, %f : f32
  %d = arith.subf %g, %m : f32
  %m1 = math.fma %c1, %d, %m : f32
  %nv = arith.negf %v : f32
  %e = math.fma %g, %g, %nv : f32
  %v1 = math.fma %c2, %e, %v : f32
  %s = math.sqrt %v1 : f32
  %den = math.fma %s, %root, %eps : f32
  %ratio = arith.divf %m1, %den : f32
  %wd = arith.mulf %decay, %p : f32
  %change = math.fma %rate, %ratio, %wd : f32
  %p1 = arith.subf %p, %change : f32
  %o = arith.truncf %p1 : f32 to bf16
  dfa.yield %p1, %m1, %v1, %o : f32, f32, f32, bf16
}
)mlir";

std::string dfa_test::normText(const std::string &type) {
  return "dfa.kernel @norm on @l::@w arrays [#dfa.array<\"grad\", " + type +
         R"mlir(, read>] accumulators [sum, max] uniform {
  %true = arith.constant true
  %active = dfa.load_segment active : i32
  %zero = arith.constant 0 : i32
  %go = arith.cmpi ne, %active, %zero : i32
  dfa.yield %go : i1
} body {
^bb0(%g: )mlir" +
         type + R"mlir():
  %x = arith.extf %g : )mlir" +
         type + R"mlir( to f64
  %s = arith.mulf %x, %x : f64
  %a = math.absf %x : f64
  dfa.yield %s, %a : f64, f64
}
)mlir";
}

const char *const dfa_test::halveText = R"mlir(
dfa.kernel @halve on @l::@w arrays [#dfa.array<"param", f32, readwrite>]
    accumulators [sum] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%p: f32):
  %half = arith.constant 0.5 : f32
  %q = arith.mulf %p, %half : f32
  %w = arith.extf %p : f32 to f64
  dfa.yield %q, %w : f32, f64
}
)mlir";

const char *const dfa_test::controlText = R"mlir(
dfa.control_kernel @finish accumulators [sum, max] {
^bb0(%sum: f64, %max: f64):
  %n = math.sqrt %sum : f64
  dfa.store_control "norm", %n : f64
  dfa.store_scratch 3, %sum : f64
  dfa.store_scratch 4, %max : f64
  %t = dfa.load_control "step" : i64
  %one = arith.constant 1 : i64
  %u = arith.addi %t, %one : i64
  dfa.store_control "step", %u : i64
  dfa.yield
}
)mlir";

const char *const dfa_test::groupText = R"mlir(
dfa.control_kernel @groups accumulators [sum] groups [sum, max] {
^bb0(%sum: f64):
  dfa.store_scratch 0, %sum : f64
  dfa.yield
}
)mlir";

const char *const dfa_test::rowsText = R"mlir(
dfa.segment_kernel @rows on @l::@w accumulators [] {
  %t = dfa.load_segment step : i64
  %one = arith.constant 1 : i64
  %u = arith.addi %t, %one : i64
  dfa.store_segment step, %u : i64
  %beta = dfa.load_hyper "beta" at 1 : f64
  %p = dfa.powi %beta, %u : f64
  %f = arith.truncf %p : f64 to f32
  dfa.store_derived 0, %f : f32
  %lr = dfa.load_hyper "lr" at 0 : f64
  %g = arith.truncf %lr : f64 to f32
  dfa.store_derived 2, %g : f32
  dfa.yield
}
)mlir";

const char *const dfa_test::segmentSumText = R"mlir(
dfa.segment_kernel @sums on @l::@w accumulators [sum, max] {
^bb0(%sum: f64, %max: f64):
  %f = arith.truncf %sum : f64 to f32
  dfa.store_derived 0, %f : f32
  %g = arith.truncf %max : f64 to f32
  dfa.store_derived 1, %g : f32
  dfa.yield
}
)mlir";

Parsed::Parsed(const std::string &text)
    : context(mlir::MLIRContext::Threading::DISABLED) {
  context.loadDialect<mlir::dfa::DfaDialect, mlir::arith::ArithDialect,
                      mlir::func::FuncDialect, mlir::math::MathDialect>();
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diag) {
    diagnostics += diag.str() + "\n";
    return mlir::success();
  });
  module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
}

std::unique_ptr<mlir::dfa::HostKernels>
dfa_test::compile(const std::string &text, unsigned width) {
  Parsed parsed(text);
  if (!parsed.get()) {
    ADD_FAILURE() << parsed.diagnostics;
    return nullptr;
  }
  mlir::dfa::HostOptions options;
  options.vectorWidth = width;
  auto kernels = mlir::dfa::compileForHost(parsed.get(), options);
  if (failed(kernels)) {
    ADD_FAILURE() << parsed.diagnostics;
    return nullptr;
  }
  return std::move(*kernels);
}
