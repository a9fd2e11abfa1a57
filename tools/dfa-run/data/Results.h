// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a run leaves behind, whoever ran it: arrays as they are stored, in
// logical order, and control fields. Written to .npz files from here.
#ifndef DFA_TOOLS_DFA_RUN_DATA_RESULTS_H
#define DFA_TOOLS_DFA_RUN_DATA_RESULTS_H

#include "reference/Reference.h"
#include "step/StepGraph.h"
#include "support/Status.h"

#include <string>

namespace dfa::run {

/// Arrays of a class by role, with their stored formats: the parameter, its
/// master if it has one of its own, and the states.
struct StoredArray {
  std::string role;
  Format format;
};
std::vector<StoredArray> storedArrays(const ClassSpec &cls);

/// Bytes of an element.
size_t formatBytes(Format format);

/// Writes one value in a format. Steps compute in f32, so that is where the
/// first rounding is.
void storeValue(Format format, double value, int64_t index, void *target);

class Results {
public:
  virtual ~Results() = default;

  /// Copies a parameter's elements of one array. "master" with a remainder is
  /// the exact f32; "remainder" are its low halves.
  virtual Status read(const std::string &role, int param, void *target) = 0;
  /// A control field, by its number.
  virtual Status readControl(int field, double &value) = 0;
  /// Updates of a parameter.
  virtual Status readSteps(int param, int64_t &steps) = 0;
};

/// The results of the reference itself, rounded to what would be stored.
class ReferenceResults : public Results {
public:
  ReferenceResults(const StepGraph &graph, const Reference &reference)
      : graph(graph), reference(reference) {}

  Status read(const std::string &role, int param, void *target) override;
  Status readControl(int field, double &value) override;
  Status readSteps(int param, int64_t &steps) override;

private:
  const StepGraph &graph;
  const Reference &reference;
};

/// Writes all results to a .npz file.
Status writeResults(const std::string &path, const StepGraph &graph,
                    Results &results);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_DATA_RESULTS_H
