// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and sizes of storage formats; see the header.
#include "layout/Format.h"

#include "dfa-rt/abi.h"
#include "layout/Checked.h"

#include <algorithm>

namespace dfa {
namespace layout {

namespace {
struct FormatRow {
  Format format;
  const char *name;
  int64_t bytes;
};
} // namespace

static const FormatRow formatRows[] = {
    {Format::F64, "f64", 8},
    {Format::F32, "f32", 4},
    {Format::F16, "f16", 2},
    {Format::BF16, "bf16", 2},
    {Format::Remainder, "remainder", 2},
    {Format::F8E4M3, "f8e4m3", 1},
    {Format::F8E5M2, "f8e5m2", 1},
    {Format::I8, "i8", 1},
};

static const FormatRow &rowOf(Format format) {
  return formatRows[static_cast<size_t>(format)];
}

int64_t formatBytes(Format format) { return rowOf(format).bytes; }

const char *formatName(Format format) { return rowOf(format).name; }

Expected<Format> parseFormat(const std::string &name) {
  std::string known;
  for (const FormatRow &row : formatRows) {
    if (name == row.name)
      return row.format;
    known += known.empty() ? row.name : std::string(", ") + row.name;
  }
  return Status::error("expected a format out of " + known + ", but got '" +
                       name + "'");
}

Expected<int64_t> classAlignment(const ClassSpec &spec) {
  if (spec.arrays.empty())
    return Status::error("class '" + spec.name +
                         "': expected at least one array, but got none");
  if (!isPowerOfTwo(spec.block) || spec.block > (int64_t(1) << 20))
    return Status::error("class '" + spec.name +
                         "': expected a block that is a power of two up to "
                         "1048576, but got " +
                         std::to_string(spec.block));
  // The wire format counts too: buckets of gradients in it are cut as well.
  int64_t narrowest = formatBytes(spec.syncFormat);
  for (const ArraySpec &array : spec.arrays)
    narrowest = std::min(narrowest, formatBytes(array.format));
  return std::max<int64_t>(DFA_RT_ALIGN_BYTES / narrowest, spec.block);
}

} // namespace layout
} // namespace dfa
