// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ResNet-50: four stages of bottleneck blocks.
#include "models/Models.h"

namespace dfa {
namespace tools {

/// A block's output has this many times the channels of its 3x3 convolution.
static constexpr int64_t expansion = 4;

static void addBottleneck(ModelBuilder &model, const std::string &name,
                          int64_t in, int64_t width, bool downsample) {
  model.conv(name + ".conv1", width, in, 1, false);
  model.norm(name + ".bn1", width);
  model.conv(name + ".conv2", width, width, 3, false);
  model.norm(name + ".bn2", width);
  model.conv(name + ".conv3", width * expansion, width, 1, false);
  model.norm(name + ".bn3", width * expansion);
  if (!downsample)
    return;
  model.conv(name + ".downsample.0", width * expansion, in, 1, false);
  model.norm(name + ".downsample.1", width * expansion);
}

std::vector<ModelParam> makeResNet50() {
  const int64_t blocks[] = {3, 4, 6, 3};
  ModelBuilder model;
  model.conv("conv1", 64, 3, 7, false);
  model.norm("bn1", 64);
  int64_t channels = 64;
  for (int64_t stage = 0; stage < 4; ++stage) {
    int64_t width = int64_t(64) << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      std::string name =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      addBottleneck(model, name, channels, width, block == 0);
      channels = width * expansion;
    }
  }
  model.linear("fc", 1000, channels, true);
  return model.take();
}

} // namespace tools
} // namespace dfa
