// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys to arrays, and values at the moment they are needed: gradients from the
// seed are made block by block and never held.
#include "data/Source.h"
#include "reference/ControlState.h"

#include <algorithm>

using namespace dfa::run;

double dfa::run::roundToStorage(Format format, double value) {
  float single = static_cast<float>(value);
  switch (format) {
  case Format::F64:
    return value;
  case Format::F16:
    return f32FromF16(f16FromF32(single));
  case Format::BF16:
    return f32FromBf16(bf16FromF32(single));
  default:
    return single;
  }
}

Status Source::open(const StepGraph &stepGraph, const SourceOptions &given) {
  graph = &stepGraph;
  options = given;
  gradients.resize(graph->params.size());
  for (size_t i = 0; i < graph->params.size(); ++i)
    paramNumbers[graph->params[i].name] = static_cast<int>(i);
  if (options.inputs.empty())
    return Status();
  Status status = reader.open(options.inputs);
  if (!status.ok())
    return status;
  for (const std::string &key : reader.keys()) {
    status = addKey(key);
    if (!status.ok())
      return status.in(options.inputs + ": key " + quoted(key));
  }
  return Status();
}

Status Source::addKey(const std::string &text) {
  Key key;
  Status status = parseKey(text, key);
  if (!status.ok())
    return status;
  if (key.kind == controlKind)
    return readControl(text, key);
  std::map<std::string, int>::const_iterator found =
      paramNumbers.find(key.name);
  if (found == paramNumbers.end())
    return Status::expects("the name of a parameter of '@" + graph->layoutName +
                               "' behind the slash",
                           quoted(key.name));
  int param = found->second;
  if (key.kind == "grad" || key.kind.rfind("grad.", 0) == 0 ||
      key.kind.rfind("grad@", 0) == 0)
    return addGradient(text, key, param);
  if (key.kind == "step") {
    Array array;
    status = reader.read(text, array);
    if (!status.ok())
      return status;
    if (array.info().type != ElementType::I64 || array.elements() != 1)
      return Status::expects("one i8 (int64) number", array.info().describe());
    steps[param] = *array.as<int64_t>();
    return Status();
  }
  const ClassSpec &spec =
      graph->classes[static_cast<size_t>(graph->params[param].cls)];
  std::string known = "grad, param, master, step, control";
  bool isKnown = key.kind == "param" || key.kind == "master";
  for (const StateSpec &state : spec.states) {
    isKnown |= key.kind == state.name;
    known += ", " + state.name;
  }
  if (!isKnown)
    return Status::expects("one of " + known + " before the slash",
                           quoted(key.kind));
  status = checkArray(text, key, param);
  if (!status.ok())
    return status;
  if (!arrays.insert({{key.kind, param}, text}).second)
    return Status::failure("the array is given twice, as " +
                           quoted(arrays[{key.kind, param}]) + " too");
  return Status();
}

Status Source::checkArray(const std::string &text, const Key &key,
                          int param) const {
  ArrayInfo info;
  Status status = reader.readInfo(text, info);
  if (!status.ok())
    return status;
  const std::vector<int64_t> &shape = graph->params[param].shape;
  if (info.shape != shape)
    return Status::expects("shape " + describeShape(shape),
                           describeShape(info.shape));
  bool isFloat = info.type == ElementType::F16 ||
                 info.type == ElementType::F32 || info.type == ElementType::F64;
  if (key.bf16 ? info.type != ElementType::U16 : !isFloat)
    return Status::expects(key.bf16 ? "u2 (the bits of bf16)"
                                    : "f2, f4 or f8 (or u2 under ':bf16')",
                           info.describe());
  return Status();
}

/// Reads digits to the end or to `stop`; false if there are none or too many.
static bool readNumber(const std::string &text, size_t &at, int64_t &number) {
  size_t begin = at;
  number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' &&
         at - begin < 18)
    number = number * 10 + (text[at++] - '0');
  return at > begin;
}

Status Source::addGradient(const std::string &text, const Key &key, int param) {
  Gradient gradient{0, -1, std::make_shared<Array>(), key.bf16};
  size_t at = 4;
  bool good = true;
  if (at < key.kind.size() && key.kind[at] == '.')
    good = readNumber(key.kind, ++at, gradient.step) && gradient.step > 0;
  if (good && at < key.kind.size() && key.kind[at] == '@')
    good = readNumber(key.kind, ++at, gradient.rank) &&
           gradient.rank < graph->ranks();
  if (!good || at != key.kind.size())
    return Status::expects("grad, grad.STEP, grad@RANK or grad.STEP@RANK with "
                           "a step of at least 1 and a rank below " +
                               std::to_string(graph->ranks()),
                           quoted(key.kind));
  Status status = checkArray(text, key, param);
  if (!status.ok())
    return status;
  status = reader.read(text, *gradient.values);
  if (!status.ok())
    return status;
  fileHasGradients = true;
  rankSpecific |= gradient.rank >= 0;
  gradients[param].push_back(gradient);
  return Status();
}

/// One element of an array as f64.
static double element(const Array &array, bool bf16, int64_t index) {
  switch (array.info().type) {
  case ElementType::F16:
    return f32FromF16(array.as<uint16_t>()[index]);
  case ElementType::F32:
    return array.as<float>()[index];
  case ElementType::F64:
    return array.as<double>()[index];
  case ElementType::I32:
    return array.as<int32_t>()[index];
  case ElementType::I64:
    return static_cast<double>(array.as<int64_t>()[index]);
  case ElementType::U16:
    return bf16 ? f32FromBf16(array.as<uint16_t>()[index])
                : array.as<uint16_t>()[index];
  case ElementType::U32:
    return array.as<uint32_t>()[index];
  case ElementType::U64:
    return static_cast<double>(array.as<uint64_t>()[index]);
  case ElementType::Bool:
    return array.as<uint8_t>()[index];
  }
  return 0;
}

Status Source::readControl(const std::string &text, const Key &key) {
  if (findControlField(key.name) < 0)
    return Status::expects("a control field (" + listControlFieldNames() + ")",
                           quoted(key.name));
  Array array;
  Status status = reader.read(text, array);
  if (!status.ok())
    return status;
  if (array.elements() != 1)
    return Status::expects("one number", array.info().describe());
  fields[key.name] = element(array, false, 0);
  return Status();
}

const Source::Gradient *Source::find(int param, int64_t step,
                                     int64_t rank) const {
  const Gradient *best = nullptr;
  for (const Gradient &gradient : gradients[param]) {
    if ((gradient.step != 0 && gradient.step != step) ||
        (gradient.rank >= 0 && gradient.rank != rank))
      continue;
    bool better = !best || gradient.step > best->step ||
                  (gradient.step == best->step && gradient.rank > best->rank);
    if (better)
      best = &gradient;
  }
  return best;
}

bool Source::hasGradient(int param, int64_t step, int64_t rank) const {
  return !fileHasGradients || find(param, step, rank);
}

void Source::gradient(int param, int64_t step, int64_t rank, float scale,
                      int64_t begin, int64_t count, double *target) const {
  const ParamSpec &spec = graph->params[param];
  Format format = graph->classes[static_cast<size_t>(spec.cls)].grad;
  if (!fileHasGradients) {
    SeedStream stream{options.seed, step, "grad", spec.name,
                      options.distinctGradients ? rank : -1};
    SeededValues values(stream, gradientDeviation);
    float piece[256];
    for (int64_t done = 0; done < count; done += 256) {
      int64_t now = std::min<int64_t>(256, count - done);
      values.fill(begin + done, now, piece);
      for (int64_t i = 0; i < now; ++i) {
        float value = piece[i] * scale;
        target[done + i] =
            format == Format::F32 ? value : roundToStorage(format, value);
      }
    }
    return;
  }
  const Gradient *found = find(param, step, rank);
  if (!found) {
    std::fill_n(target, count, 0.0);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    target[i] =
        roundToStorage(format, element(*found->values, found->bf16, begin + i));
}

const std::string *Source::findKey(const std::string &role, int param) const {
  std::map<std::pair<std::string, int>, std::string>::const_iterator found =
      arrays.find({role, param});
  return found == arrays.end() ? nullptr : &found->second;
}

Status Source::readValues(const std::string &key, int param,
                          double *target) const {
  Array array;
  Status status = reader.read(key, array);
  if (!status.ok())
    return status;
  bool bf16 = array.info().type == ElementType::U16;
  for (int64_t i = 0; i < graph->params[param].elements; ++i)
    target[i] = element(array, bf16, i);
  return Status();
}

Status Source::initial(const std::string &role, int param,
                       double *target) const {
  const ParamSpec &spec = graph->params[param];
  const ClassSpec &cls = graph->classes[static_cast<size_t>(spec.cls)];
  if (role != "param" && role != "master") {
    Format format = Format::F32;
    for (const StateSpec &state : cls.states)
      if (state.name == role)
        format = state.format;
    const std::string *key = findKey(role, param);
    if (!key) {
      std::fill_n(target, spec.elements, 0.0);
      return Status();
    }
    Status status = readValues(*key, param, target);
    for (int64_t i = 0; i < spec.elements; ++i)
      target[i] = roundToStorage(format, target[i]);
    return status;
  }
  // A master is exact; without one it is what the parameter holds.
  const std::string *key = findKey("master", param);
  Format format = cls.master == Format::None        ? cls.param
                  : cls.master == Format::Remainder ? Format::F32
                                                    : cls.master;
  if (!key) {
    key = findKey("param", param);
    format = cls.param;
  }
  if (key) {
    Status status = readValues(*key, param, target);
    for (int64_t i = 0; i < spec.elements; ++i)
      target[i] = roundToStorage(format, target[i]);
    return status;
  }
  SeededValues values({options.seed, 0, "param", spec.name, -1},
                      parameterDeviation);
  float piece[256];
  for (int64_t done = 0; done < spec.elements; done += 256) {
    int64_t now = std::min<int64_t>(256, spec.elements - done);
    values.fill(done, now, piece);
    for (int64_t i = 0; i < now; ++i)
      target[done + i] = roundToStorage(format, piece[i]);
  }
  return Status();
}

int64_t Source::initialStep(int param) const {
  std::map<int, int64_t>::const_iterator found = steps.find(param);
  return found == steps.end() ? 0 : found->second;
}
