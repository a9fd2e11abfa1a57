// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that is read or written at offsets, with errors that carry the
// system's reason. Knows nothing of formats.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_FILE_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_FILE_H

#include "support/Status.h"

#include <cstddef>
#include <cstdint>

namespace dfa::run {

/// Owns a file descriptor. Errors do not name the file: the caller, who knows
/// what the file is for, does.
class File {
public:
  File() = default;
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File();

  /// Opens an existing regular file.
  Status openForReading(const std::string &path);

  /// Creates the file or cuts it to nothing.
  Status openForWriting(const std::string &path);

  /// Closes; a write error that the system delayed is reported here.
  Status close();

  bool isOpen() const { return descriptor >= 0; }

  /// Bytes of the file when it was opened for reading.
  uint64_t size() const { return bytes; }

  /// Reads exactly `count` bytes at `offset`.
  Status read(void *target, uint64_t count, uint64_t offset) const;

  /// Writes exactly `count` bytes at `offset`.
  Status write(const void *source, uint64_t count, uint64_t offset);

private:
  int descriptor = -1;
  uint64_t bytes = 0;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_FILE_H
