// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Storage formats by name and size, and the alignment that follows from them.
// How a format encodes a number is the compiler's business.
#ifndef DFA_LAYOUT_FORMAT_H
#define DFA_LAYOUT_FORMAT_H

#include "layout/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dfa {
namespace layout {

/// The format of one array of a class. Remainder is the 16 bits that make a
/// bf16 parameter an exact f32 master.
enum class Format : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  Remainder,
  F8E4M3,
  F8E5M2,
  I8,
};

/// Bytes of one element.
int64_t formatBytes(Format format);

/// The name users write: f64, f32, f16, bf16, remainder, f8e4m3, f8e5m2, i8.
const char *formatName(Format format);

/// The format of a name.
Expected<Format> parseFormat(const std::string &name);

/// One array that has an element for each element of the parameters.
struct ArraySpec {
  std::string name;
  Format format = Format::F32;
};

/// What parameters must have in common to share a bucket.
struct ClassSpec {
  std::string name;
  std::vector<ArraySpec> arrays;
  /// In which format gradients travel: `bucketBytes` counts in it.
  Format syncFormat = Format::F32;
  /// Elements that share one statistic of a blockwise format (a power of two;
  /// 1 if there is none). No block straddles a shard cut.
  int64_t block = 1;
};

/// The multiple, in elements, of every parameter start and shard cut: in the
/// narrowest array it is 128 bytes, so the same element offset is aligned in
/// all of them.
Expected<int64_t> classAlignment(const ClassSpec &spec);

} // namespace layout
} // namespace dfa

#endif // DFA_LAYOUT_FORMAT_H
