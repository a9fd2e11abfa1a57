// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes arrays to .npz files (and to single .npy files) as they come, piece
// by piece. Reading is in NpzReader.h.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_NPZWRITER_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_NPZWRITER_H

#include "support/Array.h"
#include "support/Zip.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace dfa::run {

/// How members are stored.
struct NpzOptions {
  /// Compress with zlib; else members are stored, as numpy.savez does.
  bool deflate = false;
  /// zlib's level, 1 (fast) to 9.
  int level = 1;
  /// Use zip64 records even where sizes fit 32 bits. Larger members, files of
  /// more than 4 GiB or 65,534 members always have them.
  bool alwaysZip64 = false;
};

/// Writes one .npz file. It appears under its name only when `close` has
/// succeeded: a failed run leaves no half file. Equal contents give equal
/// bytes, since members carry a fixed date.
class NpzWriter {
public:
  NpzWriter();
  ~NpzWriter();

  Status open(const std::string &path, NpzOptions options = NpzOptions());

  /// Begins an array. `append` must then get exactly its bytes.
  Status begin(const std::string &key, const ArrayInfo &info);

  /// Writes the next bytes of the array.
  Status append(const void *data, uint64_t bytes);

  /// Ends the array.
  Status end();

  /// Writes a whole array.
  Status add(const std::string &key, const ArrayInfo &info, const void *data);

  /// Writes a scalar.
  Status addScalar(const std::string &key, double value);
  Status addScalar(const std::string &key, int64_t value);

  /// Writes the directory and moves the file to its place.
  Status close();

private:
  struct Deflater;
  Status write(const void *data, uint64_t bytes);
  Status writeMember(const void *data, uint64_t bytes);
  Status flushDeflater(const void *data, uint64_t bytes, bool last);
  void appendEntry(std::string &directory, const zip::Member &member) const;
  Status locate(const Status &status) const;

  std::string path, temporary;
  NpzOptions options;
  File file;
  uint64_t position = 0; // where the next byte goes
  std::vector<zip::Member> members;
  std::set<std::string> names;
  bool inMember = false;
  bool memberIs64 = false;
  uint64_t dataLeft = 0; // bytes that `append` still expects
  std::unique_ptr<Deflater> deflater;
};

/// Writes an array to a .npy file.
Status writeNpyFile(const std::string &path, const ArrayInfo &info,
                    const void *data);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_NPZWRITER_H
