// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys, counters and the map from random words to values. Everything is
// integer arithmetic up to one exact conversion and one f32 product, so the
// values are the same on every machine.
#include "support/Seeded.h"

#include "support/Parallel.h"
#include "support/Philox.h"

#include <algorithm>

using namespace dfa::run;

/// Counters generated together: enough for the widest vectors, few enough to
/// stay in the first-level cache.
static constexpr int64_t lanes = 64;

/// The output function of SplitMix64 (G. Steele, D. Lea, C. Flood, 2014).
static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

/// 64-bit FNV-1a.
static uint64_t hashText(const std::string &text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

SeededValues::SeededValues(const SeedStream &stream, double deviation) {
  constexpr uint64_t golden = 0x9e3779b97f4a7c15;
  uint64_t hash = 0;
  for (uint64_t part :
       {stream.seed, hashText(stream.role), hashText(stream.name),
        static_cast<uint64_t>(stream.rank)})
    hash = mix((hash ^ part) + golden);
  key[0] = static_cast<uint32_t>(hash);
  key[1] = static_cast<uint32_t>(hash >> 32);
  step[0] = static_cast<uint32_t>(stream.step);
  step[1] = static_cast<uint32_t>(static_cast<uint64_t>(stream.step) >> 32);
  // Twice the sum of four uniform integers below 2^16 deviates by 2^17/sqrt 3.
  constexpr double sumDeviation = 131072 / 1.7320508075688772;
  unit = static_cast<float>(deviation / sumDeviation);
}

/// An odd integer, hence never zero, of at most 19 bits, hence exact in f32.
static inline float fromWords(uint32_t first, uint32_t second, float unit) {
  uint32_t sum =
      (first & 0xffff) + (first >> 16) + (second & 0xffff) + (second >> 16);
  return static_cast<float>(static_cast<int32_t>(2 * sum) - 262139) * unit;
}

void SeededValues::fillPairs(int64_t firstPair, int64_t pairs,
                             float *target) const {
  PhiloxLanes<lanes> block;
  for (int64_t done = 0; done < pairs; done += lanes) {
    uint64_t pair = static_cast<uint64_t>(firstPair + done);
    for (int64_t i = 0; i < lanes; ++i) {
      block.word[0][i] = static_cast<uint32_t>(pair + i);
      block.word[1][i] = static_cast<uint32_t>((pair + i) >> 32);
      block.word[2][i] = step[0];
      block.word[3][i] = step[1];
    }
    block.generate(key[0], key[1]);
    int64_t now = std::min(lanes, pairs - done);
    float *next = target + 2 * done;
    for (int64_t i = 0; i < now; ++i) {
      next[2 * i] = fromWords(block.word[0][i], block.word[1][i], unit);
      next[2 * i + 1] = fromWords(block.word[2][i], block.word[3][i], unit);
    }
  }
}

void SeededValues::fillIndices(const int64_t *indices, int64_t count,
                               float *target) const {
  PhiloxLanes<lanes> block = {};
  for (int64_t done = 0; done < count; done += lanes) {
    int64_t now = std::min(lanes, count - done);
    for (int64_t i = 0; i < now; ++i) {
      uint64_t pair = static_cast<uint64_t>(indices[done + i]) >> 1;
      block.word[0][i] = static_cast<uint32_t>(pair);
      block.word[1][i] = static_cast<uint32_t>(pair >> 32);
      block.word[2][i] = step[0];
      block.word[3][i] = step[1];
    }
    block.generate(key[0], key[1]);
    for (int64_t i = 0; i < now; ++i) {
      float even = fromWords(block.word[0][i], block.word[1][i], unit);
      float odd = fromWords(block.word[2][i], block.word[3][i], unit);
      target[done + i] = (indices[done + i] & 1) != 0 ? odd : even;
    }
  }
}

float SeededValues::at(int64_t index) const {
  float value;
  fillIndices(&index, 1, &value);
  return value;
}

void SeededValues::fill(int64_t begin, int64_t count, float *target) const {
  if (count <= 0)
    return;
  if ((begin & 1) != 0) {
    *target++ = at(begin++);
    --count;
  }
  fillPairs(begin / 2, count / 2, target);
  if ((count & 1) != 0)
    target[count - 1] = at(begin + count - 1);
}

void SeededValues::fill(const ElementOrder &order, int64_t begin, int64_t count,
                        float *target) const {
  if (order.isIdentity())
    return fill(begin, count, target);
  constexpr int64_t piece = 4 * lanes;
  int64_t indices[piece];
  for (int64_t done = 0; done < count; done += piece) {
    int64_t now = std::min(piece, count - done);
    order.indices(begin + done, now, indices);
    fillIndices(indices, now, target + done);
  }
}

void SeededValues::fill(const ElementOrder &order, int64_t begin, int64_t count,
                        Storage storage, void *target, unsigned threads) const {
  constexpr int64_t grain = 1 << 18;
  constexpr int64_t piece = 2048;
  char *bytes = static_cast<char *>(target);
  size_t width = storageBytes(storage);
  parallelFor(count, grain, threads, [&](int64_t first, int64_t last) {
    if (storage == Storage::F32)
      return fill(order, begin + first, last - first,
                  static_cast<float *>(target) + first);
    float values[piece];
    for (int64_t i = first; i < last; i += piece) {
      int64_t now = std::min(piece, last - i);
      fill(order, begin + i, now, values);
      encode(storage, values, now, bytes + static_cast<size_t>(i) * width);
    }
  });
}
