// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model lists: counts, totals, and a hash of all names and shapes. The
// hashes were taken from lists that PyTorch printed.
#include "models/Models.h"

#include "layout/Dump.h"
#include "layout/Order.h"

#include "gtest/gtest.h"

using namespace dfa::tools;
using namespace dfa::layout;

namespace {
struct Known {
  const char *name;
  size_t tensors;
  int64_t elements;
  uint64_t hash; // of "NAME [SIZES]\n" for each
};
} // namespace

TEST(Models, CountsTotalsAndHashes) {
  const Known rows[] = {
      {"resnet50", 161, 25557032, 0x03200567b905d2f7},
      {"sd2_unet", 686, 865910724, 0x1c21b6beae504458},
      {"tinyllama_1b", 201, 1100048384, 0xb58470c2a87e6d60},
      {"llama2_7b", 291, 6738415616, 0xfe6d63ecbe7c3dd2},
  };
  for (const Known &row : rows) {
    SCOPED_TRACE(row.name);
    std::vector<ModelParam> params;
    ASSERT_TRUE(makeModel(row.name, params));
    int64_t elements = 0;
    std::string text;
    for (const ModelParam &param : params) {
      elements += *elementCount(param.name, param.shape);
      text += param.name + " " + listText(param.shape) + "\n";
    }
    EXPECT_EQ(params.size(), row.tensors);
    EXPECT_EQ(elements, row.elements);
    EXPECT_EQ(textHash(text), row.hash);
  }
}

TEST(Models, UnknownName) {
  std::vector<ModelParam> params;
  EXPECT_FALSE(makeModel("resnet51", params));
  EXPECT_EQ(modelNames(), "resnet50|sd2_unet|tinyllama_1b|llama2_7b");
}
