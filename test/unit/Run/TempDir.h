// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder that lives as long as its test.
#ifndef DFA_TEST_UNIT_RUN_TEMPDIR_H
#define DFA_TEST_UNIT_RUN_TEMPDIR_H

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

class TempDir {
public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "dfa-run-XXXXXX").string();
    if (mkdtemp(&pattern[0]) != nullptr)
      path = pattern;
    EXPECT_FALSE(path.empty());
  }
  ~TempDir() { std::filesystem::remove_all(path); }

  std::string file(const std::string &name) const { return path + "/" + name; }

  /// Writes a file with these bytes and returns its path.
  std::string write(const std::string &name, const std::string &bytes) const {
    // Some file systems write a truncated file to disk at once; not a new one.
    std::filesystem::remove(file(name));
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }

  static std::string read(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }

private:
  std::string path;
};

#define EXPECT_OK(expression)                                                  \
  do {                                                                         \
    ::dfa::run::Status outcome = (expression);                                 \
    EXPECT_TRUE(outcome.ok()) << outcome.message();                            \
  } while (false)

#endif // DFA_TEST_UNIT_RUN_TEMPDIR_H
