// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dense array in host memory and its description, as .npy files have them.
// Reading and writing files is in Npz*.h; values are made in Seeded.h.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_ARRAY_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_ARRAY_H

#include "support/Status.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace dfa::run {

/// The element types that our files may have, in NumPy's words.
enum class ElementType { F16, F32, F64, I32, I64, U16, U32, U64, Bool };

/// Bytes of one element.
size_t elementBytes(ElementType type);

/// NumPy's name of the type without byte order, such as "f4" or "b1".
const char *elementName(ElementType type);

/// Type, shape and storage order of an array. An empty shape is a scalar.
struct ArrayInfo {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  bool fortranOrder = false;

  /// Number of elements. The shape must have passed `check`.
  int64_t elements() const;

  /// Bytes of the data. The shape must have passed `check`.
  uint64_t bytes() const;

  /// Fails if an extent is negative or the bytes do not fit 63 bits.
  Status check() const;

  /// For diagnostics: "f4[320, 4]".
  std::string describe() const;
};

/// Owns the data of one array, aligned to 64 bytes.
class Array {
public:
  /// Replaces the contents by uninitialised memory for `info`.
  Status allocate(ArrayInfo info);

  const ArrayInfo &info() const { return description; }
  int64_t elements() const { return description.elements(); }
  void *data() { return storage.get(); }
  const void *data() const { return storage.get(); }

  /// The data as elements of T; T must have the size of the element type.
  template <typename T> T *as() { return static_cast<T *>(data()); }
  template <typename T> const T *as() const {
    return static_cast<const T *>(data());
  }

private:
  struct Free {
    void operator()(void *pointer) const { std::free(pointer); }
  };
  ArrayInfo description;
  std::unique_ptr<void, Free> storage;
};

/// Copies an array in Fortran order at `source` to C order at `target`.
void copyFortranToC(const ArrayInfo &info, const void *source, void *target);

/// "[3, 4]" for diagnostics.
std::string describeShape(const std::vector<int64_t> &shape);

/// The multi-dimensional form of a flat index in C order: "[2, 0, 1]". For a
/// scalar it is "[]".
std::string describeIndex(const std::vector<int64_t> &shape, int64_t index);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_ARRAY_H
