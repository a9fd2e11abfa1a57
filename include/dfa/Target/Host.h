// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as functions of this process: compiled at run time for the CPU that
// runs it.

#ifndef DFA_TARGET_HOST_H
#define DFA_TARGET_HOST_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace mlir::dfa {

struct HostOptions {
  /// Elements of a vector; the bits of the results do not depend on it.
  unsigned vectorWidth = 16;
};

/// Compiled kernels. The functions live as long as this object.
class HostKernels {
public:
  ~HostKernels();
  HostKernels(const HostKernels &) = delete;
  HostKernels &operator=(const HostKernels &) = delete;

  /// Address of a kernel by the name of its op; null if there is none. Its
  /// type is that of dfa-rt/abi.h for its kind.
  void *lookup(StringRef name) const { return functions.lookup(name); }

  /// The machine code as an object file, for loadHostKernels.
  StringRef getObject() const;

  /// All kernels by name.
  const llvm::StringMap<void *> &getFunctions() const { return functions; }

private:
  friend llvm::Expected<std::unique_ptr<HostKernels>>
  loadHostKernels(StringRef object, ArrayRef<std::string> names);
  HostKernels();

  struct Engine;
  std::unique_ptr<Engine> engine;
  llvm::StringMap<void *> functions;
};

/// Compiles every kernel of a module (level C), which it leaves unchanged.
/// Emits a diagnostic on failure.
FailureOr<std::unique_ptr<HostKernels>>
compileForHost(ModuleOp module, const HostOptions &options = {});

/// Links an object file that compileForHost made on such a CPU, and finds its
/// kernels.
llvm::Expected<std::unique_ptr<HostKernels>>
loadHostKernels(StringRef object, ArrayRef<std::string> names);

} // namespace mlir::dfa

#endif // DFA_TARGET_HOST_H
