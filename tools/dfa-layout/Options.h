// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of dfa-layout.
#ifndef DFA_TOOLS_LAYOUT_OPTIONS_H
#define DFA_TOOLS_LAYOUT_OPTIONS_H

#include "Rules.h"
#include "layout/Format.h"
#include "layout/Mesh.h"

#include <optional>
#include <string>
#include <vector>

namespace dfa {
namespace tools {

/// What a rank keeps besides the states.
enum class Storage {
  Auto,      // Fp32 if all parameters are f32, else Master
  Fp32,      // f32 parameters that the rule updates
  Master,    // f32 masters beside 16-bit parameters
  Remainder, // bf16 parameters and the 16 bits that complete them
};

enum class MemoryFormat { Contiguous, ChannelsLast };

enum class Emit { Mlir, Plan };

/// One run of the tool.
struct Options {
  bool help = false;
  bool version = false;
  std::string input;  // PARAMS.json, or empty with a model
  std::string model;  // by name, or empty
  std::string output; // empty: standard output
  layout::Mesh mesh;
  bool hasReplicateAxis = false;
  bool hasShardAxis = false;
  Rule rule;
  Storage storage = Storage::Auto;
  std::optional<layout::Format> gradFormat; // none: the parameter's
  bool scaler = false;
  std::optional<double> clip;
  int64_t bucketBytes = int64_t(100) * 1024 * 1024;
  MemoryFormat memoryFormat = MemoryFormat::Contiguous;
  bool propagateNonFinite = false;
  Emit emit = Emit::Mlir;

  bool hasMesh() const { return hasReplicateAxis || hasShardAxis; }
};

/// Reads the arguments behind the program's name; an error is wrong usage.
layout::Expected<Options> parseOptions(const std::vector<std::string> &args);

/// What --help prints.
std::string helpText();

} // namespace tools
} // namespace dfa

#endif // DFA_TOOLS_LAYOUT_OPTIONS_H
