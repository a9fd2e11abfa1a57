// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `dfa-run --verify` demands of results, and the report on the element
// that is farthest from it. The reference itself is not here.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_COMPARISON_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_COMPARISON_H

#include "support/Conversions.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dfa::run {

/// The allowed error, as a part of the sum of the absolute terms that were
/// accumulated into the element over the run.
constexpr double verifyBound = 0x1p-20;

/// One element, where it is and how far off it is.
struct ElementReport {
  /// A key such as "exp_avg/conv.weight".
  std::string name;
  std::vector<int64_t> shape;
  int64_t index = 0; // logical
  double expected = 0;
  double found = 0;
  double bound = 0;
  /// Error by bound; above 1 the element is wrong. Infinite if an exact value
  /// is not met or only one of the two is finite.
  double ratio = 0;

  /// "'master/w' at [0, 3]: expects 0.5 within 1e-9, but got 0.7 (...)".
  std::string describe() const;
};

/// Collects comparisons. Ranges of one array may be added piece by piece, and
/// comparisons made by several threads are merged.
class Comparison {
public:
  /// Each element of `found` must be within `verifyBound * terms` of
  /// `expected`. NaN meets NaN only, an infinity the same infinity only. The
  /// pointers are at logical index `begin`.
  void addBounded(const std::string &name, const std::vector<int64_t> &shape,
                  int64_t begin, int64_t count, const double *expected,
                  const double *terms, const float *found);

  /// Each element of `found` must be the encoding of `master`, bit for bit
  /// (NaN payloads apart).
  void addEncoding(const std::string &name, const std::vector<int64_t> &shape,
                   int64_t begin, int64_t count, Storage storage,
                   const float *master, const uint16_t *found);

  /// The two 16-bit halves must be the remainder form of `master`.
  void addRemainder(const std::string &name, const std::vector<int64_t> &shape,
                    int64_t begin, int64_t count, const float *master,
                    const uint16_t *params, const uint16_t *remainders);

  /// One value that must be within `bound` (0: exactly).
  void addScalar(const std::string &name, double expected, double found,
                 double bound);

  /// Takes over what `other` collected; on a tie this one's worst stays.
  void merge(const Comparison &other);

  bool passed() const { return wrong == 0; }
  int64_t elements() const { return compared; }
  int64_t failures() const { return wrong; }

  /// The element with the largest ratio; null if nothing was compared.
  const ElementReport *worst() const { return compared ? &farthest : nullptr; }

private:
  struct Location {
    const std::string &name;
    const std::vector<int64_t> &shape;
    int64_t index;
  };
  void add(const Location &location, double expected, double found,
           double bound, double ratio);

  ElementReport farthest;
  int64_t compared = 0;
  int64_t wrong = 0;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_COMPARISON_H
