// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is to be written: classes, parameters and plan that follow from the
// options and the parameter list. How it is spelled is in StepText.h.
#ifndef DFA_TOOLS_LAYOUT_STEP_H
#define DFA_TOOLS_LAYOUT_STEP_H

#include "Options.h"
#include "ParamsFile.h"
#include "layout/Plan.h"

#include <string>
#include <vector>

namespace dfa {
namespace tools {

/// How a class keeps the exact value that the rule updates.
enum class MasterKind {
  None,      // the parameter itself is f32
  F32,       // an f32 array beside it
  Remainder, // the low 16 bits beside a bf16 parameter
};

/// Formats of one class; the rule and its states are those of the options.
struct StepClass {
  std::string name;
  layout::Format param = layout::Format::F32;
  layout::Format grad = layout::Format::F32;
  MasterKind master = MasterKind::None;
};

/// A step that can be written. Parameters, their orders and classes are in the
/// plan.
struct Step {
  Options options;
  std::vector<StepClass> classes;
  int64_t groups = 1;
  layout::Plan plan;
};

/// The parameter list of the options' model.
std::vector<ParamEntry> modelParams(const std::string &model);

/// Works out classes and plan; errors are located in `file`.
layout::Expected<Step> makeStep(const Options &options, const std::string &file,
                                const std::vector<ParamEntry> &entries);

} // namespace tools
} // namespace dfa

#endif // DFA_TOOLS_LAYOUT_STEP_H
