// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints `func.func @step`: for each class the way of its gradient to the
// update, then one chain of control values.
#include "StepText.h"

using dfa::layout::Format;
using dfa::layout::formatName;

namespace dfa {
namespace tools {

namespace {

/// An SSA value, or a result, with what the function type needs to know.
struct Value {
  std::string name; // with the percent sign
  std::string type;
  std::string role;
};

/// Values of one class on their way through the step.
struct ClassValues {
  Value grad;   // as the framework made it, then reduced, then in f32
  Value target; // what the rule updates, in f32
  Value param;  // remainder storage: the stored halves
  Value remainder;
  std::vector<Value> states;
  std::vector<Value> updated; // target and states
};

class FunctionPrinter {
public:
  explicit FunctionPrinter(const Step &step) : step(step) {}

  std::string run();

private:
  const Options &options() const { return step.options; }
  bool multiple() const { return step.classes.size() > 1; }

  /// The alias of a class's type, defined at its first use: steps of several
  /// classes would be hard to read with the types written out.
  std::string flat(size_t cls, bool full, const std::string &element);
  std::string own(size_t cls, const std::string &element) {
    return flat(cls, !options().hasShardAxis, element);
  }
  std::string named(const std::string &name, size_t cls) const {
    return "%" + name + (multiple() ? std::to_string(cls) : "");
  }
  Value argument(const std::string &name, size_t cls, const std::string &type,
                 const std::string &role);
  void line(const std::string &text) { body += "  " + text + "\n"; }

  void makeArguments(size_t cls);
  void reduceGradient(size_t cls);
  void widenGradient(size_t cls);
  std::string combine(const char *op, const char *name, const char *kind);
  void finishNorm();
  void update(size_t cls);
  void store(size_t cls);
  std::string advance(const std::string &op, const std::string &rest);
  void controlChain();
  std::string controlAttribute() const;

  const Step &step;
  std::vector<ClassValues> classes;
  std::vector<Value> arguments;
  std::vector<Value> results;
  std::string aliases;
  std::string body;
  std::string unless;           // " unless %inf", or nothing
  std::string control = "%ctl"; // its latest value
  int controls = 0;
};

} // namespace

std::string FunctionPrinter::flat(size_t cls, bool full,
                                  const std::string &element) {
  const std::string part = full ? "full" : "shard";
  const std::string &name = step.classes[cls].name;
  std::string alias =
      "!" + (multiple() ? name + "_" : std::string()) + part + "_" + element;
  std::string line = alias + " = !dfa.flat<@model, @" + name + ", " + part +
                     ", " + element + ">\n";
  if (aliases.find(line) == std::string::npos)
    aliases += line;
  return alias;
}

Value FunctionPrinter::argument(const std::string &name, size_t cls,
                                const std::string &type,
                                const std::string &role) {
  Value value{named(name, cls), type, role};
  arguments.push_back(value);
  return value;
}

void FunctionPrinter::makeArguments(size_t cls) {
  const StepClass &spec = step.classes[cls];
  ClassValues &values = classes[cls];
  values.grad =
      argument("grad", cls, flat(cls, true, formatName(spec.grad)), "grad");
  if (spec.master == MasterKind::Remainder) {
    values.param = argument("param", cls, own(cls, "bf16"), "param");
    values.remainder = argument("remainder", cls, own(cls, "i16"), "remainder");
  } else {
    const char *role = spec.master == MasterKind::F32 ? "master" : "param";
    values.target = argument(role, cls, own(cls, "f32"), role);
  }
  for (const std::string &state : options().rule.states)
    values.states.push_back(argument(state, cls, own(cls, "f32"), state));
}

/// The sum over all ranks, of which this rank keeps its part.
void FunctionPrinter::reduceGradient(size_t cls) {
  Value &grad = classes[cls].grad;
  if (options().hasShardAxis) {
    Value shard{named("scattered", cls),
                own(cls, formatName(step.classes[cls].grad)), ""};
    line(shard.name + " = dfa.reduce_scatter sum " + grad.name +
         " over \"shard\" : " + grad.type + " -> " + shard.type);
    grad = shard;
  }
  if (options().hasReplicateAxis) {
    Value reduced{named("reduced", cls), grad.type, ""};
    line(reduced.name + " = dfa.all_reduce sum " + grad.name +
         " over \"replicate\" : " + grad.type);
    grad = reduced;
  }
}

/// To f32, times the factor if there is one.
void FunctionPrinter::widenGradient(size_t cls) {
  Value &grad = classes[cls].grad;
  Value wide{named("wide", cls), own(cls, "f32"), ""};
  Format format = step.classes[cls].grad;
  if (options().scaler || options().hasMesh())
    line(wide.name + " = dfa.unscale " + grad.name +
         " by %factor : " + grad.type + ", f64 -> " + wide.type);
  else if (format != Format::F32)
    line(wide.name + " = dfa.decode " + formatName(format) + " " + grad.name +
         " : " + grad.type + " -> " + wide.type);
  else
    return;
  grad = wide;
}

/// One partial a class, made one over classes and shards; returns its name.
/// Replicas hold the same gradient, so nothing is combined over them.
std::string FunctionPrinter::combine(const char *op, const char *name,
                                     const char *kind) {
  const std::string type = std::string("!dfa.partial<") + kind + ", whole>";
  std::string partials;
  for (size_t cls = 0; cls < classes.size(); ++cls) {
    std::string partial = named(std::string(name) + "_part", cls);
    line(partial + " = " + op + " " + classes[cls].grad.name + " : " +
         classes[cls].grad.type + " -> " + type);
    partials += (partials.empty() ? "" : ", ") + partial;
  }
  if (!multiple() && !options().hasShardAxis)
    return partials;
  std::string whole = std::string("%") + name + "_all";
  line(whole + " = dfa.combine " + partials +
       (options().hasShardAxis ? " over [\"shard\"]" : "") + " : " + type);
  return whole;
}

void FunctionPrinter::finishNorm() {
  if (options().clip) {
    std::string partial = combine("dfa.norm_partial", "norm", "l2");
    line("%norm = dfa.norm_finish " + partial +
         " : !dfa.partial<l2, whole> -> f64");
  }
  if (!options().propagateNonFinite) {
    std::string partial = combine("dfa.non_finite", "inf", "flag");
    line("%inf = dfa.flag_finish " + partial +
         " : !dfa.partial<flag, whole> -> i1");
    unless = " unless %inf";
  }
  if (!options().clip)
    return;
  line("%max = dfa.read %ctl[\"max_norm\"] : f64");
  for (size_t cls = 0; cls < classes.size(); ++cls) {
    Value &grad = classes[cls].grad;
    Value clipped{named("clipped", cls), grad.type, ""};
    line(clipped.name + " = dfa.clip " + grad.name +
         " with %norm to %max : " + grad.type + ", f64, f64");
    grad = clipped;
  }
}

void FunctionPrinter::update(size_t cls) {
  ClassValues &values = classes[cls];
  const Rule &rule = options().rule;
  if (step.classes[cls].master == MasterKind::Remainder) {
    values.target = {named("exact", cls), own(cls, "f32"), ""};
    line(values.target.name + " = dfa.decode remainder " + values.param.name +
         ", " + values.remainder.name + " : " + values.param.type + ", " +
         values.remainder.type + " -> " + values.target.type);
  }
  std::vector<Value> outs = {values.target};
  outs.insert(outs.end(), values.states.begin(), values.states.end());
  std::string names;
  std::string types;
  const std::string result = named("new", cls);
  for (size_t i = 0; i < outs.size(); ++i) {
    names += (i == 0 ? "" : ", ") + outs[i].name;
    types += (i == 0 ? "" : ", ") + outs[i].type;
    values.updated.push_back(
        {result + "#" + std::to_string(i), outs[i].type, outs[i].role});
  }
  line(result + ":" + std::to_string(outs.size()) + " = " + rule.op + " ins(" +
       values.grad.name + " : " + values.grad.type + ") outs(" + names + " : " +
       types + ") control(%ctl)" + unless + rule.attributes + " -> " + types);
}

/// The class's results: states, masters, and the parameter as the model reads
/// it, gathered if this rank only has a part.
void FunctionPrinter::store(size_t cls) {
  const StepClass &spec = step.classes[cls];
  const Value target = classes[cls].updated[0];
  Value param = target;
  if (spec.master == MasterKind::F32) {
    results.push_back(target);
    param = {named("stored", cls), own(cls, formatName(spec.param)), ""};
    line(param.name + " = dfa.encode " + formatName(spec.param) + " " +
         target.name + " : " + target.type + " -> " + param.type);
  } else if (spec.master == MasterKind::Remainder) {
    param = {named("stored", cls), own(cls, "bf16"), ""};
    Value rest{named("rest", cls), own(cls, "i16"), "remainder"};
    line(param.name + ", " + rest.name + " = dfa.encode remainder " +
         target.name + " : " + target.type + " -> " + param.type + ", " +
         rest.type);
    results.push_back(rest);
  }
  if (options().hasShardAxis) {
    Value whole{named("gathered", cls), flat(cls, true, formatName(spec.param)),
                ""};
    line(whole.name + " = dfa.all_gather " + param.name +
         " over \"shard\" : " + param.type + " -> " + whole.type);
    param = whole;
  }
  for (size_t i = 1; i < classes[cls].updated.size(); ++i)
    results.push_back(classes[cls].updated[i]);
  param.role = "param";
  results.push_back(param);
}

/// A new control value from the latest one.
std::string FunctionPrinter::advance(const std::string &op,
                                     const std::string &rest) {
  std::string next = "%ctl" + std::to_string(++controls);
  line(next + " = " + op + control + rest);
  return next;
}

void FunctionPrinter::controlChain() {
  if (options().clip)
    control = advance("dfa.write %norm, ", "[\"norm\"] : f64");
  if (options().scaler)
    control = advance("dfa.scaler_update ", ", %inf");
  control = advance("dfa.step_count ", unless);
  control = advance("dfa.zero_grad generation ", "");
  results.push_back({control, "!dfa.control", "control"});
}

/// Initial values of control fields that differ from their defaults.
std::string FunctionPrinter::controlAttribute() const {
  std::string fields;
  auto field = [&](const char *name, double value) {
    fields += (fields.empty() ? "" : ", ") + std::string(name) + " = " +
              floatText(value);
  };
  int64_t ranks = options().mesh.replicate * options().mesh.shard;
  if (ranks > 1)
    field("average", 1.0 / static_cast<double>(ranks));
  if (options().clip)
    field("max_norm", *options().clip);
  if (options().scaler)
    field("scale", 65536.0);
  return fields.empty() ? "" : " attributes {dfa.control = {" + fields + "}}";
}

std::string FunctionPrinter::run() {
  classes.resize(step.classes.size());
  for (size_t cls = 0; cls < classes.size(); ++cls)
    makeArguments(cls);
  arguments.push_back({"%ctl", "!dfa.control", "control"});

  if (options().scaler || options().hasMesh())
    line("%factor = dfa.grad_factor %ctl : f64");
  for (size_t cls = 0; cls < classes.size(); ++cls) {
    reduceGradient(cls);
    widenGradient(cls);
  }
  finishNorm();
  for (size_t cls = 0; cls < classes.size(); ++cls)
    update(cls);
  for (size_t cls = 0; cls < classes.size(); ++cls)
    store(cls);
  controlChain();

  std::string text = aliases + "func.func @step(";
  const std::string indent(16, ' ');
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i == 0 ? "" : ",\n" + indent) + arguments[i].name + ": " +
            arguments[i].type + " {dfa.role = \"" + arguments[i].role + "\"}";
  text += ")\n    -> (";
  std::string names;
  std::string types;
  for (size_t i = 0; i < results.size(); ++i) {
    text += (i == 0 ? "" : ",\n" + std::string(8, ' ')) + results[i].type +
            " {dfa.role = \"" + results[i].role + "\"}";
    names += (i == 0 ? "" : ", ") + results[i].name;
    types += (i == 0 ? "" : ", ") + results[i].type;
  }
  return text + ")" + controlAttribute() + " {\n" + body + "  return " + names +
         " : " + types + "\n}\n";
}

std::string functionText(const Step &step) {
  return FunctionPrinter(step).run();
}

} // namespace tools
} // namespace dfa
