// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `ptxas -v` prints about each kernel.

#include "dfa/Target/Cuda.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir;
using namespace mlir::dfa;

/// The number in front of `unit` in a line such as
/// "0 bytes stack frame, 8 bytes spill stores"; 0 if it is not there.
static unsigned getNumberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef head = line.take_front(at).rtrim();
  StringRef digits =
      head.take_back(head.size() - head.find_last_not_of("0123456789") - 1);
  unsigned number = 0;
  if (digits.getAsInteger(10, number))
    return 0;
  return number;
}

std::vector<KernelResources> dfa::parseResources(StringRef log) {
  std::vector<KernelResources> kernels;
  SmallVector<StringRef> lines;
  log.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function")) {
      KernelResources kernel;
      kernel.name = line.split('\'').second.split('\'').first.str();
      kernels.push_back(kernel);
    }
    if (kernels.empty())
      continue;
    if (line.contains("bytes stack frame")) {
      kernels.back().stackBytes = getNumberBefore(line, "bytes stack frame");
      kernels.back().spillBytes = getNumberBefore(line, "bytes spill stores") +
                                  getNumberBefore(line, "bytes spill loads");
    }
    if (line.contains("Used "))
      kernels.back().registers = getNumberBefore(line, "registers");
  }
  return kernels;
}
