// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From zip members to arrays. Memory is allocated only after the header's
// claim was compared with the bytes that the member has.
#include "support/NpzReader.h"

#include "support/MemberStream.h"
#include "support/NpyHeader.h"

#include <algorithm>
#include <cstring>

using namespace dfa::run;

static const std::string suffix = ".npy";

namespace {
/// A .npy file by itself, with the interface of MemberStream.
class PlainStream {
public:
  explicit PlainStream(const File &file) : file(file) {}

  Status read(void *target, uint64_t count) {
    if (count > remaining())
      return Status::expects(std::to_string(count) + " more bytes",
                             std::to_string(remaining()));
    Status status = file.read(target, count, offset);
    offset += count;
    return status;
  }
  Status finish() { return Status(); }
  uint64_t remaining() const { return file.size() - offset; }

private:
  const File &file;
  uint64_t offset = 0;
};
} // namespace

/// Reads the header; behind it the stream has exactly the array's bytes.
template <typename Stream>
static Status readHeader(Stream &stream, ArrayInfo &info) {
  unsigned char prefix[npyPrefixBytes] = {};
  constexpr size_t shortPrefix = 10;
  Status status = stream.read(prefix, shortPrefix);
  if (!status.ok())
    return status;
  // Versions 2 and 3 have two more bytes of length.
  if (prefix[6] == 2 || prefix[6] == 3)
    status = stream.read(prefix + shortPrefix, npyPrefixBytes - shortPrefix);
  size_t textBegin = 0, textLength = 0;
  if (status.ok())
    status = parseNpyPrefix(prefix, textBegin, textLength);
  if (!status.ok())
    return status;
  if (textLength > stream.remaining())
    return Status::expects("an npy header of " + std::to_string(textLength) +
                               " bytes",
                           std::to_string(stream.remaining()));
  std::string text(textLength, '\0');
  status = stream.read(&text[0], textLength);
  if (status.ok())
    status = parseNpyText(text, info);
  if (!status.ok())
    return status;
  if (info.bytes() != stream.remaining())
    return Status::expects(std::to_string(info.bytes()) +
                               " bytes of data for " + info.describe(),
                           std::to_string(stream.remaining()));
  return Status();
}

/// Reads the data behind the header to `target`, in C order.
template <typename Stream>
static Status readData(Stream &stream, const ArrayInfo &info, void *target) {
  if (!info.fortranOrder || info.shape.size() < 2) {
    Status status = stream.read(target, info.bytes());
    return status.ok() ? stream.finish() : status;
  }
  Array copy;
  Status status = copy.allocate(info);
  if (status.ok())
    status = stream.read(copy.data(), info.bytes());
  if (status.ok())
    status = stream.finish();
  if (status.ok())
    copyFortranToC(info, copy.data(), target);
  return status;
}

template <typename Stream>
static Status readArray(Stream &stream, Array &array) {
  ArrayInfo info;
  Status status = readHeader(stream, info);
  if (!status.ok())
    return status;
  ArrayInfo result = info;
  result.fortranOrder = false;
  status = array.allocate(result);
  return status.ok() ? readData(stream, info, array.data()) : status;
}

Status NpzReader::open(const std::string &name) {
  path = name;
  order.clear();
  members.clear();
  Status status = file.openForReading(path);
  std::vector<zip::Member> found;
  if (status.ok())
    status = zip::readDirectory(file, found);
  if (!status.ok())
    return status.in(path);
  for (zip::Member &member : found) {
    const std::string &full = member.name;
    std::string place = path + ": member " + quoted(full);
    if (full.size() <= suffix.size() ||
        full.compare(full.size() - suffix.size(), suffix.size(), suffix) != 0)
      return Status::expects("names that end in '.npy'", quoted(full))
          .in(place);
    std::string key = full.substr(0, full.size() - suffix.size());
    if (!members.emplace(key, std::move(member)).second)
      return Status::expects("one member of this name", "two").in(place);
    order.push_back(std::move(key));
  }
  return Status();
}

Status NpzReader::locate(const Status &status, const std::string &key) const {
  return status.in(path + ": member " + quoted(key + suffix));
}

Status NpzReader::find(const std::string &key,
                       const zip::Member *&member) const {
  std::map<std::string, zip::Member>::const_iterator found = members.find(key);
  if (found == members.end())
    return Status::expects("member " + quoted(key + suffix),
                           "a file without it")
        .in(path);
  member = &found->second;
  return Status();
}

Status NpzReader::readInfo(const std::string &key, ArrayInfo &info) const {
  const zip::Member *member = nullptr;
  Status status = find(key, member);
  if (!status.ok())
    return status;
  MemberStream stream;
  status = stream.open(file, *member);
  if (status.ok())
    status = readHeader(stream, info);
  return locate(status, key);
}

Status NpzReader::read(const std::string &key, Array &array) const {
  const zip::Member *member = nullptr;
  Status status = find(key, member);
  if (!status.ok())
    return status;
  MemberStream stream;
  status = stream.open(file, *member);
  if (status.ok())
    status = readArray(stream, array);
  return locate(status, key);
}

Status NpzReader::readInto(const std::string &key, ElementType type,
                           const std::vector<int64_t> &shape,
                           void *target) const {
  const zip::Member *member = nullptr;
  Status status = find(key, member);
  if (!status.ok())
    return status;
  MemberStream stream;
  ArrayInfo info;
  status = stream.open(file, *member);
  if (status.ok())
    status = readHeader(stream, info);
  if (status.ok() && (info.type != type || info.shape != shape)) {
    ArrayInfo expected;
    expected.type = type;
    expected.shape = shape;
    status = Status::expects(expected.describe(), info.describe());
  }
  if (status.ok())
    status = readData(stream, info, target);
  return locate(status, key);
}

Status dfa::run::readNpyFile(const std::string &path, Array &array) {
  File file;
  Status status = file.openForReading(path);
  if (!status.ok())
    return status.in(path);
  PlainStream stream(file);
  return readArray(stream, array).in(path);
}
