// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses the command line: `--name=value` and `--name value` alike, in any
// order.
#include "Options.h"

#include "models/Models.h"

#include <cmath>
#include <cstdlib>

using dfa::layout::Expected;
using dfa::layout::Status;

namespace dfa {
namespace tools {

std::string helpText() {
  return "usage: dfa-layout PARAMS.json [options]\n"
         "       dfa-layout --model=NAME [options]\n"
         "\n"
         "Writes the layout and the optimizer step of a model as MLIR.\n"
         "\n"
         "PARAMS.json is a list of {\"name\", \"shape\", \"dtype\",\n"
         "\"memory_format\" or \"order\", \"group\"}; all but name and shape\n"
         "may be left out.\n"
         "\n"
         "  --model=NAME            " +
         modelNames() +
         "\n"
         "  -o FILE                 output (default: standard output)\n"
         "  --mesh=AXES             e.g. replicate=2,shard=4, slowest axis "
         "first\n"
         "  --rule=RULE             " +
         ruleNames() +
         "\n"
         "                          (default adamw)\n"
         "  --hyper=NAME=VALUE,...  hyper-parameters of all groups\n"
         "  --storage=STORAGE       fp32|master|remainder (default: fp32 if "
         "all\n"
         "                          parameters are f32, else master)\n"
         "  --grad-dtype=TYPE       f32|f16|bf16 (default: the parameter's)\n"
         "  --scaler                dynamic loss scale\n"
         "  --clip=NORM             clip the gradient to this norm\n"
         "  --on-nonfinite=ACTION   skip|propagate (default skip)\n"
         "  --bucket-mb=MIB         size of a bucket of gradients (default "
         "100)\n"
         "  --memory-format=FORMAT  contiguous|channels_last, where "
         "PARAMS.json\n"
         "                          does not say (default contiguous)\n"
         "  --emit=WHAT             mlir|plan (default mlir); plan prints "
         "buckets\n"
         "                          and starts\n"
         "  --help, --version\n"
         "\n"
         "Exit codes: 0 fine; 1 the input is wrong; 2 wrong usage.\n";
}

namespace {

/// Takes options one by one and fills in the result.
class Parser {
public:
  explicit Parser(const std::vector<std::string> &args) : args(args) {}

  Expected<Options> run();

private:
  Status option(const std::string &name, const std::string &value);
  Status mesh(const std::string &value);
  Status hyperValues(const std::string &value);
  Status sizes(const std::string &name, const std::string &value);
  Status finish();

  const std::vector<std::string> &args;
  Options options;
  std::string ruleName = "adamw";
  HyperValues overrides;
};

/// A word with the value that it stands for.
template <typename T> struct Choice {
  const char *word;
  T value;
};

} // namespace

/// Splits at commas; a trailing comma gives an empty last item, an error later.
static std::vector<std::string> splitList(const std::string &text) {
  std::vector<std::string> items(1);
  for (char c : text) {
    if (c == ',')
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

/// Splits "name=value"; false without a name or a value.
static bool splitPair(const std::string &text, std::string &name,
                      std::string &value) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return false;
  name = text.substr(0, equals);
  value = text.substr(equals + 1);
  return true;
}

static bool parseNumber(const std::string &text, double &value) {
  char *end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value);
}

static Status expected(const std::string &option, const std::string &what,
                       const std::string &found) {
  return Status::error(option + ": expected " + what + ", but got '" + found +
                       "'");
}

template <typename T, size_t N>
static Status choose(const std::string &option, const std::string &value,
                     const Choice<T> (&choices)[N], T &result) {
  std::string words;
  for (const Choice<T> &choice : choices) {
    if (value == choice.word) {
      result = choice.value;
      return Status();
    }
    words += words.empty() ? choice.word : std::string("|") + choice.word;
  }
  return expected(option, words, value);
}

Status Parser::mesh(const std::string &value) {
  for (const std::string &item : splitList(value)) {
    std::string axis;
    std::string size;
    double number = 0;
    if (!splitPair(item, axis, size) || !parseNumber(size, number) ||
        number < 1 || number != std::floor(number) || number > 2147483647)
      return expected("--mesh", "replicate=N,shard=N with sizes of at least 1",
                      value);
    if (axis == "replicate" && !options.hasReplicateAxis) {
      if (options.hasShardAxis)
        return expected("--mesh", "replicate before shard (slowest axis first)",
                        value);
      options.hasReplicateAxis = true;
      options.mesh.replicate = static_cast<int64_t>(number);
    } else if (axis == "shard" && !options.hasShardAxis) {
      options.hasShardAxis = true;
      options.mesh.shard = static_cast<int64_t>(number);
    } else {
      return expected("--mesh", "the axes replicate and shard, once each",
                      value);
    }
  }
  Expected<int64_t> ranks = layout::meshRanks(options.mesh);
  return ranks ? Status() : Status::error("--mesh: " + ranks.message());
}

Status Parser::hyperValues(const std::string &value) {
  for (const std::string &item : splitList(value)) {
    std::string name;
    std::string text;
    double number = 0;
    if (!splitPair(item, name, text) || !parseNumber(text, number))
      return expected("--hyper", "NAME=NUMBER,...", value);
    overrides.emplace_back(name, number);
  }
  return Status();
}

Status Parser::sizes(const std::string &name, const std::string &value) {
  double number = 0;
  bool valid = parseNumber(value, number) && number > 0;
  if (name == "--clip") {
    if (!valid)
      return expected(name, "a norm above 0", value);
    options.clip = number;
    return Status();
  }
  // Well inside 64 bits, and more than any machine has.
  double bytes = number * 1024 * 1024;
  if (!valid || bytes < 1 || bytes > 1e15)
    return expected(name, "mebibytes above 0", value);
  options.bucketBytes = static_cast<int64_t>(bytes);
  return Status();
}

Status Parser::option(const std::string &name, const std::string &value) {
  static const Choice<Storage> storages[] = {{"fp32", Storage::Fp32},
                                             {"master", Storage::Master},
                                             {"remainder", Storage::Remainder}};
  static const Choice<MemoryFormat> formats[] = {
      {"contiguous", MemoryFormat::Contiguous},
      {"channels_last", MemoryFormat::ChannelsLast}};
  static const Choice<layout::Format> gradFormats[] = {
      {"f32", layout::Format::F32},     {"fp32", layout::Format::F32},
      {"float32", layout::Format::F32}, {"f16", layout::Format::F16},
      {"fp16", layout::Format::F16},    {"float16", layout::Format::F16},
      {"bf16", layout::Format::BF16},   {"bfloat16", layout::Format::BF16}};
  static const Choice<bool> actions[] = {{"skip", false}, {"propagate", true}};
  static const Choice<Emit> emits[] = {{"mlir", Emit::Mlir},
                                       {"plan", Emit::Plan}};

  if (name == "-o" || name == "--output" || name == "--model") {
    if (value.empty())
      return Status::error(name + ": expected a value");
    (name == "--model" ? options.model : options.output) = value;
    return Status();
  }
  if (name == "--mesh")
    return mesh(value);
  if (name == "--hyper")
    return hyperValues(value);
  if (name == "--clip" || name == "--bucket-mb")
    return sizes(name, value);
  if (name == "--storage")
    return choose(name, value, storages, options.storage);
  if (name == "--memory-format")
    return choose(name, value, formats, options.memoryFormat);
  if (name == "--on-nonfinite")
    return choose(name, value, actions, options.propagateNonFinite);
  if (name == "--emit")
    return choose(name, value, emits, options.emit);
  if (name == "--rule") {
    ruleName = value;
    return Status();
  }
  if (name == "--grad-dtype") {
    layout::Format format = layout::Format::F32;
    Status status = choose(name, value, gradFormats, format);
    options.gradFormat = format;
    return status;
  }
  return Status::error("unknown option '" + name + "'");
}

Status Parser::finish() {
  if (options.help || options.version)
    return Status();
  if (options.input.empty() == options.model.empty())
    return Status::error(options.input.empty()
                             ? "expected PARAMS.json or --model=" + modelNames()
                             : "expected PARAMS.json or --model, not both");
  std::vector<ModelParam> ignored;
  if (!options.model.empty() && !makeModel(options.model, ignored))
    return expected("--model", modelNames(), options.model);
  if (options.scaler && options.propagateNonFinite)
    return Status::error("--scaler: expected --on-nonfinite=skip with it, as a "
                         "loss scale is found by skipping overflows");
  Expected<Rule> rule = makeRule(ruleName, overrides);
  if (!rule)
    return rule.status();
  options.rule = *rule;
  return Status();
}

Expected<Options> Parser::run() {
  bool onlyInputs = false; // behind "--"
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string &arg = args[i];
    Status status;
    if (!onlyInputs && arg == "--") {
      onlyInputs = true;
    } else if (!onlyInputs && (arg == "--help" || arg == "-h")) {
      options.help = true;
    } else if (!onlyInputs && arg == "--version") {
      options.version = true;
    } else if (!onlyInputs && arg == "--scaler") {
      options.scaler = true;
    } else if (!onlyInputs && arg.size() > 1 && arg[0] == '-') {
      size_t equals = arg.find('=');
      if (equals != std::string::npos)
        status = option(arg.substr(0, equals), arg.substr(equals + 1));
      else if (i + 1 < args.size())
        status = option(arg, args[++i]);
      else
        status = option(arg, "");
    } else if (options.input.empty()) {
      options.input = arg;
    } else {
      status = Status::error("expected one PARAMS.json, but got '" +
                             options.input + "' and '" + arg + "'");
    }
    if (!status.ok())
      return status;
  }
  Status status = finish();
  if (!status.ok())
    return status;
  return std::move(options);
}

Expected<Options> parseOptions(const std::vector<std::string> &args) {
  return Parser(args).run();
}

} // namespace tools
} // namespace dfa
