// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Llama 2 7B: every query head has its own key and value head.
#include "models/Models.h"

namespace dfa {
namespace tools {

std::vector<ModelParam> makeLlama2With7b() {
  LlamaSizes sizes;
  sizes.vocabulary = 32000;
  sizes.hidden = 4096;
  sizes.keyValue = 4096;
  sizes.feedForward = 11008;
  sizes.layers = 32;
  return makeLlama(sizes);
}

} // namespace tools
} // namespace dfa
