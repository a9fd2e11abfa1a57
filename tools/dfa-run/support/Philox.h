// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The counter-based generator Philox4x32-10 of J. Salmon, M. Moraes, R. Dror
// and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), written
// from the paper: ten rounds, each two 32x32-bit products whose high halves
// are mixed with the neighbouring word and a key that grows by Weyl constants.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_PHILOX_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_PHILOX_H

#include <cstddef>
#include <cstdint>

namespace dfa::run {

/// `Lanes` independent counters in separate arrays, so that compilers turn the
/// loop over lanes into vector code.
template <size_t Lanes> struct PhiloxLanes {
  uint32_t word[4][Lanes];

  /// Replaces every counter by its random words under the key.
  void generate(uint32_t key0, uint32_t key1) {
    constexpr uint64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
    constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
    for (int round = 0; round < 10; ++round) {
      for (size_t i = 0; i < Lanes; ++i) {
        uint64_t product0 = multiplier0 * word[0][i];
        uint64_t product1 = multiplier1 * word[2][i];
        uint32_t high0 = static_cast<uint32_t>(product0 >> 32);
        uint32_t high1 = static_cast<uint32_t>(product1 >> 32);
        word[0][i] = high1 ^ word[1][i] ^ key0;
        word[1][i] = static_cast<uint32_t>(product1);
        word[2][i] = high0 ^ word[3][i] ^ key1;
        word[3][i] = static_cast<uint32_t>(product0);
      }
      key0 += weyl0;
      key1 += weyl1;
    }
  }
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_PHILOX_H
