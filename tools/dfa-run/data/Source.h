// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a run's parameters, states and gradients come from: a .npz file, or
// the seed. The same source feeds the compiled step and the reference.
#ifndef DFA_TOOLS_DFA_RUN_DATA_SOURCE_H
#define DFA_TOOLS_DFA_RUN_DATA_SOURCE_H

#include "step/StepGraph.h"
#include "support/Keys.h"
#include "support/NpzReader.h"
#include "support/Seeded.h"
#include "support/Status.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dfa::run {

struct SourceOptions {
  std::string inputs; // path of a .npz file, or empty
  uint64_t seed = 0;
  bool distinctGradients = false;
};

/// Keys of a .npz file that it understands, NAME being a parameter's name:
///   param/NAME, master/NAME, STATE/NAME   initial values (else: seeded
///                                         parameters, states of zero)
///   step/NAME                             updates so far
///   grad/NAME                             the gradient in every step
///   grad.K/NAME                           in step K (from 1)
///   grad@R/NAME, grad.K@R/NAME            on rank R
///   control/FIELD                         initial control fields
/// The most specific key wins. A file with any gradient has all of them: a
/// parameter without one in a step gets none. Values are rounded to the
/// class's storage format. All values are in logical order.
class Source {
public:
  /// Opens the file and checks all keys, types and shapes; reads gradients.
  Status open(const StepGraph &graph, const SourceOptions &options);

  bool hasGradient(int param, int64_t step, int64_t rank) const;

  /// Gradient elements of logical indices [begin, begin + count), rounded to
  /// the class's format; zeros if there is none. Seeded gradients are those of
  /// a loss that was multiplied by `scale`; a file's are taken as they are.
  void gradient(int param, int64_t step, int64_t rank, float scale,
                int64_t begin, int64_t count, double *target) const;

  /// Whether ranks differ in their gradients.
  bool ranksDiffer() const { return rankSpecific || options.distinctGradients; }

  /// Initial values of an array of the step ("param", "master" or a state) for
  /// one parameter, all elements. "master" falls back to "param" and the other
  /// way round, so that both hold one value.
  Status initial(const std::string &role, int param, double *target) const;

  /// Updates that a parameter has had before.
  int64_t initialStep(int param) const;

  /// Initial control fields that the file gives.
  const std::map<std::string, double> &control() const { return fields; }

private:
  struct Gradient {
    int64_t step; // 0: every step
    int64_t rank; // -1: every rank
    std::shared_ptr<Array> values;
    bool bf16;
  };

  Status addKey(const std::string &text);
  Status addGradient(const std::string &text, const Key &key, int param);
  Status readControl(const std::string &text, const Key &key);
  Status checkArray(const std::string &text, const Key &key, int param) const;
  const Gradient *find(int param, int64_t step, int64_t rank) const;
  const std::string *findKey(const std::string &role, int param) const;
  Status readValues(const std::string &key, int param, double *target) const;

  const StepGraph *graph = nullptr;
  SourceOptions options;
  NpzReader reader;
  std::map<std::string, int> paramNumbers;
  std::vector<std::vector<Gradient>> gradients; // by parameter
  std::map<std::pair<std::string, int>, std::string> arrays;
  std::map<std::string, double> fields;
  std::map<int, int64_t> steps;
  bool fileHasGradients = false;
  bool rankSpecific = false;
};

/// Rounds a value to a format that the framework stores.
double roundToStorage(Format format, double value);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_DATA_SOURCE_H
