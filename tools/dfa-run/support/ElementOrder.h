// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the elements of a logical tensor lie in memory when its dimensions are
// permuted (NHWC and the like): memory position to logical index and back.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_ELEMENTORDER_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_ELEMENTORDER_H

#include "support/Status.h"

#include <cstdint>
#include <vector>

namespace dfa::run {

/// A dense order: `order` lists the dimensions of `shape`, slowest first. The
/// logical index of an element is its flat index in C order.
class ElementOrder {
public:
  /// Fails if `order` is no permutation of the dimensions. An empty `order`
  /// is C order.
  static Status create(const std::vector<int64_t> &shape,
                       const std::vector<int64_t> &order, ElementOrder &result);

  int64_t elements() const { return total; }

  /// Memory positions equal logical indices.
  bool isIdentity() const { return identity; }

  /// Writes the logical indices of memory positions [begin, begin + count).
  void indices(int64_t begin, int64_t count, int64_t *target) const;

  /// Copies `count` elements that lie at memory position `begin` and further
  /// to their places in `logical`, an array of all elements in C order.
  template <typename T>
  void toLogical(const T *memory, int64_t begin, int64_t count,
                 T *logical) const {
    move(begin, count,
         [&](int64_t i, int64_t index) { logical[index] = memory[i]; });
  }

  /// The inverse of `toLogical`.
  template <typename T>
  void fromLogical(const T *logical, int64_t begin, int64_t count,
                   T *memory) const {
    move(begin, count,
         [&](int64_t i, int64_t index) { memory[i] = logical[index]; });
  }

private:
  template <typename Move>
  void move(int64_t begin, int64_t count, Move moveOne) const {
    constexpr int64_t piece = 256;
    int64_t index[piece];
    for (int64_t done = 0; done < count; done += piece) {
      int64_t now = count - done < piece ? count - done : piece;
      indices(begin + done, now, index);
      for (int64_t i = 0; i < now; ++i)
        moveOne(done + i, index[i]);
    }
  }

  // Dimensions in memory order, slowest first, without those of extent 1.
  std::vector<int64_t> extents, strides;
  int64_t total = 1;
  bool identity = true;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_ELEMENTORDER_H
