// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the mesh and the layout.
#include "StepText.h"

#include <charconv>

using dfa::layout::ParamSpec;

namespace dfa {
namespace tools {

std::string floatText(double value) {
  char buffer[64];
  std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end.ptr);
  // MLIR wants a point, also before an exponent.
  if (text.find('.') != std::string::npos)
    return text;
  size_t exponent = std::min(text.find('e'), text.size());
  return text.insert(exponent, ".0");
}

std::string stringText(const std::string &value) {
  static const char digits[] = "0123456789ABCDEF";
  std::string text = "\"";
  for (char c : value) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      text += '\\';
      text += digits[byte >> 4];
      text += digits[byte & 15];
    } else {
      text += c;
    }
  }
  return text + "\"";
}

static std::string meshText(const Options &options) {
  std::string axes;
  if (options.hasReplicateAxis)
    axes = "replicate = " + std::to_string(options.mesh.replicate);
  if (options.hasShardAxis)
    axes += (axes.empty() ? "" : ", ") +
            ("shard = " + std::to_string(options.mesh.shard));
  return "dfa.mesh @dp(" + axes + ")\n";
}

static const char *masterName(MasterKind kind) {
  switch (kind) {
  case MasterKind::None:
    return "none";
  case MasterKind::F32:
    return "f32";
  case MasterKind::Remainder:
    return "remainder";
  }
  return "";
}

static std::string classText(const StepClass &cls, const Rule &rule) {
  std::string states;
  for (const std::string &state : rule.states)
    states += (states.empty() ? "" : ", ") + state + " : f32";
  return "  dfa.class @" + cls.name +
         " param = " + layout::formatName(cls.param) +
         " grad = " + layout::formatName(cls.grad) +
         " master = " + masterName(cls.master) + " states = [" + states +
         "] rule = " + rule.name + "\n";
}

static std::string groupText(int64_t index, const HyperValues &hyper) {
  std::string values;
  for (const std::pair<std::string, double> &value : hyper)
    values += (values.empty() ? "" : ", ") + value.first + " = " +
              floatText(value.second);
  return "  dfa.group " + std::to_string(index) + " {" + values + "}\n";
}

static std::string paramText(const ParamSpec &param, const StepClass &cls) {
  std::string type = "tensor<";
  for (int64_t size : param.shape)
    type += std::to_string(size) + "x";
  type += std::string(layout::formatName(cls.param)) + ">";
  return "  dfa.param " + stringText(param.name) + " : " + type +
         ", order = " + layout::listText(param.order) + ", class = @" +
         cls.name + ", group = " + std::to_string(param.group) + "\n";
}

std::string layoutText(const Step &step) {
  const Options &options = step.options;
  std::string text;
  if (options.hasMesh())
    text = meshText(options);
  text += std::string("dfa.layout @model") +
          (options.hasMesh() ? " on @dp" : "") +
          " bucket_bytes = " + std::to_string(options.bucketBytes) + " {\n";
  for (const StepClass &cls : step.classes)
    text += classText(cls, options.rule);
  for (int64_t group = 0; group < step.groups; ++group)
    text += groupText(group, options.rule.hyper);
  for (const ParamSpec &param : step.plan.params())
    text += paramText(param, step.classes[static_cast<size_t>(param.cls)]);
  return text + "}\n";
}

std::string stepText(const Step &step) {
  return layoutText(step) + functionText(step);
}

} // namespace tools
} // namespace dfa
