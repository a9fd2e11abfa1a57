// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The U-Net of Stable Diffusion 2: residual blocks and transformer blocks at
// four resolutions, down and up, with a skip connection for every block output.
#include "models/Models.h"

namespace dfa {
namespace tools {

namespace {

constexpr int64_t latentChannels = 4;
constexpr int64_t timeChannels = 1280;
constexpr int64_t textChannels = 1024;
constexpr int64_t levelChannels[] = {320, 640, 1280, 1280};
constexpr int64_t levels = 4;
constexpr int64_t downBlocks = 2; // residual blocks a level on the way down;
                                  // one more on the way up

class UnetBuilder {
public:
  std::vector<ModelParam> build();

private:
  void residual(const std::string &name, int64_t in, int64_t out);
  void attention(const std::string &name, int64_t channels, int64_t context);
  void transformer(const std::string &name, int64_t channels);
  void down(int64_t level);
  void middle();
  void up(int64_t level);

  /// The lowest resolution has no attention.
  static bool hasAttention(int64_t level) { return level + 1 < levels; }

  ModelBuilder model;
  int64_t channels = levelChannels[0];
  std::vector<int64_t> skips = {levelChannels[0]}; // channels, last on top
};

} // namespace

void UnetBuilder::residual(const std::string &name, int64_t in, int64_t out) {
  model.norm(name + ".norm1", in);
  model.conv(name + ".conv1", out, in, 3, true);
  model.linear(name + ".time_emb_proj", out, timeChannels, true);
  model.norm(name + ".norm2", out);
  model.conv(name + ".conv2", out, out, 3, true);
  if (in != out)
    model.conv(name + ".conv_shortcut", out, in, 1, true);
}

void UnetBuilder::attention(const std::string &name, int64_t channels,
                            int64_t context) {
  model.linear(name + ".to_q", channels, channels, false);
  model.linear(name + ".to_k", channels, context, false);
  model.linear(name + ".to_v", channels, context, false);
  model.linear(name + ".to_out.0", channels, channels, true);
}

void UnetBuilder::transformer(const std::string &name, int64_t channels) {
  const std::string block = name + ".transformer_blocks.0";
  model.norm(name + ".norm", channels);
  model.linear(name + ".proj_in", channels, channels, true);
  model.norm(block + ".norm1", channels);
  attention(block + ".attn1", channels, channels); // to itself
  model.norm(block + ".norm2", channels);
  attention(block + ".attn2", channels, textChannels); // to the text
  model.norm(block + ".norm3", channels);
  // A gated unit: twice the width in, one width out.
  model.linear(block + ".ff.net.0.proj", 8 * channels, channels, true);
  model.linear(block + ".ff.net.2", channels, 4 * channels, true);
  model.linear(name + ".proj_out", channels, channels, true);
}

void UnetBuilder::down(int64_t level) {
  const std::string name = "down_blocks." + std::to_string(level);
  for (int64_t i = 0; i < downBlocks; ++i) {
    std::string number = std::to_string(i);
    residual(name + ".resnets." + number, channels, levelChannels[level]);
    channels = levelChannels[level];
    if (hasAttention(level))
      transformer(name + ".attentions." + number, channels);
    skips.push_back(channels);
  }
  if (level + 1 == levels)
    return;
  model.conv(name + ".downsamplers.0.conv", channels, channels, 3, true);
  skips.push_back(channels);
}

void UnetBuilder::middle() {
  residual("mid_block.resnets.0", channels, channels);
  transformer("mid_block.attentions.0", channels);
  residual("mid_block.resnets.1", channels, channels);
}

void UnetBuilder::up(int64_t level) {
  const std::string name = "up_blocks." + std::to_string(levels - 1 - level);
  for (int64_t i = 0; i <= downBlocks; ++i) {
    std::string number = std::to_string(i);
    // Its input and what the same place on the way down put aside.
    residual(name + ".resnets." + number, channels + skips.back(),
             levelChannels[level]);
    skips.pop_back();
    channels = levelChannels[level];
    if (hasAttention(level))
      transformer(name + ".attentions." + number, channels);
  }
  if (level != 0)
    model.conv(name + ".upsamplers.0.conv", channels, channels, 3, true);
}

std::vector<ModelParam> UnetBuilder::build() {
  model.conv("conv_in", channels, latentChannels, 3, true);
  model.linear("time_embedding.linear_1", timeChannels, channels, true);
  model.linear("time_embedding.linear_2", timeChannels, timeChannels, true);
  for (int64_t level = 0; level < levels; ++level)
    down(level);
  middle();
  for (int64_t level = levels; level-- > 0;)
    up(level);
  model.norm("conv_norm_out", channels);
  model.conv("conv_out", latentChannels, channels, 3, true);
  return model.take();
}

std::vector<ModelParam> makeSd2Unet() { return UnetBuilder().build(); }

} // namespace tools
} // namespace dfa
