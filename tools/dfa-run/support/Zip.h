// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The records of the zip format that .npz files use: the list of members, and
// little-endian fields. Contents of members are in MemberStream.h.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_ZIP_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_ZIP_H

#include "support/File.h"

#include <vector>

namespace dfa::run::zip {

constexpr uint32_t localSignature = 0x04034b50;
constexpr uint32_t centralSignature = 0x02014b50;
constexpr uint32_t endSignature = 0x06054b50;
constexpr uint32_t end64Signature = 0x06064b50;
constexpr uint32_t locator64Signature = 0x07064b50;

constexpr uint64_t localBytes = 30;
constexpr uint64_t centralBytes = 46;
constexpr uint64_t endBytes = 22;
constexpr uint64_t end64Bytes = 56;
constexpr uint64_t locator64Bytes = 20;

/// A field with this value has its true value in a zip64 record.
constexpr uint32_t inZip64 = 0xffffffff;
constexpr uint16_t countInZip64 = 0xffff;
constexpr uint16_t zip64Id = 1;

constexpr uint16_t stored = 0;
constexpr uint16_t deflated = 8;

/// No deflate stream expands by more than this factor.
constexpr uint64_t maxExpansion = 1032;

/// What the central directory says of one member.
struct Member {
  std::string name;
  uint16_t method = stored;
  uint32_t crc = 0;
  uint64_t compressedSize = 0;
  uint64_t size = 0;
  uint64_t localOffset = 0;
};

/// Reads the central directory. What it says has been checked as far as it
/// can be without reading the members: sizes against the file's, method,
/// no encryption.
Status readDirectory(const File &file, std::vector<Member> &members);

/// Finds where the member's data begins, checking its local header.
Status findData(const File &file, const Member &member, uint64_t &offset);

/// A little-endian field of the bytes at `source`.
inline uint16_t get16(const unsigned char *source) {
  return static_cast<uint16_t>(source[0] | source[1] << 8);
}
inline uint32_t get32(const unsigned char *source) {
  return get16(source) | static_cast<uint32_t>(get16(source + 2)) << 16;
}
inline uint64_t get64(const unsigned char *source) {
  return get32(source) | static_cast<uint64_t>(get32(source + 4)) << 32;
}

/// Appends the low `bytes` bytes of `value` in little-endian order.
inline void put(std::string &target, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    target += static_cast<char>(value >> 8 * i & 0xff);
}

} // namespace dfa::run::zip

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_ZIP_H
