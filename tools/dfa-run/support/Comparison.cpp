// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise checks and the choice of the worst element.
#include "support/Comparison.h"

#include "support/Array.h"

#include <cmath>
#include <cstdio>
#include <limits>

using namespace dfa::run;

static constexpr double infinite = std::numeric_limits<double>::infinity();

/// The error in units of the bound: 0 for equal values, infinite if there is
/// no distance to speak of. Written so that no NaN comes out.
static double errorRatio(double expected, double found, double bound) {
  if (expected == found || (std::isnan(expected) && std::isnan(found)))
    return 0;
  double error = std::fabs(found - expected);
  if (!std::isfinite(error) || !(bound > 0))
    return infinite;
  // An infinite sum of terms would allow anything.
  return std::isfinite(bound) ? error / bound : infinite;
}

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

/// Enough digits to tell any two doubles apart.
static std::string exactNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

std::string ElementReport::describe() const {
  std::string text = quoted(name) + " at " + describeIndex(shape, index) +
                     ": expects " + exactNumber(expected);
  text += bound > 0 ? " within " + number(bound) : std::string(" exactly");
  text += ratio > 1 ? ", but got " : ", got ";
  text += exactNumber(found);
  if (bound > 0 && std::isfinite(ratio))
    text += " (" + number(ratio) + " of the bound)";
  return text;
}

void Comparison::add(const Location &location, double expected, double found,
                     double bound, double ratio) {
  if (ratio > 1)
    ++wrong;
  if (compared++ > 0 && !(ratio > farthest.ratio))
    return;
  farthest = {location.name, location.shape, location.index, expected,
              found,         bound,          ratio};
}

void Comparison::addBounded(const std::string &name,
                            const std::vector<int64_t> &shape, int64_t begin,
                            int64_t count, const double *expected,
                            const double *terms, const float *found) {
  for (int64_t i = 0; i < count; ++i) {
    double bound = verifyBound * terms[i];
    add({name, shape, begin + i}, expected[i], found[i], bound,
        errorRatio(expected[i], found[i], bound));
  }
}

void Comparison::addEncoding(const std::string &name,
                             const std::vector<int64_t> &shape, int64_t begin,
                             int64_t count, Storage storage,
                             const float *master, const uint16_t *found) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t wanted = 0;
    encode(storage, master + i, 1, &wanted);
    if (sameStored(storage, wanted, found[i])) {
      add({name, shape, begin + i}, 0, 0, 0, 0);
      continue;
    }
    float values[2];
    const uint16_t stored[2] = {wanted, found[i]};
    decode(storage, stored, 2, values);
    add({name, shape, begin + i}, values[0], values[1], 0, infinite);
  }
}

void Comparison::addRemainder(const std::string &name,
                              const std::vector<int64_t> &shape, int64_t begin,
                              int64_t count, const float *master,
                              const uint16_t *params,
                              const uint16_t *remainders) {
  for (int64_t i = 0; i < count; ++i) {
    RemainderParts wanted = splitRemainder(master[i]);
    if (wanted.param == params[i] && wanted.remainder == remainders[i]) {
      add({name, shape, begin + i}, 0, 0, 0, 0);
      continue;
    }
    add({name, shape, begin + i}, master[i],
        joinRemainder({params[i], remainders[i]}), 0, infinite);
  }
}

void Comparison::addScalar(const std::string &name, double expected,
                           double found, double bound) {
  static const std::vector<int64_t> scalar;
  add({name, scalar, 0}, expected, found, bound,
      errorRatio(expected, found, bound));
}

void Comparison::merge(const Comparison &other) {
  if (other.compared > 0 &&
      (compared == 0 || other.farthest.ratio > farthest.ratio))
    farthest = other.farthest;
  compared += other.compared;
  wrong += other.wrong;
}
