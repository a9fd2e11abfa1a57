// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The models by name.
#include "models/Models.h"

namespace dfa {
namespace tools {

namespace {
struct ModelRow {
  const char *name;
  std::vector<ModelParam> (*make)();
};
} // namespace

static const ModelRow modelRows[] = {
    {"resnet50", makeResNet50},
    {"sd2_unet", makeSd2Unet},
    {"tinyllama_1b", makeTinyLlama1b},
    {"llama2_7b", makeLlama2With7b},
};

bool makeModel(const std::string &name, std::vector<ModelParam> &params) {
  for (const ModelRow &row : modelRows) {
    if (name != row.name)
      continue;
    params = row.make();
    return true;
  }
  return false;
}

std::string modelNames() {
  std::string names;
  for (const ModelRow &row : modelRows)
    names += names.empty() ? row.name : std::string("|") + row.name;
  return names;
}

} // namespace tools
} // namespace dfa
