// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameter lists that the tool makes itself, from the architectures. One file
// a model; names are those of the usual PyTorch implementations.
#ifndef DFA_TOOLS_LAYOUT_MODELS_MODELS_H
#define DFA_TOOLS_LAYOUT_MODELS_MODELS_H

#include <cstdint>
#include <string>
#include <vector>

namespace dfa {
namespace tools {

/// A trainable tensor of a model.
struct ModelParam {
  std::string name;
  std::vector<int64_t> shape;
};

/// A list under construction, with the layers that all models share.
class ModelBuilder {
public:
  void add(const std::string &name, std::vector<int64_t> shape) {
    list.push_back({name, std::move(shape)});
  }

  /// A convolution with a square kernel; `bias` says whether it has one.
  void conv(const std::string &name, int64_t out, int64_t in, int64_t kernel,
            bool bias) {
    add(name + ".weight", {out, in, kernel, kernel});
    if (bias)
      add(name + ".bias", {out});
  }

  void linear(const std::string &name, int64_t out, int64_t in, bool bias) {
    add(name + ".weight", {out, in});
    if (bias)
      add(name + ".bias", {out});
  }

  /// Scale and shift of a batch, layer or group norm.
  void norm(const std::string &name, int64_t channels) {
    add(name + ".weight", {channels});
    add(name + ".bias", {channels});
  }

  std::vector<ModelParam> take() { return std::move(list); }

private:
  std::vector<ModelParam> list;
};

/// ResNet-50 for 1,000 classes (He et al., arXiv:1512.03385).
std::vector<ModelParam> makeResNet50();

/// The denoising U-Net of Stable Diffusion 2 (Rombach et al.,
/// arXiv:2112.10752), with linear projections around its attention.
std::vector<ModelParam> makeSd2Unet();

/// TinyLlama 1.1B (Zhang et al., arXiv:2401.02385).
std::vector<ModelParam> makeTinyLlama1b();

/// Llama 2 7B (Touvron et al., arXiv:2307.09288).
std::vector<ModelParam> makeLlama2With7b();

/// The sizes that tell one Llama from another.
struct LlamaSizes {
  int64_t vocabulary;
  int64_t hidden;
  int64_t
      keyValue; // outputs of the key projection, and of the value projection
  int64_t feedForward;
  int64_t layers;
};

/// Any Llama without biases and with an output layer of its own.
std::vector<ModelParam> makeLlama(const LlamaSizes &sizes);

/// A model by the name that `--model` takes; false if there is none.
bool makeModel(const std::string &name, std::vector<ModelParam> &params);

/// "resnet50|sd2_unet|...", for help and messages.
std::string modelNames();

} // namespace tools
} // namespace dfa

#endif // DFA_TOOLS_LAYOUT_MODELS_MODELS_H
