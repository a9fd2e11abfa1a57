// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element kernels on the host, bit by bit against plain C++.

#include "Kernels.h"
#include "Reference.h"
#include "Tables.h"
#include "gtest/gtest.h"

using namespace dfa_test;

namespace {

/// Tails of every kind, an empty segment, atoms that are whole and cut short.
const int64_t kSizes[] = {1, 0, 7, 64, 255, 256, 300, 8192, 8193, 20011};

/// Arrays of one segment; `shift` elements before the data make the base
/// addresses unaligned.
struct AdamArrays {
  AdamArrays(int64_t elements, int64_t shift, std::mt19937 &random)
      : shift(shift), grad(elements + shift), param(elements + shift),
        master(elements + shift), expAvg(elements + shift),
        expAvgSq(elements + shift) {
    for (int64_t i = shift; i < elements + shift; ++i) {
      grad[i] = toBf16(anyFloat(random));
      master[i] = anyFloat(random);
      expAvg[i] = anyFloat(random);
      expAvgSq[i] = std::abs(anyFloat(random));
    }
  }
  std::vector<void *> bases() {
    return {grad.data() + shift, master.data() + shift, expAvg.data() + shift,
            expAvgSq.data() + shift, param.data() + shift};
  }
  int64_t shift;
  std::vector<uint16_t> grad, param;
  std::vector<float> master, expAvg, expAvgSq;
};

class HostElements : public testing::TestWithParam<unsigned> {};

} // namespace

static const float kDerived[] = {0.1f, 0.001f, 1e-3f, 31.6f, 1e-8f, 1e-5f};

TEST_P(HostElements, AdamwMatchesScalarCode) {
  auto kernels = compile(adamwText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ElementKernel>(kernels->lookup("adamw"));
  for (int64_t shift : {0, 1, 3}) {
    std::mt19937 random(7 + shift);
    Tables tables(5);
    std::vector<AdamArrays> arrays;
    std::vector<float> derived;
    for (int64_t size : kSizes)
      arrays.emplace_back(size, shift, random);
    for (size_t s = 0; s < arrays.size(); ++s) {
      tables.addSegment(kSizes[s], arrays[s].bases());
      for (float value : kDerived)
        derived.push_back(value * (1 + s));
    }
    tables.states[3].active = 0;
    std::vector<AdamArrays> before = arrays;
    dfa_rt_control_t control = {};
    control.factor = 0.37f;
    kernel(&control, tables.rows.data(), tables.states.data(), derived.data(),
           tables.chunks.data(), 0, tables.chunks.size(), 0, nullptr, 0);

    for (size_t s = 0; s < arrays.size(); ++s)
      for (int64_t i = shift; i < kSizes[s] + shift; ++i) {
        AdamValues want = {before[s].master[i], before[s].expAvg[i],
                           before[s].expAvgSq[i]};
        uint16_t param = before[s].param[i];
        if (s != 3) {
          want = adamw(fromBf16(before[s].grad[i]), want, control.factor,
                       &derived[6 * s]);
          param = toBf16(want.p);
        }
        ASSERT_EQ(bitsOf(arrays[s].master[i]), bitsOf(want.p)) << s << " " << i;
        ASSERT_EQ(bitsOf(arrays[s].expAvg[i]), bitsOf(want.m)) << s << " " << i;
        ASSERT_EQ(bitsOf(arrays[s].expAvgSq[i]), bitsOf(want.v))
            << s << " " << i;
        ASSERT_EQ(arrays[s].param[i], param) << s << " " << i;
      }
  }
}

TEST_P(HostElements, ChunkRangeAndFlagLeaveOthersAlone) {
  auto kernels = compile(adamwText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ElementKernel>(kernels->lookup("adamw"));
  std::mt19937 random(3);
  AdamArrays arrays(3 * DFA_RT_ATOM_ELEMENTS, 0, random);
  AdamArrays before = arrays;
  Tables tables(5);
  tables.addSegment(3 * DFA_RT_ATOM_ELEMENTS, arrays.bases());
  dfa_rt_control_t control = {};
  control.found_inf = 1;
  auto run = [&](int64_t begin, int64_t end) {
    kernel(&control, tables.rows.data(), tables.states.data(), kDerived,
           tables.chunks.data(), begin, end, 0, nullptr, 0);
  };
  run(0, 3);
  EXPECT_EQ(arrays.master, before.master);
  control.found_inf = 0;
  run(1, 1);
  EXPECT_EQ(arrays.master, before.master);
  run(1, 2);
  for (int64_t i = 0; i < DFA_RT_ATOM_ELEMENTS; ++i) {
    ASSERT_EQ(arrays.expAvg[i], before.expAvg[i]);
    int64_t last = i + 2 * DFA_RT_ATOM_ELEMENTS;
    ASSERT_EQ(arrays.expAvg[last], before.expAvg[last]);
  }
  EXPECT_NE(arrays.expAvg[DFA_RT_ATOM_ELEMENTS],
            before.expAvg[DFA_RT_ATOM_ELEMENTS]);
}

/// Runs a norm kernel over segments of all sizes and compares the partials.
template <typename T, typename ToDouble>
static void checkNorm(const std::string &type, unsigned width,
                      const std::vector<T> &data, int64_t shift,
                      ToDouble toDouble) {
  auto kernels = compile(normText(type), width);
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ElementKernel>(kernels->lookup("norm"));
  Tables tables(1);
  std::vector<T> copy = data;
  for (int64_t size : kSizes)
    tables.addSegment(size, {copy.data() + shift});
  tables.states[4].active = 0;
  int64_t atoms = tables.chunks.size();
  int64_t stride = atoms + 3;
  std::vector<double> partials(2 * stride, -1.0);
  kernel(nullptr, tables.rows.data(), tables.states.data(), nullptr,
         tables.chunks.data(), 0, atoms, 0, partials.data(), stride);
  for (int64_t a = 0; a < atoms; ++a) {
    const dfa_rt_chunk_t &atom = tables.chunks[a];
    std::vector<double> squares, magnitudes;
    for (int64_t i = 0; i < atom.length && atom.segment != 4; ++i) {
      double x = toDouble(data[shift + atom.offset + i]);
      squares.push_back(x * x);
      magnitudes.push_back(std::abs(x));
    }
    EXPECT_EQ(bitsOf(partials[a]),
              bitsOf(combineMatrix(squares, DFA_RT_ATOM_COLUMNS, addUp)))
        << "atom " << a;
    EXPECT_EQ(bitsOf(partials[stride + a]),
              bitsOf(combineMatrix(magnitudes, DFA_RT_ATOM_COLUMNS, larger)))
        << "atom " << a;
  }
  EXPECT_EQ(partials[atoms], -1.0);
}

TEST_P(HostElements, NormOfF32) {
  std::mt19937 random(11);
  std::vector<float> data(30000);
  for (float &value : data)
    value = anyFloat(random);
  for (int64_t shift : {0, 1, 5})
    checkNorm<float>("f32", GetParam(), data, shift,
                     [](float x) { return static_cast<double>(x); });
}

TEST_P(HostElements, NormOfBf16) {
  std::mt19937 random(12);
  std::vector<uint16_t> data(30000);
  for (uint16_t &value : data)
    value = toBf16(anyFloat(random));
  for (int64_t shift : {0, 1})
    checkNorm<uint16_t>("bf16", GetParam(), data, shift, [](uint16_t x) {
      return static_cast<double>(fromBf16(x));
    });
}

TEST_P(HostElements, MaximumKeepsNan) {
  auto kernels = compile(normText("f32"), GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ElementKernel>(kernels->lookup("norm"));
  for (int64_t place : {0, 5, 256, 8190, 8191}) {
    std::vector<float> data(8192, 1.0f);
    data[place] = std::nanf("");
    Tables tables(1);
    tables.addSegment(8192, {data.data()});
    double partials[2] = {0, 0};
    kernel(nullptr, tables.rows.data(), tables.states.data(), nullptr,
           tables.chunks.data(), 0, 1, 0, partials, 1);
    EXPECT_TRUE(std::isnan(partials[0]));
    EXPECT_TRUE(std::isnan(partials[1])) << place;
  }
}

TEST_P(HostElements, ReductionThatWrites) {
  auto kernels = compile(halveText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ElementKernel>(kernels->lookup("halve"));
  std::mt19937 random(5);
  std::vector<float> data(9000);
  for (float &value : data)
    value = anyFloat(random);
  std::vector<float> before = data;
  Tables tables(1);
  tables.addSegment(9000, {data.data()});
  double partials[2];
  kernel(nullptr, tables.rows.data(), tables.states.data(), nullptr,
         tables.chunks.data(), 0, 2, 0, partials, 2);
  for (size_t i = 0; i < data.size(); ++i)
    ASSERT_EQ(bitsOf(data[i]), bitsOf(before[i] * 0.5f));
  std::vector<double> first(before.begin(), before.begin() + 8192);
  std::vector<double> second(before.begin() + 8192, before.end());
  EXPECT_EQ(partials[0], combineMatrix(first, DFA_RT_ATOM_COLUMNS, addUp));
  EXPECT_EQ(partials[1], combineMatrix(second, DFA_RT_ATOM_COLUMNS, addUp));
}

/// Offsets beyond 32 bits: the base address lies as far before the data.
TEST_P(HostElements, OffsetsOf64Bits) {
  auto kernels = compile(halveText, GetParam());
  ASSERT_NE(kernels, nullptr);
  auto kernel = reinterpret_cast<ElementKernel>(kernels->lookup("halve"));
  for (int64_t offset : {int64_t(1) << 31, int64_t(5) << 33}) {
    std::vector<float> data(100, 3.0f);
    uintptr_t base = reinterpret_cast<uintptr_t>(data.data()) -
                     static_cast<uintptr_t>(offset) * sizeof(float);
    Tables tables(1);
    tables.addSegment(100, {reinterpret_cast<void *>(base)}, 0, offset);
    double partial = 0;
    kernel(nullptr, tables.rows.data(), tables.states.data(), nullptr,
           tables.chunks.data(), 0, 1, 0, &partial, 1);
    EXPECT_EQ(data, std::vector<float>(100, 1.5f));
    EXPECT_EQ(partial, 300.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, HostElements,
                         testing::Values(1u, 4u, 8u, 16u, 32u));
