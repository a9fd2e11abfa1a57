// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys, formats, and the reference's values in them.
#include "data/Results.h"
#include "support/NpzWriter.h"

#include <memory>

using namespace dfa::run;

std::vector<StoredArray> dfa::run::storedArrays(const ClassSpec &cls) {
  std::vector<StoredArray> arrays = {{"param", cls.param}};
  if (cls.master == Format::Remainder)
    arrays.push_back({"master", Format::F32});
  else if (cls.master != Format::None)
    arrays.push_back({"master", cls.master});
  for (const StateSpec &state : cls.states)
    arrays.push_back({state.name, state.format});
  return arrays;
}

size_t dfa::run::formatBytes(Format format) {
  switch (format) {
  case Format::F64:
    return 8;
  case Format::F32:
    return 4;
  case Format::None:
    return 0;
  default:
    return 2;
  }
}

void dfa::run::storeValue(Format format, double value, int64_t index,
                          void *target) {
  float single = static_cast<float>(value);
  switch (format) {
  case Format::F64:
    static_cast<double *>(target)[index] = value;
    break;
  case Format::F16:
    static_cast<uint16_t *>(target)[index] = f16FromF32(single);
    break;
  case Format::BF16:
    static_cast<uint16_t *>(target)[index] = bf16FromF32(single);
    break;
  default:
    static_cast<float *>(target)[index] = single;
  }
}

Status ReferenceResults::read(const std::string &role, int param,
                              void *target) {
  const ParamSpec &spec = graph.params[param];
  const ClassSpec &cls = graph.classes[static_cast<size_t>(spec.cls)];
  bool isMaster = role == "param" || role == "master" || role == "remainder";
  std::string source = isMaster ? graph.masterRole(spec.cls) : role;
  Format format = Format::F32;
  for (const StoredArray &array : storedArrays(cls))
    if (array.role == role)
      format = array.format;
  int argument = graph.findArgument(source, spec.cls);
  if (argument < 0 || !reference.array(argument).values)
    return Status::expects("a step with role " + quoted(source),
                           "none for class @" + cls.name);
  const double *values =
      reference.array(argument).values.get() + reference.offsetOf(param);
  bool split = cls.master == Format::Remainder;
  for (int64_t i = 0; i < spec.elements; ++i) {
    if (split && (role == "param" || role == "remainder")) {
      RemainderParts parts = splitRemainder(static_cast<float>(values[i]));
      static_cast<uint16_t *>(target)[i] =
          role == "param" ? parts.param : parts.remainder;
      continue;
    }
    storeValue(format, values[i], i, target);
  }
  return Status();
}

Status ReferenceResults::readControl(int field, double &value) {
  value = reference.control().value(field);
  return Status();
}

Status ReferenceResults::readSteps(int param, int64_t &steps) {
  steps = reference.stepsOf(param);
  return Status();
}

/// The type of an array in a file.
static ElementType elementType(Format format) {
  switch (format) {
  case Format::F64:
    return ElementType::F64;
  case Format::F32:
    return ElementType::F32;
  case Format::F16:
    return ElementType::F16;
  default:
    return ElementType::U16;
  }
}

Status dfa::run::writeResults(const std::string &path, const StepGraph &graph,
                              Results &results) {
  NpzWriter writer;
  Status status = writer.open(path);
  for (size_t i = 0; i < graph.params.size() && status.ok(); ++i) {
    const ParamSpec &param = graph.params[i];
    const ClassSpec &cls = graph.classes[static_cast<size_t>(param.cls)];
    for (const StoredArray &array : storedArrays(cls)) {
      std::unique_ptr<char[]> data(
          new char[static_cast<size_t>(param.elements) *
                       formatBytes(array.format) +
                   1]);
      status = results.read(array.role, static_cast<int>(i), data.get());
      if (!status.ok())
        return status;
      Key key{array.role, param.name, array.format == Format::BF16};
      ArrayInfo info{elementType(array.format), param.shape};
      status = writer.add(key.str(), info, data.get());
      if (!status.ok())
        return status;
    }
    int64_t steps = 0;
    status = results.readSteps(static_cast<int>(i), steps);
    if (status.ok())
      status = writer.addScalar("step/" + param.name, steps);
  }
  for (int field :
       {control_step, control_scale, control_found_inf, control_norm,
        control_skipped, control_growth_tracker, control_hysteresis_tracker}) {
    if (!status.ok())
      return status;
    double value = 0;
    status = results.readControl(field, value);
    if (!status.ok())
      return status;
    std::string key = std::string(controlKind) + "/" + controlFieldName(field);
    bool isReal = field == control_scale || field == control_norm;
    status = isReal ? writer.addScalar(key, value)
                    : writer.addScalar(key, static_cast<int64_t>(value));
  }
  return status.ok() ? writer.close() : status;
}
