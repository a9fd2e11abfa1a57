// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fields by name, and the state machine of the loss scale.
#include "reference/ControlState.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

using namespace dfa::run;

namespace {

struct FieldInfo {
  const char *name;
  bool isFloat; // f32: values are rounded
  double init;
};

} // namespace

static const FieldInfo infos[] = {
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc)                     \
  {#name, std::is_same<ctype, float>::value, static_cast<double>(init)},
#include "dfa-rt/control.def"
};

int dfa::run::findControlField(const std::string &name) {
  for (int i = 0; i < controlFieldCount; ++i)
    if (name == infos[i].name && name.rfind("reserved", 0) != 0)
      return i;
  return -1;
}

const char *dfa::run::controlFieldName(int field) { return infos[field].name; }

std::string dfa::run::listControlFieldNames() {
  std::string list;
  for (const FieldInfo &info : infos)
    if (std::string(info.name).rfind("reserved", 0) != 0)
      list += (list.empty() ? "" : ", ") + std::string(info.name);
  return list;
}

ControlState::ControlState() {
  for (int i = 0; i < controlFieldCount; ++i)
    fields[i] = exactly(infos[i].init);
}

void ControlState::set(int field, Bounded value) {
  if (infos[field].isFloat) {
    double single = static_cast<float>(value.value);
    value.terms += single == value.value ? 0 : 0.25 * std::fabs(value.value);
    value.value = single;
  }
  fields[field] = value;
}

Bounded ControlState::gradFactor() const {
  Bounded average = fields[control_average], scale = fields[control_scale];
  Bounded factor = average / scale;
  if (average.terms == 0 && scale.terms == 0)
    factor.terms = 0; // f64
  return factor;
}

void ControlState::updateScale(bool foundInf) {
  if (foundInf) {
    double left = value(control_hysteresis_tracker) - 1;
    set(control_hysteresis_tracker, left);
    if (left <= 0)
      set(control_scale, value(control_scale) * value(control_backoff_factor));
    set(control_growth_tracker, 0.0);
    return;
  }
  double good = value(control_growth_tracker) + 1;
  if (good == value(control_growth_interval)) {
    double grown = value(control_scale) * value(control_growth_factor);
    if (grown < f32Overflow)
      set(control_scale, grown);
    good = 0;
  }
  set(control_growth_tracker, good);
  set(control_hysteresis_tracker, value(control_hysteresis));
}

void ControlState::countStep(bool hasFlag, bool foundInf) {
  int counter = hasFlag && foundInf ? control_skipped : control_step;
  set(counter, value(counter) + 1);
  if (hasFlag)
    set(control_found_inf, foundInf ? 1.0 : 0.0);
}

void ControlState::zeroGrad() {
  set(control_generation, value(control_generation) + 1);
}
