// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Control and segment kernels on the host, against plain C++.

#include "Kernels.h"
#include "Reference.h"
#include "Tables.h"
#include "gtest/gtest.h"

using namespace dfa_test;

namespace {

class HostControl : public testing::TestWithParam<unsigned> {};

} // namespace

static std::vector<double> makePartials(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  for (double &value : values)
    value = std::abs(static_cast<double>(anyFloat(random)) * 1.0000001);
  return values;
}

static std::vector<double> slice(const std::vector<double> &values,
                                 size_t first, size_t count) {
  return {values.begin() + first, values.begin() + first + count};
}

TEST_P(HostControl, CombinesAllAtoms) {
  auto kernels = compile(controlText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ControlKernel>(kernels->lookup("finish"));
  for (int64_t atoms : {0, 1, 1000, 1024, 1025, 5000}) {
    int64_t stride = atoms + 7;
    std::vector<double> partials = makePartials(2 * stride, 1);
    dfa_rt_control_t control = {};
    control.step = 41;
    kernel(&control, partials.data(), stride, atoms, nullptr, nullptr, 0,
           nullptr, nullptr, 1, nullptr);
    double sum =
        combineMatrix(slice(partials, 0, atoms), DFA_RT_COMBINE_COLUMNS, addUp);
    double max = combineMatrix(slice(partials, stride, atoms),
                               DFA_RT_COMBINE_COLUMNS, larger);
    EXPECT_EQ(bitsOf(control.scratch[3]), bitsOf(sum)) << atoms;
    EXPECT_EQ(bitsOf(control.scratch[4]), bitsOf(max)) << atoms;
    EXPECT_EQ(bitsOf(control.norm), bitsOf(std::sqrt(sum))) << atoms;
    EXPECT_EQ(control.step, 42);
  }
}

TEST_P(HostControl, LocalSumsThenRanks) {
  auto kernels = compile(controlText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ControlKernel>(kernels->lookup("finish"));
  const int64_t atoms = 1500, ranks = 3;
  std::vector<double> gathered(2 * ranks, -1.0);
  dfa_rt_control_t control = {};
  double sum = 0, max = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<double> partials = makePartials(2 * atoms, 20 + rank);
    kernel(&control, partials.data(), atoms, atoms, nullptr, nullptr, 0,
           &gathered[2 * rank], nullptr, 1, nullptr);
    sum +=
        combineMatrix(slice(partials, 0, atoms), DFA_RT_COMBINE_COLUMNS, addUp);
    max = larger(max, combineMatrix(slice(partials, atoms, atoms),
                                    DFA_RT_COMBINE_COLUMNS, larger));
  }
  EXPECT_EQ(control.step, 0) << "combining alone runs no scalar code";
  kernel(&control, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, gathered.data(),
         ranks, nullptr);
  EXPECT_EQ(control.step, 1);
  EXPECT_EQ(bitsOf(control.scratch[3]), bitsOf(sum));
  EXPECT_EQ(bitsOf(control.scratch[4]), bitsOf(max));
}

/// What group `g` must get of accumulator `row`.
template <typename Combine>
static double expectGroup(const std::vector<double> &partials, int64_t stride,
                          int64_t row, const std::vector<uint32_t> &groups,
                          uint32_t g, Combine combine) {
  std::vector<double> own(groups.size(), 0.0);
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i] == g)
      own[i] = partials[row * stride + i];
  return combineMatrix(own, DFA_RT_COMBINE_COLUMNS, combine);
}

TEST_P(HostControl, GroupsAloneAndOverRanks) {
  auto kernels = compile(groupText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ControlKernel>(kernels->lookup("groups"));
  const int64_t atoms = 1100, groups = 3, row = 1 + 2 * groups;
  std::vector<uint32_t> atomGroups(atoms);
  for (int64_t i = 0; i < atoms; ++i)
    atomGroups[i] = i % 7 == 0 ? 2 : i % 2;
  std::vector<double> partials = makePartials(3 * atoms, 9);
  std::vector<double> stats(2 * groups, -1.0), local(row, -1.0);
  dfa_rt_control_t control = {};
  kernel(&control, partials.data(), atoms, atoms, nullptr, stats.data(), groups,
         nullptr, nullptr, 1, atomGroups.data());
  kernel(&control, partials.data(), atoms, atoms, nullptr, nullptr, groups,
         local.data(), nullptr, 1, atomGroups.data());
  EXPECT_EQ(bitsOf(control.scratch[0]), bitsOf(local[0]));
  std::vector<double> gathered(local);
  gathered.insert(gathered.end(), local.begin(), local.end());
  std::vector<double> both(2 * groups, -1.0);
  kernel(&control, nullptr, 0, 0, nullptr, both.data(), groups, nullptr,
         gathered.data(), 2, nullptr);
  for (uint32_t g = 0; g < groups; ++g) {
    double sum = expectGroup(partials, atoms, 1, atomGroups, g, addUp);
    double max = expectGroup(partials, atoms, 2, atomGroups, g, larger);
    EXPECT_EQ(bitsOf(stats[2 * g]), bitsOf(sum));
    EXPECT_EQ(bitsOf(stats[2 * g + 1]), bitsOf(max));
    EXPECT_EQ(bitsOf(both[2 * g]), bitsOf(sum + sum));
    EXPECT_EQ(bitsOf(both[2 * g + 1]), bitsOf(max));
  }
}

TEST_P(HostControl, SegmentRowsCountAndDerive) {
  auto kernels = compile(rowsText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<SegmentKernel>(kernels->lookup("rows"));
  Tables tables(0);
  for (uint32_t s = 0; s < 5; ++s) {
    tables.addSegment(10, {}, s % 2);
    tables.states[s].step = s * 1000;
  }
  double groups[] = {1e-3, 0.999, 2e-3, 0.9};
  std::vector<float> derived(3 * 5, -1.0f);
  kernel(nullptr, groups, tables.rows.data(), tables.states.data(),
         derived.data(), 1, 5, nullptr, 0, nullptr, 0, nullptr);
  EXPECT_EQ(tables.states[0].step, 0);
  EXPECT_EQ(derived[0], -1.0f);
  for (uint32_t s = 1; s < 5; ++s) {
    EXPECT_EQ(tables.states[s].step, s * 1000 + 1);
    double power = 1, base = groups[2 * (s % 2) + 1];
    for (int64_t e = s * 1000 + 1; e > 0; e /= 2, base *= base)
      if (e % 2 == 1)
        power *= base;
    EXPECT_EQ(derived[3 * s], static_cast<float>(power));
    EXPECT_EQ(derived[3 * s + 2], static_cast<float>(groups[2 * (s % 2)]));
    EXPECT_EQ(derived[3 * s + 1], -1.0f);
  }
}

TEST_P(HostControl, SegmentsCombineTheirAtoms) {
  auto kernels = compile(segmentSumText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<SegmentKernel>(kernels->lookup("sums"));
  Tables tables(0);
  for (int64_t atoms : {1, 0, 31, 32, 33, 500})
    tables.addSegment(atoms * DFA_RT_ATOM_ELEMENTS, {});
  int64_t stride = tables.firstAtom;
  std::vector<double> partials = makePartials(2 * stride, 4);
  std::vector<float> derived(12);
  std::vector<double> stats(3 * 6, -1.0);
  kernel(nullptr, nullptr, tables.rows.data(), tables.states.data(),
         derived.data(), 0, 6, partials.data(), stride, stats.data(), 3,
         nullptr);
  for (size_t s = 0; s < 6; ++s) {
    dfa_rt_segment_t row;
    std::memcpy(&row, tables.rows.data() + s * tables.stride, sizeof(row));
    double sum = combineMatrix(slice(partials, row.first_atom, row.atoms),
                               DFA_RT_SEGMENT_COMBINE_COLUMNS, addUp);
    double max =
        combineMatrix(slice(partials, stride + row.first_atom, row.atoms),
                      DFA_RT_SEGMENT_COMBINE_COLUMNS, larger);
    EXPECT_EQ(bitsOf(stats[3 * s]), bitsOf(sum)) << s;
    EXPECT_EQ(bitsOf(stats[3 * s + 1]), bitsOf(max)) << s;
    EXPECT_EQ(stats[3 * s + 2], -1.0);
    EXPECT_EQ(derived[2 * s], static_cast<float>(sum));
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, HostControl,
                         testing::Values(1u, 4u, 16u, 32u));
