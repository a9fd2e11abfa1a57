// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decompression and checksums of zip members, through zlib.
#include "support/MemberStream.h"

#include <algorithm>
#include <zlib.h>

using namespace dfa::run;

/// One piece is small enough for the second-level cache, so that its CRC costs
/// no second trip to memory.
static constexpr uint64_t pieceBytes = 256 * 1024;

struct MemberStream::Inflater {
  z_stream state = {};
  bool ready = false;
  bool ended = false;
  unsigned char input[64 * 1024];

  ~Inflater() {
    if (ready)
      inflateEnd(&state);
  }
};

MemberStream::MemberStream() = default;
MemberStream::~MemberStream() = default;

Status MemberStream::open(const File &source, const zip::Member &member) {
  file = &source;
  Status status = zip::findData(source, member, offset);
  if (!status.ok())
    return status;
  compressedLeft = member.compressedSize;
  left = member.size;
  expectedCrc = member.crc;
  crc = static_cast<uint32_t>(crc32(0, nullptr, 0));
  inflater.reset();
  if (member.method == zip::stored)
    return Status();
  inflater = std::make_unique<Inflater>();
  // Zip members are raw deflate streams, hence the negative window size.
  if (inflateInit2(&inflater->state, -MAX_WBITS) != Z_OK)
    return Status::failure("cannot start zlib");
  inflater->ready = true;
  return Status();
}

Status MemberStream::inflateInto(unsigned char *target, uint64_t count) {
  z_stream &state = inflater->state;
  state.next_out = target;
  state.avail_out = static_cast<uInt>(count);
  // With nothing to put out there may still be an end mark to take in.
  while ((state.avail_out > 0 || count == 0) && !inflater->ended) {
    if (state.avail_in == 0 && compressedLeft > 0) {
      uint64_t piece =
          std::min<uint64_t>(compressedLeft, sizeof(inflater->input));
      Status status = file->read(inflater->input, piece, offset);
      if (!status.ok())
        return status;
      offset += piece;
      compressedLeft -= piece;
      state.next_in = inflater->input;
      state.avail_in = static_cast<uInt>(piece);
    }
    int result = inflate(&state, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
      inflater->ended = true;
    else if (result == Z_BUF_ERROR && state.avail_in == 0 &&
             compressedLeft == 0)
      return Status::expects("more deflated data", "its end");
    else if (result == Z_BUF_ERROR && count == 0)
      return Status::expects("the end of the deflated data", "more data");
    else if (result != Z_OK)
      return Status::expects("deflated data",
                             state.msg ? state.msg : "other bytes");
  }
  if (state.avail_out > 0)
    return Status::expects(std::to_string(left) + " more bytes",
                           "the end of the deflated data after " +
                               std::to_string(count - state.avail_out));
  return Status();
}

Status MemberStream::read(void *target, uint64_t count) {
  if (count > left)
    return Status::expects(std::to_string(count) + " more bytes",
                           std::to_string(left));
  unsigned char *next = static_cast<unsigned char *>(target);
  while (count > 0) {
    uint64_t piece = std::min(count, pieceBytes);
    Status status =
        inflater ? inflateInto(next, piece) : file->read(next, piece, offset);
    if (!status.ok())
      return status;
    if (!inflater)
      offset += piece;
    crc = static_cast<uint32_t>(crc32(crc, next, static_cast<uInt>(piece)));
    next += piece;
    count -= piece;
    left -= piece;
  }
  return Status();
}

static std::string hexadecimal(uint32_t value) {
  static const char digits[] = "0123456789abcdef";
  std::string result = "0x";
  for (int shift = 28; shift >= 0; shift -= 4)
    result += digits[value >> shift & 15];
  return result;
}

Status MemberStream::finish() {
  if (left > 0)
    return Status::expects("the end of the data",
                           std::to_string(left) + " more bytes");
  if (inflater) {
    unsigned char nothing = 0;
    Status status = inflateInto(&nothing, 0);
    if (!status.ok())
      return status;
    if (compressedLeft + inflater->state.avail_in > 0)
      return Status::expects("the end of the deflated data", "more data");
  }
  if (crc != expectedCrc)
    return Status::expects("data with CRC " + hexadecimal(expectedCrc),
                           hexadecimal(crc));
  return Status();
}
