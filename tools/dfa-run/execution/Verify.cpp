// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a compiled run left behind, against the reference: arrays within their
// bounds, stored values as encodings of our own masters, replicas bit for bit.
#include "execution/Execution.h"
#include "support/Parallel.h"

#include <cmath>

using namespace dfa::run;

/// Elements that are compared at a time.
constexpr int64_t pieceElements = 4096;

/// A stored element as f32, in which steps compute.
static float loadAsF32(Format format, const void *source, int64_t index) {
  switch (format) {
  case Format::F64:
    return static_cast<float>(static_cast<const double *>(source)[index]);
  case Format::F16:
    return f32FromF16(static_cast<const uint16_t *>(source)[index]);
  case Format::BF16:
    return f32FromBf16(static_cast<const uint16_t *>(source)[index]);
  default:
    return static_cast<const float *>(source)[index];
  }
}

Status Execution::verifyStored(const Reference &reference,
                               const StoredArray &array, int param,
                               Comparison &comparison) {
  const ParamSpec &spec = graph->params[param];
  bool isMaster = array.role == "param" || array.role == "master";
  std::string role = isMaster ? graph->masterRole(spec.cls) : array.role;
  int argument = graph->findArgument(role, spec.cls);
  if (argument < 0)
    return Status(); // the step does not have it
  std::vector<char> found(static_cast<size_t>(spec.elements) *
                          formatBytes(array.format));
  Status status = read(array.role, param, found.data());
  if (!status.ok())
    return status;
  const ReferenceArray &wanted = reference.array(argument);
  const double *values = wanted.values.get() + reference.offsetOf(param);
  const float *allTerms = wanted.terms.get() + reference.offsetOf(param);
  std::string name = array.role + "/" + spec.name;
  double expected[pieceElements], terms[pieceElements];
  float stored[pieceElements];
  for (int64_t begin = 0; begin < spec.elements; begin += pieceElements) {
    int64_t count = std::min(pieceElements, spec.elements - begin);
    for (int64_t i = 0; i < count; ++i) {
      stored[i] = loadAsF32(array.format, found.data(), begin + i);
      expected[i] = values[begin + i];
      terms[i] = allTerms[begin + i];
      // Where f32 overflowed on the way nothing is promised.
      if (!(terms[i] < infiniteTerms))
        expected[i] = stored[i];
    }
    comparison.addBounded(name, spec.shape, begin, count, expected, terms,
                          stored);
  }
  return Status();
}

Status Execution::verifyEncoding(int param, Comparison &comparison) {
  const ParamSpec &spec = graph->params[param];
  const ClassSpec &cls = graph->classes[spec.cls];
  size_t count = static_cast<size_t>(spec.elements);
  std::vector<float> master(count);
  std::string name = "param/" + spec.name;
  if (cls.master == Format::Remainder) {
    std::vector<uint16_t> high(count), low(count);
    Status status = read("master", param, master.data());
    if (status.ok())
      status = readStored("param", 0, param, high.data());
    if (status.ok())
      status = readStored("remainder", 0, param, low.data());
    if (status.ok())
      comparison.addRemainder(name, spec.shape, 0, spec.elements, master.data(),
                              high.data(), low.data());
    return status;
  }
  bool narrow = cls.param == Format::BF16 || cls.param == Format::F16;
  if (cls.master != Format::F32 || !narrow)
    return Status();
  std::vector<uint16_t> stored(count);
  Status status = read("master", param, master.data());
  if (status.ok())
    status = read("param", param, stored.data());
  if (status.ok())
    comparison.addEncoding(name, spec.shape, 0, spec.elements,
                           cls.param == Format::BF16 ? Storage::BF16
                                                     : Storage::F16,
                           master.data(), stored.data());
  return status;
}

Status Execution::verifyReplicas(int param, Comparison &comparison) {
  const ParamSpec &spec = graph->params[param];
  // Every rank that has the whole parameter has the same bits.
  if (place.ranks == 1 || rank.fragment("param", param).count != spec.elements)
    return Status();
  std::vector<char> first;
  std::vector<int64_t> equal;
  Status status;
  {
    std::lock_guard<std::recursive_mutex> lock(exchange);
    status = request(Ask::Compare, 0, param);
    if (status.ok())
      status = shared(exchangeEqual(param, first, equal));
  }
  for (size_t i = 1; i < equal.size() && status.ok(); ++i)
    comparison.addScalar("param/" + spec.name + " of rank 0 and " +
                             std::to_string(i) + " (1: equal)",
                         1, static_cast<double>(equal[i]), 0);
  return status;
}

Status Execution::verifyParam(const Reference &reference, int param,
                              Comparison &comparison) {
  const ParamSpec &spec = graph->params[param];
  const ClassSpec &cls = graph->classes[spec.cls];
  bool separate = cls.master != Format::None;
  for (const StoredArray &array : storedArrays(cls)) {
    // A parameter beside a master is checked as its encoding, below.
    if (array.role == "param" && separate)
      continue;
    Status status = verifyStored(reference, array, param, comparison);
    if (!status.ok())
      return status;
  }
  Status status = verifyEncoding(param, comparison);
  if (status.ok())
    status = verifyReplicas(param, comparison);
  int64_t steps = 0;
  if (status.ok())
    status = readSteps(param, steps);
  comparison.addScalar("step/" + spec.name,
                       static_cast<double>(reference.stepsOf(param)),
                       static_cast<double>(steps), 0);
  return status;
}

Status Execution::verifyControl(const Reference &reference,
                                Comparison &comparison) {
  for (int field : {control_step, control_skipped, control_found_inf,
                    control_scale, control_norm}) {
    double found = 0;
    Status status = readControl(field, found);
    if (!status.ok())
      return status;
    Bounded wanted = reference.control().get(field);
    comparison.addScalar(std::string("control/") + controlFieldName(field),
                         wanted.value, found, errorOf(wanted));
  }
  return Status();
}

Status Execution::verify(const Reference &reference, Comparison &comparison) {
  Status status = verifyControl(reference, comparison);
  if (!status.ok())
    return status;
  // Merged in the order of the parameters, so that reports are the same for
  // any number of threads.
  std::vector<Comparison> parts(graph->params.size());
  std::vector<Status> statuses(parts.size());
  parallelFor(static_cast<int64_t>(parts.size()), 1, threads,
              [&](int64_t param, int64_t) {
                statuses[param] = verifyParam(
                    reference, static_cast<int>(param), parts[param]);
              });
  for (size_t i = 0; i < parts.size() && status.ok(); ++i) {
    status = statuses[i];
    comparison.merge(parts[i]);
  }
  return status;
}
