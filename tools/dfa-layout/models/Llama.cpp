// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all Llamas have in common; their sizes have files of their own.
#include "models/Models.h"

namespace dfa {
namespace tools {

std::vector<ModelParam> makeLlama(const LlamaSizes &sizes) {
  ModelBuilder model;
  model.linear("model.embed_tokens", sizes.vocabulary, sizes.hidden, false);
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string name = "model.layers." + std::to_string(layer);
    const std::string attention = name + ".self_attn";
    model.linear(attention + ".q_proj", sizes.hidden, sizes.hidden, false);
    model.linear(attention + ".k_proj", sizes.keyValue, sizes.hidden, false);
    model.linear(attention + ".v_proj", sizes.keyValue, sizes.hidden, false);
    model.linear(attention + ".o_proj", sizes.hidden, sizes.hidden, false);
    const std::string mlp = name + ".mlp";
    model.linear(mlp + ".gate_proj", sizes.feedForward, sizes.hidden, false);
    model.linear(mlp + ".up_proj", sizes.feedForward, sizes.hidden, false);
    model.linear(mlp + ".down_proj", sizes.hidden, sizes.feedForward, false);
    // Root-mean-square norms scale and do not shift.
    model.add(name + ".input_layernorm.weight", {sizes.hidden});
    model.add(name + ".post_attention_layernorm.weight", {sizes.hidden});
  }
  model.add("model.norm.weight", {sizes.hidden});
  model.linear("lm_head", sizes.vocabulary, sizes.hidden, false);
  return model.take();
}

} // namespace tools
} // namespace dfa
