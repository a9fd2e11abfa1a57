// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// compileToCuda: images of each format, and diagnostics instead of exits.

#include "dfa/Target/Cuda.h"
#include "../Conversion/Kernels.h"
#include "dfa/Target/Toolchain.h"
#include "gtest/gtest.h"

using namespace dfa_test;
using namespace mlir::dfa;

static bool hasPtxas() {
  llvm::Expected<std::string> ptxas = findPtxas("");
  if (ptxas)
    return true;
  llvm::consumeError(ptxas.takeError());
  return false;
}

static std::string allKernels() {
  return std::string(adamwText) + normText("bf16") + controlText + groupText +
         rowsText + segmentSumText;
}

TEST(CompileToCuda, PtxNeedsNoAssembler) {
  Parsed parsed(allKernels());
  CudaOptions options;
  options.format = CudaFormat::Ptx;
  options.ptxas = "/nowhere/ptxas";
  auto image = compileToCuda(parsed.get(), options);
  ASSERT_TRUE(succeeded(image)) << parsed.diagnostics;
  EXPECT_EQ(image->bytes, image->ptx);
  for (const char *text :
       {".entry adamw(", ".entry norm(", ".entry finish(", ".entry groups(",
        ".entry rows(", ".entry sums(", ".target sm_90", ".maxntid 128",
        ".maxntid 1024", "ld.global.v4", "sqrt.rn.f32", "div.rn.f32"})
    EXPECT_NE(image->ptx.find(text), std::string::npos) << text;
  EXPECT_EQ(image->ptx.find(".extern"), std::string::npos);
  EXPECT_EQ(image->ptx.find("call.uni"), std::string::npos);
}

TEST(CompileToCuda, CubinAndFatbin) {
  if (!hasPtxas())
    GTEST_SKIP() << "ptxas was not found";
  for (const char *chip : {"sm_80", "sm_90", "sm_100"}) {
    Parsed parsed(allKernels());
    CudaOptions options;
    options.chip = chip;
    auto cubin = compileToCuda(parsed.get(), options);
    ASSERT_TRUE(succeeded(cubin)) << parsed.diagnostics;
    EXPECT_EQ(cubin->bytes.substr(0, 4), "\x7f"
                                         "ELF");
    EXPECT_EQ(cubin->resources.size(), 6u);
    for (const KernelResources &kernel : cubin->resources) {
      EXPECT_GT(kernel.registers, 0u) << kernel.name;
      EXPECT_LE(kernel.registers, 64u) << kernel.name << " on " << chip;
      EXPECT_EQ(kernel.spillBytes, 0u) << kernel.name << " on " << chip;
    }
    options.format = CudaFormat::Fatbin;
    auto fatbin = compileToCuda(parsed.get(), options);
    ASSERT_TRUE(succeeded(fatbin)) << parsed.diagnostics;
    EXPECT_EQ(fatbin->bytes.substr(0, 4), "\x50\xed\x55\xba");
  }
}

TEST(CompileToCuda, UnknownChipIsADiagnostic) {
  Parsed parsed(adamwText);
  CudaOptions options;
  options.chip = "sm_999";
  EXPECT_TRUE(failed(compileToCuda(parsed.get(), options)));
  EXPECT_NE(parsed.diagnostics.find("but got 'sm_999' (assembler: "),
            std::string::npos)
      << parsed.diagnostics;
}

TEST(CompileToCuda, MissingAssemblerIsADiagnostic) {
  Parsed parsed(adamwText);
  CudaOptions options;
  options.ptxas = "/nowhere/ptxas";
  EXPECT_TRUE(failed(compileToCuda(parsed.get(), options)));
  EXPECT_NE(parsed.diagnostics.find("/nowhere/ptxas"), std::string::npos)
      << parsed.diagnostics;
}

TEST(CompileToCuda, BadShapesAreDiagnostics) {
  Parsed parsed(adamwText);
  CudaOptions options;
  options.format = CudaFormat::Ptx;
  options.vectorWidth = 3;
  EXPECT_TRUE(failed(compileToCuda(parsed.get(), options)));
  options.vectorWidth = 4;
  options.block = 100;
  EXPECT_TRUE(failed(compileToCuda(parsed.get(), options)));
  EXPECT_NE(parsed.diagnostics.find("but got 3"), std::string::npos);
  EXPECT_NE(parsed.diagnostics.find("but got 100"), std::string::npos);
}

TEST(CompileToCuda, NothingToCompile) {
  Parsed parsed("module {}");
  EXPECT_TRUE(failed(compileToCuda(parsed.get())));
  EXPECT_NE(parsed.diagnostics.find("expects a kernel"), std::string::npos);
}
