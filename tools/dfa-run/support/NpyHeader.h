// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header of a .npy file: text to ArrayInfo and back. The data behind it
// and the zip container are in NpzReader.h and NpzWriter.h.
#ifndef DFA_TOOLS_DFA_RUN_SUPPORT_NPYHEADER_H
#define DFA_TOOLS_DFA_RUN_SUPPORT_NPYHEADER_H

#include "support/Array.h"

#include <string>

namespace dfa::run {

/// Bytes of a .npy file that tell how long its header is: magic, version and
/// the length field of versions 2 and 3.
constexpr size_t npyPrefixBytes = 12;

/// From the first `npyPrefixBytes` bytes: where the header's text begins (10
/// or 12) and how long it is. Knows format versions 1, 2 and 3.
Status parseNpyPrefix(const unsigned char *prefix, size_t &textBegin,
                      size_t &textLength);

/// Parses the header's text, a Python dictionary literal with the keys
/// 'descr', 'fortran_order' and 'shape'. The result has passed `check`.
Status parseNpyText(const std::string &text, ArrayInfo &info);

/// A whole header, prefix included, padded to a multiple of 64 bytes. It is
/// version 1 unless that cannot hold it.
std::string formatNpyHeader(const ArrayInfo &info);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_SUPPORT_NPYHEADER_H
