// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Zip members are written front to back; only the CRC and the sizes in a
// member's local header are filled in when its data is complete.
#include "support/NpzWriter.h"

#include "support/NpyHeader.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>
#include <zlib.h>

using namespace dfa::run;
using namespace dfa::run::zip;

static constexpr uint64_t pieceBytes = 256 * 1024;

/// 1 January 1980, the earliest date that zip knows.
static constexpr uint32_t fixedDate = 0x00210000;

static constexpr uint16_t versionPlain = 20;
static constexpr uint16_t version64 = 45;

struct NpzWriter::Deflater {
  z_stream state = {};
  bool ready = false;
  unsigned char output[64 * 1024];

  ~Deflater() {
    if (ready)
      deflateEnd(&state);
  }
};

NpzWriter::NpzWriter() = default;

NpzWriter::~NpzWriter() {
  if (file.isOpen())
    std::remove(temporary.c_str());
}

Status NpzWriter::locate(const Status &status) const {
  if (!inMember)
    return status.in(path);
  return status.in(path + ": member " + quoted(members.back().name));
}

Status NpzWriter::open(const std::string &name, NpzOptions wanted) {
  path = name;
  options = wanted;
  // Several ranks or runs may write next to each other.
  temporary = path + ".tmp" + std::to_string(::getpid());
  return file.openForWriting(temporary).in(path);
}

Status NpzWriter::write(const void *data, uint64_t bytes) {
  Status status = file.write(data, bytes, position);
  position += bytes;
  return status;
}

static uint16_t nameFlags(const std::string &name) {
  constexpr uint16_t utf8 = 0x800;
  for (char c : name)
    if (static_cast<unsigned char>(c) >= 0x80)
      return utf8;
  return 0;
}

/// The fields that local and central headers share, from "version needed" to
/// the length of the name.
static void putCommon(std::string &header, const Member &member, bool is64,
                      bool sizesIn64) {
  put(header, is64 ? version64 : versionPlain, 2);
  put(header, nameFlags(member.name), 2);
  put(header, member.method, 2);
  put(header, fixedDate, 4);
  put(header, member.crc, 4);
  put(header, sizesIn64 ? inZip64 : member.compressedSize, 4);
  put(header, sizesIn64 ? inZip64 : member.size, 4);
  put(header, member.name.size(), 2);
}

static std::string localHeader(const Member &member, bool is64) {
  std::string header;
  put(header, localSignature, 4);
  putCommon(header, member, is64, is64);
  put(header, is64 ? 20 : 0, 2);
  header += member.name;
  if (!is64)
    return header;
  put(header, zip64Id, 2);
  put(header, 16, 2);
  put(header, member.size, 8);
  put(header, member.compressedSize, 8);
  return header;
}

Status NpzWriter::begin(const std::string &key, const ArrayInfo &info) {
  if (!file.isOpen() || inMember)
    return locate(Status::failure("expects an open file and no open member"));
  Member member;
  member.name = key + ".npy";
  member.method = options.deflate ? deflated : stored;
  member.localOffset = position;
  std::string place = path + ": member " + quoted(member.name);
  Status status = info.check();
  if (status.ok() && member.name.size() > 0xffff)
    status = Status::expects("a name of less than 65536 bytes",
                             std::to_string(member.name.size()));
  if (status.ok() && !names.insert(key).second)
    status = Status::expects("one member of this name", "two");
  if (!status.ok())
    return status.in(place);

  std::string header = formatNpyHeader(info);
  // Deflate may make data larger, by far less than a sixteenth.
  uint64_t total = header.size() + info.bytes();
  uint64_t bound = options.deflate ? total + total / 16 + 1024 : total;
  memberIs64 = options.alwaysZip64 || bound >= inZip64;
  member.crc = static_cast<uint32_t>(crc32(0, nullptr, 0));
  members.push_back(member);
  inMember = true;
  dataLeft = info.bytes();
  if (options.deflate) {
    deflater = std::make_unique<Deflater>();
    if (deflateInit2(&deflater->state, options.level, Z_DEFLATED, -MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      return locate(Status::failure("cannot start zlib"));
    deflater->ready = true;
  }
  std::string local = localHeader(members.back(), memberIs64);
  status = write(local.data(), local.size());
  if (status.ok())
    status = writeMember(header.data(), header.size());
  return locate(status);
}

Status NpzWriter::flushDeflater(const void *data, uint64_t bytes, bool last) {
  z_stream &state = deflater->state;
  // zlib's interface lacks a const.
  state.next_in =
      const_cast<unsigned char *>(static_cast<const unsigned char *>(data));
  state.avail_in = static_cast<uInt>(bytes);
  do {
    state.next_out = deflater->output;
    state.avail_out = sizeof(deflater->output);
    if (deflate(&state, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
      return Status::failure("cannot compress");
    uint64_t made = sizeof(deflater->output) - state.avail_out;
    members.back().compressedSize += made;
    Status status = write(deflater->output, made);
    if (!status.ok())
      return status;
  } while (state.avail_out == 0);
  return Status();
}

Status NpzWriter::writeMember(const void *data, uint64_t bytes) {
  Member &member = members.back();
  const unsigned char *next = static_cast<const unsigned char *>(data);
  while (bytes > 0) {
    uint64_t piece = std::min(bytes, pieceBytes);
    member.crc = static_cast<uint32_t>(
        crc32(member.crc, next, static_cast<uInt>(piece)));
    member.size += piece;
    Status status;
    if (deflater) {
      status = flushDeflater(next, piece, false);
    } else {
      status = write(next, piece);
      member.compressedSize += piece;
    }
    if (!status.ok())
      return status;
    next += piece;
    bytes -= piece;
  }
  return Status();
}

Status NpzWriter::append(const void *data, uint64_t bytes) {
  if (!inMember || bytes > dataLeft)
    return locate(Status::expects(
        "at most " + std::to_string(inMember ? dataLeft : 0) + " more bytes",
        std::to_string(bytes)));
  dataLeft -= bytes;
  return locate(writeMember(data, bytes));
}

Status NpzWriter::end() {
  if (!inMember || dataLeft > 0)
    return locate(Status::expects("no end of an array",
                                  std::to_string(dataLeft) + " bytes missing"));
  if (deflater) {
    Status status = flushDeflater(nullptr, 0, true);
    if (!status.ok())
      return locate(status);
    deflater.reset();
  }
  std::string header = localHeader(members.back(), memberIs64);
  Status status = locate(
      file.write(header.data(), header.size(), members.back().localOffset));
  inMember = false;
  return status;
}

Status NpzWriter::add(const std::string &key, const ArrayInfo &info,
                      const void *data) {
  Status status = begin(key, info);
  if (status.ok())
    status = append(data, info.bytes());
  return status.ok() ? end() : status;
}

Status NpzWriter::addScalar(const std::string &key, double value) {
  ArrayInfo info;
  info.type = ElementType::F64;
  return add(key, info, &value);
}

Status NpzWriter::addScalar(const std::string &key, int64_t value) {
  ArrayInfo info;
  info.type = ElementType::I64;
  return add(key, info, &value);
}

void NpzWriter::appendEntry(std::string &directory,
                            const Member &member) const {
  bool sizes = options.alwaysZip64 || member.size >= inZip64 ||
               member.compressedSize >= inZip64;
  bool offset = options.alwaysZip64 || member.localOffset >= inZip64;
  std::string extra;
  if (sizes) {
    put(extra, member.size, 8);
    put(extra, member.compressedSize, 8);
  }
  if (offset)
    put(extra, member.localOffset, 8);
  put(directory, centralSignature, 4);
  // Made on Unix, so that the mode below is understood.
  put(directory, 3 << 8 | (extra.empty() ? versionPlain : version64), 2);
  putCommon(directory, member, !extra.empty(), sizes);
  put(directory, extra.empty() ? 0 : extra.size() + 4, 2);
  put(directory, 0, 2);                       // comment
  put(directory, 0, 2);                       // part
  put(directory, 0, 2);                       // internal attributes
  put(directory, uint64_t(0100644) << 16, 4); // regular file, rw-r--r--
  put(directory, offset ? inZip64 : member.localOffset, 4);
  directory += member.name;
  if (extra.empty())
    return;
  put(directory, zip64Id, 2);
  put(directory, extra.size(), 2);
  directory += extra;
}

/// The records behind the central directory of `size` bytes at `offset`.
static std::string endRecords(uint64_t entries, uint64_t size, uint64_t offset,
                              bool always64) {
  bool is64 = always64 || entries >= countInZip64 || size >= inZip64 ||
              offset >= inZip64;
  std::string records;
  if (is64) {
    put(records, end64Signature, 4);
    put(records, end64Bytes - 12, 8); // the rest of this record
    put(records, 3 << 8 | version64, 2);
    put(records, version64, 2);
    put(records, 0, 8); // parts
    put(records, entries, 8);
    put(records, entries, 8);
    put(records, size, 8);
    put(records, offset, 8);
    put(records, locator64Signature, 4);
    put(records, 0, 4);
    put(records, offset + size, 8);
    put(records, 1, 4); // parts
  }
  put(records, endSignature, 4);
  put(records, 0, 4); // parts
  put(records, is64 ? countInZip64 : entries, 2);
  put(records, is64 ? countInZip64 : entries, 2);
  put(records, is64 ? inZip64 : size, 4);
  put(records, is64 ? inZip64 : offset, 4);
  put(records, 0, 2); // comment
  return records;
}

Status NpzWriter::close() {
  if (!file.isOpen() || inMember)
    return locate(Status::failure("expects an open file and no open member"));
  std::string directory;
  for (const Member &member : members)
    appendEntry(directory, member);
  directory += endRecords(members.size(), directory.size(), position,
                          options.alwaysZip64);
  Status status = write(directory.data(), directory.size());
  Status closed = file.close();
  if (status.ok())
    status = closed;
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0)
    status = Status::failure("cannot rename " + quoted(temporary));
  if (!status.ok())
    std::remove(temporary.c_str());
  return status.in(path);
}

Status dfa::run::writeNpyFile(const std::string &path, const ArrayInfo &info,
                              const void *data) {
  Status status = info.check();
  File file;
  if (status.ok())
    status = file.openForWriting(path);
  std::string header = formatNpyHeader(info);
  if (status.ok())
    status = file.write(header.data(), header.size(), 0);
  if (status.ok())
    status = file.write(data, info.bytes(), header.size());
  if (status.ok())
    status = file.close();
  return status.in(path);
}
