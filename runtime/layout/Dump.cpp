// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints and hashes plans; see the header.
#include "layout/Dump.h"

namespace dfa {
namespace layout {

static constexpr uint64_t fnvOffset = 14695981039346656037ull;
static constexpr uint64_t fnvPrime = 1099511628211ull;

static uint64_t extendHash(uint64_t hash, std::string_view text) {
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * fnvPrime;
  return hash;
}

uint64_t textHash(std::string_view text) { return extendHash(fnvOffset, text); }

/// A name that stays on its line whatever it contains.
static std::string quoted(const std::string &name) {
  static const char digits[] = "0123456789abcdef";
  std::string text = "\"";
  for (char c : name) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '"' || c == '\\') {
      text += "\\x";
      text += digits[byte >> 4];
      text += digits[byte & 15];
    } else {
      text += c;
    }
  }
  return text + "\"";
}

/// " key=value".
static std::string field(const char *key, int64_t value) {
  return " " + std::string(key) + "=" + std::to_string(value);
}

static std::string classLine(const ClassSpec &spec, const ClassLayout &row) {
  std::string line =
      "class " + quoted(spec.name) + " sync=" + formatName(spec.syncFormat) +
      field("block", spec.block) + field("align", row.alignment) + " arrays=";
  for (size_t i = 0; i < spec.arrays.size(); ++i) {
    if (i != 0)
      line += ',';
    line +=
        quoted(spec.arrays[i].name) + ":" + formatName(spec.arrays[i].format);
  }
  return line + field("shard", row.shardElements);
}

static std::string paramLine(const ParamSpec &param, const Placement &place) {
  std::string line =
      "param " + quoted(param.name) + " shape=" + listText(param.shape) +
      " order=" + listText(param.order) + field("class", param.cls) +
      field("group", param.group) + field("bucket", place.bucket) +
      field("start", place.start);
  if (param.flags != 0)
    line += field("flags", static_cast<int64_t>(param.flags));
  if (param.sharedWith != -1)
    line += field("shared_with", param.sharedWith);
  return line;
}

static std::string bucketLine(const Bucket &bucket, size_t index) {
  return "bucket " + std::to_string(index) + field("class", bucket.cls) +
         field("params", bucket.sequenceEnd - bucket.sequenceBegin) +
         field("used", bucket.used) + field("shard", bucket.shardElements) +
         field("unit", bucket.unit) + field("epoch", bucket.epoch);
}

/// Calls `sink` with each line. What only led to the layout (bucket size, fill
/// order) is not in it: ranks that came to the same layout agree.
template <typename Sink> static void visitLines(const Plan &plan, Sink sink) {
  sink("dfa-layout-plan 1");
  sink("mesh" + field("replicate", plan.mesh().replicate) +
       field("shard", plan.mesh().shard));
  for (size_t i = 0; i < plan.classes().size(); ++i)
    sink(classLine(plan.classes()[i], plan.classLayouts()[i]));
  for (size_t i = 0; i < plan.params().size(); ++i)
    sink(paramLine(plan.params()[i], plan.placements()[i]));
  for (size_t i = 0; i < plan.buckets().size(); ++i)
    sink(bucketLine(plan.buckets()[i], i));
  std::string order = "start";
  for (int64_t bucket : plan.bucketOrder())
    order += " " + std::to_string(bucket);
  sink(order);
}

std::string planText(const Plan &plan) {
  std::string text;
  visitLines(plan, [&](const std::string &line) { text += line + "\n"; });
  return text;
}

uint64_t planHash(const Plan &plan) {
  uint64_t hash = fnvOffset;
  visitLines(plan, [&](const std::string &line) {
    hash = extendHash(extendHash(hash, line), "\n");
  });
  return hash;
}

std::optional<TextDifference> firstDifference(std::string_view left,
                                              std::string_view right) {
  if (left == right)
    return std::nullopt;
  auto takeLine = [](std::string_view &text) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
  };
  TextDifference difference;
  while (!left.empty() || !right.empty()) {
    std::string_view a = takeLine(left);
    std::string_view b = takeLine(right);
    ++difference.line;
    if (a == b)
      continue;
    difference.left = std::string(a);
    difference.right = std::string(b);
    return difference;
  }
  // Only a missing newline at the very end is left to differ.
  return difference;
}

} // namespace layout
} // namespace dfa
