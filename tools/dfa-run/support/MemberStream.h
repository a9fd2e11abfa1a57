// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The uncompressed bytes of one zip member, front to back.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_MEMBERSTREAM_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_MEMBERSTREAM_H

#include "support/Zip.h"

#include <memory>

namespace dfa::run {

/// Reads stored and deflated members, in pieces, straight into the caller's
/// memory, and checks size and CRC at the end.
class MemberStream {
public:
  MemberStream();
  ~MemberStream();

  /// Begins with the member. `file` must outlive the stream.
  Status open(const File &file, const zip::Member &member);

  /// Reads exactly `count` bytes.
  Status read(void *target, uint64_t count);

  /// Fails unless all of the member was read and its CRC is right.
  Status finish();

  /// Bytes not read yet.
  uint64_t remaining() const { return left; }

private:
  struct Inflater;
  Status inflateInto(unsigned char *target, uint64_t count);

  const File *file = nullptr;
  std::unique_ptr<Inflater> inflater; // null: the member is stored
  uint64_t offset = 0;                // of the next compressed byte
  uint64_t compressedLeft = 0;
  uint64_t left = 0;
  uint32_t crc = 0;
  uint32_t expectedCrc = 0;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_MEMBERSTREAM_H
