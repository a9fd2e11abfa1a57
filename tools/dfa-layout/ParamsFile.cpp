// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the JSON tree into parameters; every check names the place.
#include "ParamsFile.h"

#include "JsonTree.h"

using dfa::layout::Expected;
using dfa::layout::Format;
using dfa::layout::Order;
using dfa::layout::Status;

namespace dfa {
namespace tools {

std::string locatedMessage(const std::string &file, Location where,
                           const std::string &message) {
  std::string place = file;
  if (where.line > 0)
    place +=
        ":" + std::to_string(where.line) + ":" + std::to_string(where.column);
  return place + ": error: " + message;
}

std::optional<Order> channelsLastOrder(size_t rank) {
  if (rank == 4)
    return Order{0, 2, 3, 1};
  if (rank == 5)
    return Order{0, 2, 3, 4, 1};
  return std::nullopt;
}

namespace {

/// Reads one file. Checks return an ok Status or the located error.
class Reader {
public:
  Reader(const std::string &file, const std::string &text)
      : file(file), text(text) {}

  Expected<std::vector<ParamEntry>> run();

private:
  Status param(const JsonValue &value, ParamEntry &entry);
  Status pair(const JsonValue &value, ParamEntry &entry);
  Status name(const JsonValue &value, ParamEntry &entry);
  Status shape(const JsonValue &value, ParamEntry &entry);
  Status dtype(const JsonValue &value, ParamEntry &entry);
  Status order(const JsonValue &value, ParamEntry &entry);
  Status memoryFormat(const JsonValue &value, ParamEntry &entry);
  Status group(const JsonValue &value, ParamEntry &entry);

  Location locate(size_t offset) const;
  Status error(size_t offset, const std::string &message) const {
    return Status::error(locatedMessage(file, locate(offset), message));
  }
  Status mismatch(const JsonValue &value, const std::string &expected) const;

  const std::string &file;
  const std::string &text;
  // locate() goes on from the last place, as files are read front to back.
  mutable size_t knownOffset = 0;
  mutable size_t lineStart = 0;
  mutable int64_t knownLine = 1;
};

} // namespace

Location Reader::locate(size_t offset) const {
  if (offset < knownOffset) {
    knownOffset = 0;
    lineStart = 0;
    knownLine = 1;
  }
  for (; knownOffset < offset && knownOffset < text.size(); ++knownOffset)
    if (text[knownOffset] == '\n') {
      ++knownLine;
      lineStart = knownOffset + 1;
    }
  Location where;
  where.line = knownLine;
  where.column = static_cast<int64_t>(offset - lineStart) + 1;
  return where;
}

/// What a value is, in words that fit behind "but got".
static std::string describe(const JsonValue &value) {
  if (value.kind == JsonValue::Kind::String)
    return "'" + value.text + "'";
  if (value.kind == JsonValue::Kind::Integer)
    return std::to_string(value.integer);
  return value.kindName();
}

Status Reader::mismatch(const JsonValue &value,
                        const std::string &expected) const {
  return error(value.offset,
               "expected " + expected + ", but got " + describe(value));
}

Status Reader::name(const JsonValue &value, ParamEntry &entry) {
  if (value.kind != JsonValue::Kind::String || value.text.empty())
    return mismatch(value, "a name that is a string");
  entry.name = value.text;
  return Status();
}

Status Reader::shape(const JsonValue &value, ParamEntry &entry) {
  if (value.kind != JsonValue::Kind::List)
    return mismatch(value, "a shape that is a list of sizes");
  for (const JsonValue &item : value.items) {
    if (item.kind != JsonValue::Kind::Integer || item.integer < 0)
      return mismatch(item, "a size that is an integer of at least 0");
    entry.shape.push_back(item.integer);
  }
  return Status();
}

Status Reader::dtype(const JsonValue &value, ParamEntry &entry) {
  static const struct {
    const char *name;
    Format format;
  } rows[] = {{"f32", Format::F32},     {"fp32", Format::F32},
              {"float32", Format::F32}, {"float", Format::F32},
              {"f16", Format::F16},     {"fp16", Format::F16},
              {"float16", Format::F16}, {"half", Format::F16},
              {"bf16", Format::BF16},   {"bfloat16", Format::BF16}};
  std::string word = value.text;
  if (word.rfind("torch.", 0) == 0) // str() of a torch.dtype
    word = word.substr(6);
  for (const auto &row : rows)
    if (value.kind == JsonValue::Kind::String && word == row.name) {
      entry.dtype = row.format;
      return Status();
    }
  return mismatch(value, "a dtype out of float32, float16, bfloat16");
}

Status Reader::order(const JsonValue &value, ParamEntry &entry) {
  if (value.kind != JsonValue::Kind::List)
    return mismatch(value, "an order that is a list of dimensions");
  Order dims;
  for (const JsonValue &item : value.items) {
    if (item.kind != JsonValue::Kind::Integer || item.integer < 0 ||
        item.integer >= static_cast<int64_t>(entry.shape.size()))
      return mismatch(item, "a dimension below " +
                                std::to_string(entry.shape.size()));
    dims.push_back(static_cast<int32_t>(item.integer));
  }
  Expected<Order> canonical =
      layout::canonicalOrder(entry.name, entry.shape, dims);
  if (dims.size() != entry.shape.size() || !canonical)
    return error(value.offset, "expected an order that lists each of the " +
                                   std::to_string(entry.shape.size()) +
                                   " dimensions once, but got " +
                                   layout::listText(dims));
  entry.order = *canonical;
  return Status();
}

Status Reader::memoryFormat(const JsonValue &value, ParamEntry &entry) {
  std::string word = value.text;
  if (word.rfind("torch.", 0) == 0)
    word = word.substr(6);
  if (word == "contiguous" || word == "contiguous_format") {
    Order rowMajor;
    for (size_t dim = 0; dim < entry.shape.size(); ++dim)
      rowMajor.push_back(static_cast<int32_t>(dim));
    entry.order = rowMajor;
    return Status();
  }
  size_t rank = word == "channels_last"      ? 4
                : word == "channels_last_3d" ? 5
                                             : 0;
  if (rank == 0)
    return mismatch(
        value,
        "a memory format out of contiguous, channels_last, channels_last_3d");
  if (entry.shape.size() != rank)
    return error(value.offset, "expected " + std::to_string(rank) +
                                   " dimensions for " + word + ", but got " +
                                   std::to_string(entry.shape.size()));
  entry.order = channelsLastOrder(rank);
  return Status();
}

Status Reader::group(const JsonValue &value, ParamEntry &entry) {
  if (value.kind != JsonValue::Kind::Integer || value.integer < 0 ||
      value.integer >= maxGroups)
    return mismatch(value,
                    "a group from 0 to " + std::to_string(maxGroups - 1));
  entry.group = static_cast<int32_t>(value.integer);
  return Status();
}

/// The short form, ["name", [sizes]].
Status Reader::pair(const JsonValue &value, ParamEntry &entry) {
  if (value.items.size() != 2)
    return mismatch(value, "[name, shape] or an object");
  Status status = name(value.items[0], entry);
  return status.ok() ? shape(value.items[1], entry) : status;
}

Status Reader::param(const JsonValue &value, ParamEntry &entry) {
  entry.where = locate(value.offset);
  if (value.kind == JsonValue::Kind::List)
    return pair(value, entry);
  if (value.kind != JsonValue::Kind::Object)
    return mismatch(value, "an object with name and shape");

  // Shape before order, and name first, whatever order the file has them in.
  static const struct {
    const char *key;
    bool required;
    Status (Reader::*read)(const JsonValue &, ParamEntry &);
  } keys[] = {{"name", true, &Reader::name},
              {"shape", true, &Reader::shape},
              {"dtype", false, &Reader::dtype},
              {"order", false, &Reader::order},
              {"memory_format", false, &Reader::memoryFormat},
              {"group", false, &Reader::group}};
  for (const std::pair<std::string, JsonValue> &member : value.members) {
    bool known = false;
    for (const auto &row : keys)
      known |= member.first == row.key;
    if (!known)
      return error(member.second.offset,
                   "unknown key '" + member.first +
                       "': expected name, shape, dtype, order, memory_format "
                       "or group");
    if (value.find(member.first) != &member.second)
      return error(member.second.offset,
                   "key '" + member.first + "' given twice");
  }
  const JsonValue *format = value.find("memory_format");
  if (format != nullptr && value.find("order") != nullptr)
    return error(format->offset, "expected order or memory_format, not both");
  for (const auto &row : keys) {
    const JsonValue *found = value.find(row.key);
    if (found == nullptr && !row.required)
      continue;
    if (found == nullptr)
      return error(value.offset,
                   "expected a parameter with '" + std::string(row.key) + "'");
    Status status = (this->*row.read)(*found, entry);
    if (!status.ok())
      return status;
  }
  return Status();
}

Expected<std::vector<ParamEntry>> Reader::run() {
  JsonValue root;
  JsonError syntax;
  if (!parseJson(text, root, syntax))
    return error(syntax.offset, syntax.message);
  // A list, or an object that has it as "params" beside other facts.
  const JsonValue *list = &root;
  if (root.kind == JsonValue::Kind::Object && root.find("params") != nullptr)
    list = root.find("params");
  if (list->kind != JsonValue::Kind::List)
    return mismatch(*list, "a list of parameters");
  std::vector<ParamEntry> entries;
  for (const JsonValue &value : list->items) {
    ParamEntry entry;
    Status status = param(value, entry);
    if (!status.ok())
      return status;
    entries.push_back(std::move(entry));
  }
  return entries;
}

Expected<std::vector<ParamEntry>> parseParams(const std::string &file,
                                              const std::string &text) {
  return Reader(file, text).run();
}

} // namespace tools
} // namespace dfa
