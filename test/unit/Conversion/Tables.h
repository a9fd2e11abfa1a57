// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables as the runtime makes them, for a few segments, and the types of
// compiled kernels.

#ifndef DFA_TEST_UNIT_CONVERSION_TABLES_H
#define DFA_TEST_UNIT_CONVERSION_TABLES_H

#include "dfa-rt/abi.h"
#include <cstdint>
#include <cstring>
#include <vector>

namespace dfa_test {

using ElementKernel = void (*)(dfa_rt_control_t *, const void *,
                               dfa_rt_segment_state_t *, const float *,
                               const dfa_rt_chunk_t *, int64_t, int64_t,
                               uint32_t, double *, int64_t);
using ControlKernel = void (*)(dfa_rt_control_t *, const double *, int64_t,
                               int64_t, const double *, double *, int64_t,
                               double *, const double *, int64_t,
                               const uint32_t *);
using SegmentKernel = void (*)(dfa_rt_control_t *, const double *, const void *,
                               dfa_rt_segment_state_t *, float *, int64_t,
                               int64_t, const double *, int64_t, double *,
                               int64_t, const double *);

/// Segment rows with `arrays` base addresses, and chunks over them.
class Tables {
public:
  explicit Tables(size_t arrays)
      : stride((sizeof(dfa_rt_segment_t) + 8 * arrays + 15) / 16 * 16) {}

  void addSegment(int64_t elements, const std::vector<void *> &bases,
                  uint32_t group = 0, int64_t offset = 0) {
    int64_t atoms =
        (elements + DFA_RT_ATOM_ELEMENTS - 1) / DFA_RT_ATOM_ELEMENTS;
    dfa_rt_segment_t row = {elements, firstAtom, atoms, group, 0};
    firstAtom += atoms;
    size_t at = rows.size();
    rows.resize(at + stride);
    std::memcpy(rows.data() + at, &row, sizeof(row));
    if (!bases.empty())
      std::memcpy(rows.data() + at + sizeof(row), bases.data(),
                  8 * bases.size());
    uint32_t segment = static_cast<uint32_t>(states.size());
    states.push_back({0, 1, 0});
    for (int64_t i = 0; i < elements; i += DFA_RT_ATOM_ELEMENTS) {
      int64_t length = elements - i < DFA_RT_ATOM_ELEMENTS
                           ? elements - i
                           : DFA_RT_ATOM_ELEMENTS;
      chunks.push_back({offset + i, static_cast<uint32_t>(length), segment});
      atomGroups.push_back(group);
    }
  }

  size_t stride;
  int64_t firstAtom = 0;
  std::vector<uint8_t> rows;
  std::vector<dfa_rt_segment_state_t> states;
  std::vector<dfa_rt_chunk_t> chunks;
  std::vector<uint32_t> atomGroups;
};

} // namespace dfa_test

#endif // DFA_TEST_UNIT_CONVERSION_TABLES_H
