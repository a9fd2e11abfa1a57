// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads arrays from .npz files (and from single .npy files), in C order
// whatever the order in the file. Damaged files give located errors: nothing
// in them is trusted. Writing is in NpzWriter.h.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_NPZREADER_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_NPZREADER_H

#include "support/Array.h"
#include "support/Zip.h"

#include <map>
#include <string>
#include <vector>

namespace dfa::run {

/// One open .npz file. Keys are member names without ".npy".
class NpzReader {
public:
  /// Opens a file and reads its directory.
  Status open(const std::string &path);

  /// All keys, in the order of the file.
  const std::vector<std::string> &keys() const { return order; }

  bool contains(const std::string &key) const { return members.count(key); }

  /// Reads type, shape and order of an array, without its data.
  Status readInfo(const std::string &key, ArrayInfo &info) const;

  /// Reads an array; its info then says C order.
  Status read(const std::string &key, Array &array) const;

  /// Reads an array of known type and shape to `target`, which has room for
  /// it: with no second copy, if the file has it in C order.
  Status readInto(const std::string &key, ElementType type,
                  const std::vector<int64_t> &shape, void *target) const;

private:
  Status find(const std::string &key, const zip::Member *&member) const;
  Status locate(const Status &status, const std::string &key) const;

  std::string path;
  File file;
  std::vector<std::string> order;
  std::map<std::string, zip::Member> members;
};

/// Reads a .npy file; the array's info then says C order.
Status readNpyFile(const std::string &path, Array &array);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_NPZREADER_H
