// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes, element types and owned arrays. File formats are elsewhere.
#include "support/Array.h"

#include <cstring>

using namespace dfa::run;

size_t dfa::run::elementBytes(ElementType type) {
  switch (type) {
  case ElementType::Bool:
    return 1;
  case ElementType::F16:
  case ElementType::U16:
    return 2;
  case ElementType::F32:
  case ElementType::I32:
  case ElementType::U32:
    return 4;
  case ElementType::F64:
  case ElementType::I64:
  case ElementType::U64:
    return 8;
  }
  return 0;
}

const char *dfa::run::elementName(ElementType type) {
  switch (type) {
  case ElementType::Bool:
    return "b1";
  case ElementType::F16:
    return "f2";
  case ElementType::F32:
    return "f4";
  case ElementType::F64:
    return "f8";
  case ElementType::I32:
    return "i4";
  case ElementType::I64:
    return "i8";
  case ElementType::U16:
    return "u2";
  case ElementType::U32:
    return "u4";
  case ElementType::U64:
    return "u8";
  }
  return "?";
}

int64_t ArrayInfo::elements() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

uint64_t ArrayInfo::bytes() const {
  return static_cast<uint64_t>(elements()) * elementBytes(type);
}

Status ArrayInfo::check() const {
  // Extents of zero are left out of the product: (2^62, 0) is as unusable as
  // (2^62, 4), and the order of the extents must not matter.
  int64_t product = static_cast<int64_t>(elementBytes(type));
  for (int64_t extent : shape) {
    if (extent < 0)
      return Status::expects("non-negative extents", describeShape(shape));
    if (extent != 0 && __builtin_mul_overflow(product, extent, &product))
      return Status::expects("a shape of less than 2^63 bytes",
                             describeShape(shape));
  }
  return Status();
}

std::string ArrayInfo::describe() const {
  return elementName(type) + describeShape(shape);
}

Status Array::allocate(ArrayInfo info) {
  Status valid = info.check();
  if (!valid.ok())
    return valid;
  constexpr size_t alignment = 64;
  uint64_t bytes = info.bytes();
  void *memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes ? bytes : alignment) != 0)
    return Status::failure("cannot allocate " + std::to_string(bytes) +
                           " bytes for " + info.describe());
  storage.reset(memory);
  description = std::move(info);
  return Status();
}

template <typename T>
static void reorder(const std::vector<int64_t> &shape, const T *source,
                    T *target, int64_t elements) {
  // Walks the source in memory order; `place` is the C-order position of the
  // index, kept up to date as the leftmost dimensions count fastest.
  size_t rank = shape.size();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (size_t d = rank - 1; d > 0; --d)
    stride[d - 1] = stride[d] * shape[d];
  int64_t place = 0;
  for (int64_t i = 0; i < elements; ++i) {
    target[place] = source[i];
    for (size_t d = 0; d < rank; ++d) {
      place += stride[d];
      if (++index[d] < shape[d])
        break;
      place -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

void dfa::run::copyFortranToC(const ArrayInfo &info, const void *source,
                              void *target) {
  int64_t elements = info.elements();
  if (elements == 0)
    return;
  if (info.shape.size() < 2) {
    std::memcpy(target, source, info.bytes());
    return;
  }
  switch (elementBytes(info.type)) {
  case 1:
    return reorder(info.shape, static_cast<const uint8_t *>(source),
                   static_cast<uint8_t *>(target), elements);
  case 2:
    return reorder(info.shape, static_cast<const uint16_t *>(source),
                   static_cast<uint16_t *>(target), elements);
  case 4:
    return reorder(info.shape, static_cast<const uint32_t *>(source),
                   static_cast<uint32_t *>(target), elements);
  default:
    return reorder(info.shape, static_cast<const uint64_t *>(source),
                   static_cast<uint64_t *>(target), elements);
  }
}

std::string dfa::run::describeShape(const std::vector<int64_t> &shape) {
  std::string result = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    result += (d ? ", " : "") + std::to_string(shape[d]);
  return result + "]";
}

std::string dfa::run::describeIndex(const std::vector<int64_t> &shape,
                                    int64_t index) {
  std::vector<int64_t> position(shape.size(), 0);
  for (size_t d = shape.size(); d > 0; --d) {
    if (shape[d - 1] <= 0)
      continue;
    position[d - 1] = index % shape[d - 1];
    index /= shape[d - 1];
  }
  return describeShape(position);
}
