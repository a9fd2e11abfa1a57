// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The control block as the reference sees it, and the ops that change it. The
// fields are those of dfa-rt/control.def.
#ifndef DFA_TOOLS_DFA_RUN_REFERENCE_CONTROLSTATE_H
#define DFA_TOOLS_DFA_RUN_REFERENCE_CONTROLSTATE_H

#include "reference/Bounded.h"

#include <string>
#include <vector>

namespace dfa::run {

/// Numbers of the fields, in the order of control.def.
enum ControlField {
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc) control_##name,
#include "dfa-rt/control.def"
  controlFieldCount
};

/// The number of a field, or -1.
int findControlField(const std::string &name);

/// The name of a field.
const char *controlFieldName(int field);

/// All names that users may know, for diagnostics.
std::string listControlFieldNames();

class ControlState {
public:
  /// Initial values, as control.def has them.
  ControlState();

  Bounded get(int field) const { return fields[field]; }
  double value(int field) const { return fields[field].value; }
  /// Sets a field, rounded to its type.
  void set(int field, Bounded value);
  void set(int field, double value) { set(field, exactly(value)); }

  /// average / scale.
  Bounded gradFactor() const;
  /// Growth and backoff of the loss scale.
  void updateScale(bool foundInf);
  /// Counts a step or a skip.
  void countStep(bool hasFlag, bool foundInf);
  /// Forgets the gradients.
  void zeroGrad();

private:
  Bounded fields[controlFieldCount];
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_REFERENCE_CONTROLSTATE_H
