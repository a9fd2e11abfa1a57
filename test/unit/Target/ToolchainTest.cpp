// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding the assembler, knowing chips, and reading what ptxas prints.

#include "dfa/Target/Toolchain.h"
#include "dfa/Target/Chips.h"
#include "dfa/Target/Cuda.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <map>

using namespace mlir::dfa;

namespace {

/// A folder with programs that the test makes.
class Toolchain : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("dfa-toolchain", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string makeFile(const std::string &name, const std::string &content,
                       bool executable = true) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << content;
    EXPECT_FALSE(error);
    if (executable)
      llvm::sys::fs::setPermissions(path, llvm::sys::fs::all_read |
                                              llvm::sys::fs::all_exe |
                                              llvm::sys::fs::owner_write);
    return path.str().str();
  }
  llvm::Expected<std::string> find(const std::string &override = "") {
    return findPtxas(
        override,
        [this](llvm::StringRef name) -> std::optional<std::string> {
          auto it = environment.find(name.str());
          if (it == environment.end())
            return std::nullopt;
          return it->second;
        },
        "/nowhere/cuda");
  }
  std::string message(llvm::Expected<std::string> result) {
    EXPECT_FALSE(static_cast<bool>(result));
    return result ? *result : llvm::toString(result.takeError());
  }

  llvm::SmallString<128> folder;
  std::map<std::string, std::string> environment;
};

} // namespace

TEST_F(Toolchain, OverrideWinsOverEverything) {
  std::string own = makeFile("own", "");
  std::string home = makeFile("home/bin/ptxas", "");
  environment["CUDA_HOME"] = folder.str().str() + "/home";
  EXPECT_EQ(*find(), home);
  environment["DFA_PTXAS"] = own;
  EXPECT_EQ(*find(), own);
  std::string option = makeFile("option", "");
  EXPECT_EQ(*find(option), option);
}

TEST_F(Toolchain, InvalidOverrideIsAnErrorWithoutFallback) {
  makeFile("home/bin/ptxas", "");
  environment["CUDA_HOME"] = folder.str().str() + "/home";
  environment["DFA_PTXAS"] = folder.str().str() + "/missing";
  std::string text = message(find());
  EXPECT_NE(text.find("DFA_PTXAS"), std::string::npos) << text;
  EXPECT_NE(text.find("does not exist"), std::string::npos) << text;
  environment["DFA_PTXAS"] = makeFile("plain", "", /*executable=*/false);
  text = message(find());
  EXPECT_NE(text.find("is not executable"), std::string::npos) << text;
  text = message(find(folder.str().str() + "/nothing"));
  EXPECT_NE(text.find("option 'ptxas'"), std::string::npos) << text;
}

TEST_F(Toolchain, OrderOfTheSearch) {
  std::string path = makeFile("path/ptxas", "");
  environment["PATH"] =
      folder.str().str() + "/none:" + folder.str().str() + "/path";
  EXPECT_EQ(*find(), path);
  std::string cuda = makeFile("cuda/bin/ptxas", "");
  environment["CUDA_PATH"] = folder.str().str() + "/cuda";
  EXPECT_EQ(*find(), cuda);
}

TEST_F(Toolchain, ErrorListsPlacesInOrder) {
  environment["CUDA_HOME"] = "/nowhere/home";
  environment["PATH"] = "/nowhere/path";
  environment["VIRTUAL_ENV"] = "/nowhere/venv";
  std::string text = message(find());
  size_t last = 0;
  for (const char *part :
       {"set DFA_PTXAS", "DFA_PTXAS is not set", "/nowhere/home/bin/ptxas",
        "CUDA_PATH is not set", "/nowhere/path/ptxas",
        "/nowhere/cuda/bin/ptxas", "/nowhere/venv/lib"}) {
    size_t at = text.find(part, last);
    EXPECT_NE(at, std::string::npos) << part << " in " << text;
    last = at == std::string::npos ? last : at;
  }
}

TEST_F(Toolchain, PythonEnvironment) {
  std::string file =
      makeFile("venv/lib/python3.11/site-packages/nvidia/cu13/bin/ptxas", "");
  environment["VIRTUAL_ENV"] = folder.str().str() + "/venv";
  EXPECT_EQ(*find(), file);
}

TEST_F(Toolchain, FailingAssemblerNamesChipAndVersion) {
  std::string old = makeFile(
      "old", "#!/bin/sh\n"
             "if [ \"$1\" = --version ]; then\n"
             "  echo 'Cuda compilation tools, release 9.0, V9.0.1'; exit 0\n"
             "fi\n"
             "echo 'fatal: Value sm_90 is not defined' >&2; exit 1\n");
  auto result = assemblePtx(old, ".version 8.0", "sm_90");
  ASSERT_FALSE(static_cast<bool>(result));
  std::string text = llvm::toString(result.takeError());
  EXPECT_NE(text.find("is not defined"), std::string::npos) << text;
  EXPECT_NE(text.find("for sm_90"), std::string::npos) << text;
  EXPECT_NE(text.find("release 9.0"), std::string::npos) << text;
}

TEST(Chips, TableIsExact) {
  for (const char *name : {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90",
                           "sm_90a", "sm_100", "sm_103", "sm_120"})
    EXPECT_NE(findChip(name), nullptr) << name;
  for (const char *name : {"sm_999", "sm_9", "", "sm_75", "SM_90", "sm_90 "})
    EXPECT_EQ(findChip(name), nullptr) << name;
}

TEST(Resources, ReadsTheAssemblersReport) {
  auto kernels = parseResources(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'norm' for 'sm_90'\n"
      "ptxas info    : Function properties for norm\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 0 barriers, 16 bytes cumulative "
      "stack size\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
      "ptxas info    : Function properties for b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "norm");
  EXPECT_EQ(kernels[0].registers, 40u);
  EXPECT_EQ(kernels[0].stackBytes, 16u);
  EXPECT_EQ(kernels[0].spillBytes, 20u);
  EXPECT_EQ(kernels[1].name, "b");
  EXPECT_EQ(kernels[1].registers, 255u);
  EXPECT_EQ(kernels[1].spillBytes, 0u);
}
