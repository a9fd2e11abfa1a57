// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step file as plain data: parameters, classes, groups, and the step function
// as a list of nodes. No MLIR: it is made from MLIR in Import*.cpp, and read by
// the reference and by the code that binds arrays.
#ifndef DFA_TOOLS_DFA_RUN_STEP_STEPGRAPH_H
#define DFA_TOOLS_DFA_RUN_STEP_STEPGRAPH_H

#include "step/ScalarProgram.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dfa::run {

/// Storage formats, as the dialect has them. Remainder stands for the 16 bits
/// that a bf16 parameter lacks of its f32 master.
enum class Format { None, F64, F32, F16, BF16, Remainder };

/// "bf16" and so on.
const char *formatName(Format format);

struct StateSpec {
  std::string name;
  Format format = Format::F32;
};

struct ClassSpec {
  std::string name;
  Format param = Format::F32;
  Format grad = Format::F32;
  Format master = Format::None;
  std::vector<StateSpec> states;
};

struct GroupSpec {
  int64_t index = 0;
  std::map<std::string, double> hyper;
};

struct ParamSpec {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int64_t> order; // empty: row-major
  int cls = 0;
  int group = 0; // position in StepGraph::groups
  int64_t elements = 0;
};

struct MeshAxis {
  std::string name;
  int64_t size = 1;
};

/// What a value of the step is.
enum class ValueKind { Flat, Scalar, Per, Partial, Control };

enum class Scope { Whole, Group, Param };
enum class Accumulation { L1, L2, Lp, Inf, Flag };

struct ValueInfo {
  ValueKind kind = ValueKind::Scalar;
  int cls = -1;                 // Flat
  Format element = Format::F32; // Flat; i16 is Remainder
  Scope scope = Scope::Whole;   // Per, Partial
  Accumulation accumulation = Accumulation::L2;
  double order = 0; // of an lp norm
  int slot = -1;    // Flat: number among the flat values
};

enum class NodeKind {
  // Elementwise: flat results.
  Argument,
  Unscale,    // input, factor
  Clip,       // input, norm, max_norm
  ClipValue,  // input, bound
  Encode,     // input; one or two results
  Decode,     // one or two inputs
  Copy,       // all_gather, broadcast
  Reduce,     // over `axis`
  Accumulate, // gradient, bucket
  Rule,       // a named rule, or a part of one
  Update,     // the generic update
  // Scalars, partials and control.
  NormPartial,
  NonFinite,
  Combine,
  NormFinish,
  FlagFinish,
  TrustRatio,
  ClipFactor, // norm, max_norm
  GradFactor,
  Read,
  Write, // value, control
  ScalerUpdate,
  StepCount,
  ZeroGrad,
  Scalar, // one instruction on scalars
};

/// Named rules. LAMB needs norms between its parts, so it is three nodes.
enum class RuleKind {
  Adam,
  Sgd,
  Lion,
  Adagrad,
  Rmsprop,
  LambMoments,
  LambDirection,
  LambStep,
};

struct RuleModes {
  RuleKind kind = RuleKind::Adam;
  bool decoupled = false; // adamw
  bool amsgrad = false;
  bool maximize = false;
  bool noBiasCorrection = false;
  bool nesterov = false;
  bool centered = false;
  bool withMomentum = false;
};

struct Node {
  NodeKind kind = NodeKind::Argument;
  /// Values. Of rules and updates: inputs, then outs, then `with` scalars.
  std::vector<int> operands;
  std::vector<int> results;
  int inputs = 0;
  int outs = 0;
  int foundInf = -1;    // the flag of `unless`, or -1
  int cls = -1;         // of flat results
  int argument = -1;    // Argument: index into StepGraph::arguments
  int axis = -1;        // Reduce
  bool maximum = false; // Reduce: max instead of sum
  bool memset = false;  // ZeroGrad
  Format format = Format::None;
  std::string field; // Read, Write
  RuleModes rule;
  std::vector<std::string> hyper; // Update
  ScalarProgram derive, apply;    // Update
  Instruction instruction;        // Scalar
};

/// An argument or result of the step function.
struct Binding {
  std::string role; // "grad", "param", "master", a state, "control"
  int cls = -1;     // -1: control
  int value = -1;
  bool shard = false; // part of the layout that the value covers
  Format element = Format::F32;
};

struct StepGraph {
  std::string layoutName;
  std::vector<MeshAxis> mesh; // slowest first
  int64_t bucketBytes = 0;    // 0: the layout's default
  std::vector<ClassSpec> classes;
  std::vector<GroupSpec> groups;
  std::vector<ParamSpec> params;
  std::vector<Binding> arguments;
  std::vector<Binding> results;
  std::vector<ValueInfo> values;
  std::vector<Node> nodes; // in order of evaluation
  int flatValues = 0;
  std::map<std::string, double> control; // initial fields
  int64_t microBatches = 1; // contributions to a step that accumulates

  /// Whether gradients are added up before the step.
  bool accumulates() const;
  /// The number of a contribution (from 0) to a step (from 1) among all
  /// gradients of a run.
  int64_t gradientNumber(int64_t step, int64_t contribution) const {
    return (step - 1) * microBatches + contribution + 1;
  }
  int64_t ranks() const;
  int64_t elements() const;
  /// The index of the argument with this role and class, or -1.
  int findArgument(const std::string &role, int cls) const;
  /// The index of the result with this role and class, or -1.
  int findResult(const std::string &role, int cls) const;
  /// The index of a parameter, or -1.
  int findParam(const std::string &name) const;
  /// The node that computes a value.
  const Node &definition(int value) const;

  /// Where the exact copy of a class lies: the role "master", or "param" if
  /// the rule updates the parameter itself (also with a remainder).
  std::string masterRole(int cls) const;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_STEP_STEPGRAPH_H
