// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TinyLlama 1.1B: 32 query heads share 4 key and value heads of 64 channels.
#include "models/Models.h"

namespace dfa {
namespace tools {

std::vector<ModelParam> makeTinyLlama1b() {
  LlamaSizes sizes;
  sizes.vocabulary = 32000;
  sizes.hidden = 2048;
  sizes.keyValue = 4 * 64;
  sizes.feedForward = 5632;
  sizes.layers = 22;
  return makeLlama(sizes);
}

} // namespace tools
} // namespace dfa
