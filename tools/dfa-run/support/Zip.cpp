// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a zip file's directory. Every number in the file is treated as a
// claim: nothing is allocated or skipped before it was compared with the size
// of what is really there.
#include "support/Zip.h"

#include <algorithm>

using namespace dfa::run;
using namespace dfa::run::zip;

namespace {
/// Where the central directory lies.
struct Directory {
  uint64_t entries = 0;
  uint64_t size = 0;
  uint64_t offset = 0;
};
} // namespace

/// Finds the end record: the last place with its signature whose comment
/// reaches exactly to the end of the file.
static Status findEnd(const File &file, uint64_t &offset, unsigned char *end) {
  constexpr uint64_t largestComment = 0xffff;
  uint64_t window = std::min(file.size(), endBytes + largestComment);
  std::vector<unsigned char> tail(window);
  Status status = file.read(tail.data(), window, file.size() - window);
  if (!status.ok())
    return status;
  for (uint64_t back = endBytes; back <= window; ++back) {
    const unsigned char *candidate = tail.data() + (window - back);
    if (get32(candidate) != endSignature ||
        get16(candidate + 20) != back - endBytes)
      continue;
    std::copy(candidate, candidate + endBytes, end);
    offset = file.size() - back;
    return Status();
  }
  return Status::expects("a zip file (.npz)",
                         "a file of " + std::to_string(file.size()) +
                             " bytes without a zip directory");
}

/// Reads the zip64 end record, if the locator before `endOffset` names one.
static Status readEnd64(const File &file, uint64_t endOffset,
                        Directory &directory) {
  unsigned char locator[locator64Bytes];
  if (endOffset < locator64Bytes)
    return Status::failure("expects a zip64 locator");
  Status status =
      file.read(locator, locator64Bytes, endOffset - locator64Bytes);
  if (!status.ok())
    return status;
  if (get32(locator) != locator64Signature)
    return Status::failure("expects a zip64 locator");
  uint64_t offset = get64(locator + 8);
  unsigned char end[end64Bytes];
  if (offset > file.size() || file.size() - offset < end64Bytes)
    return Status::expects("a zip64 end record within the file",
                           "offset " + std::to_string(offset));
  status = file.read(end, end64Bytes, offset);
  if (!status.ok())
    return status;
  if (get32(end) != end64Signature)
    return Status::expects("a zip64 end record at offset " +
                               std::to_string(offset),
                           "other bytes");
  directory.entries = get64(end + 32);
  directory.size = get64(end + 40);
  directory.offset = get64(end + 48);
  return Status();
}

static Status findDirectory(const File &file, Directory &directory) {
  uint64_t endOffset = 0;
  unsigned char end[endBytes];
  Status status = findEnd(file, endOffset, end);
  if (!status.ok())
    return status;
  if (get16(end + 4) != 0 && get16(end + 4) != countInZip64)
    return Status::expects("a zip file in one part",
                           "part " + std::to_string(get16(end + 4)));
  directory.entries = get16(end + 10);
  directory.size = get32(end + 12);
  directory.offset = get32(end + 16);
  if (directory.entries == countInZip64 || directory.size == inZip64 ||
      directory.offset == inZip64) {
    status = readEnd64(file, endOffset, directory);
    if (!status.ok())
      return status;
  }
  if (directory.offset > endOffset ||
      directory.size > endOffset - directory.offset)
    return Status::expects("the zip directory within the file",
                           std::to_string(directory.size) +
                               " bytes at offset " +
                               std::to_string(directory.offset));
  if (directory.entries > directory.size / centralBytes)
    return Status::expects("at most " +
                               std::to_string(directory.size / centralBytes) +
                               " members in a zip directory of " +
                               std::to_string(directory.size) + " bytes",
                           std::to_string(directory.entries));
  return Status();
}

/// Takes the 64-bit values of a member from its extra fields.
static Status applyZip64(const unsigned char *extra, size_t bytes,
                         Member &member) {
  uint64_t *fields[3];
  size_t wanted = 0;
  for (uint64_t *field :
       {&member.size, &member.compressedSize, &member.localOffset})
    if (*field == inZip64)
      fields[wanted++] = field;
  if (wanted == 0)
    return Status();
  while (bytes >= 4) {
    size_t length = get16(extra + 2);
    if (length > bytes - 4)
      break;
    if (get16(extra) == zip64Id) {
      if (length < 8 * wanted)
        break;
      for (size_t i = 0; i < wanted; ++i)
        *fields[i] = get64(extra + 4 + 8 * i);
      return Status();
    }
    extra += 4 + length;
    bytes -= 4 + length;
  }
  return Status::expects(
      "a zip64 record with " + std::to_string(wanted) + " values", "none");
}

static Status checkMember(const File &file, const Member &member) {
  if (member.method != stored && member.method != deflated)
    return Status::expects("a stored or deflated member",
                           "compression method " +
                               std::to_string(member.method));
  if (member.localOffset > file.size() ||
      member.compressedSize > file.size() - member.localOffset)
    return Status::expects(
        "data within the file of " + std::to_string(file.size()) + " bytes",
        std::to_string(member.compressedSize) + " bytes behind offset " +
            std::to_string(member.localOffset));
  if (member.method == stored && member.size != member.compressedSize)
    return Status::expects("stored data of " + std::to_string(member.size) +
                               " bytes",
                           std::to_string(member.compressedSize));
  if (member.method == deflated &&
      member.size / maxExpansion > member.compressedSize)
    return Status::expects(
        "at most " + std::to_string(maxExpansion) + " bytes from each of " +
            std::to_string(member.compressedSize) + " deflated bytes",
        std::to_string(member.size));
  return Status();
}

/// Parses one entry and moves `offset` behind it.
static Status parseEntry(const std::vector<unsigned char> &table,
                         size_t &offset, Member &member) {
  size_t left = table.size() - offset;
  const unsigned char *entry = table.data() + offset;
  std::string place = "zip directory, byte " + std::to_string(offset);
  if (left < centralBytes || get32(entry) != centralSignature)
    return Status::expects("a member's entry", "other bytes").in(place);
  size_t nameBytes = get16(entry + 28), extraBytes = get16(entry + 30);
  size_t total = centralBytes + nameBytes + extraBytes + get16(entry + 32);
  if (total > left)
    return Status::expects("an entry of " + std::to_string(total) + " bytes",
                           std::to_string(left))
        .in(place);
  const unsigned char *name = entry + centralBytes;
  member.name.assign(name, name + nameBytes);
  if ((get16(entry + 8) & 1) != 0)
    return Status::expects("plain data", "encrypted data")
        .in("member " + quoted(member.name));
  member.method = get16(entry + 10);
  member.crc = get32(entry + 16);
  member.compressedSize = get32(entry + 20);
  member.size = get32(entry + 24);
  member.localOffset = get32(entry + 42);
  offset += total;
  return applyZip64(name + nameBytes, extraBytes, member)
      .in("member " + quoted(member.name));
}

Status zip::readDirectory(const File &file, std::vector<Member> &members) {
  members.clear();
  Directory directory;
  Status status = findDirectory(file, directory);
  if (!status.ok())
    return status;
  std::vector<unsigned char> table(directory.size);
  status = file.read(table.data(), table.size(), directory.offset);
  if (!status.ok())
    return status;
  size_t offset = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    Member member;
    status = parseEntry(table, offset, member);
    if (!status.ok())
      return status;
    status = checkMember(file, member).in("member " + quoted(member.name));
    if (!status.ok())
      return status;
    members.push_back(std::move(member));
  }
  return Status();
}

Status zip::findData(const File &file, const Member &member, uint64_t &offset) {
  unsigned char header[localBytes];
  if (file.size() - member.localOffset < localBytes)
    return Status::expects("a local header within the file",
                           "offset " + std::to_string(member.localOffset));
  Status status = file.read(header, localBytes, member.localOffset);
  if (!status.ok())
    return status;
  if (get32(header) != localSignature)
    return Status::expects("a local header at offset " +
                               std::to_string(member.localOffset),
                           "other bytes");
  uint64_t skipped = localBytes + get16(header + 26) + get16(header + 28);
  offset = member.localOffset + skipped;
  if (offset > file.size() || member.compressedSize > file.size() - offset)
    return Status::expects("data within the file of " +
                               std::to_string(file.size()) + " bytes",
                           std::to_string(member.compressedSize) +
                               " bytes at offset " + std::to_string(offset));
  std::string name(get16(header + 26), '\0');
  status = file.read(&name[0], name.size(), member.localOffset + localBytes);
  if (status.ok() && name != member.name)
    return Status::expects("the same name in its local header", quoted(name));
  return status;
}
