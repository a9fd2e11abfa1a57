// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step program in memory: what it declares and the commands of its entries,
// with every name resolved. Reading and writing the text form is here too;
// running it is Executor's business.

#ifndef DFA_PROGRAM_PROGRAM_H
#define DFA_PROGRAM_PROGRAM_H

#include "base/DataType.h"
#include "base/Status.h"
#include "program/Schema.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dfa::rt {

struct ProgramAxis {
  std::string name;
  std::string transport; // nccl | gloo | peer | any
};

struct ProgramArray {
  std::string name;
  DataType element = DataType::F32;
  bool full = false; // of the unsharded bucket, else of this rank's shard
  std::string side = "none";
};

struct ProgramClass {
  std::string name;
  int64_t derived = 0; // f32 a segment
  int64_t stats = 0;   // f64 a segment
  std::vector<ProgramArray> arrays;
};

enum class KernelKind : uint8_t { Element, Control, Segment };

struct ProgramKernel {
  std::string name;
  KernelKind kind = KernelKind::Element;
  int64_t classIndex = noClass;
  int64_t accs = 0;
  int64_t block = 0;
  int64_t vector = 0;
};

namespace detail {

constexpr CommandKind fieldOwners[] = {
#define DFA_RT_COMMAND_FIELD(command, field, kind, init, doc)                  \
  CommandKind::command,
#include "dfa-rt/program.def"
};

/// As many fields as a command has at most; those of one are consecutive.
constexpr size_t mostFields() {
  size_t most = 0, run = 0;
  CommandKind last = fieldOwners[0];
  for (CommandKind owner : fieldOwners) {
    run = owner == last ? run + 1 : 1;
    most = run > most ? run : most;
    last = owner;
  }
  return most;
}

} // namespace detail

/// One command. Each field holds an index (kernel, class, axis, array, event,
/// word) or a number; see Schema.h for the special values.
struct Command {
  CommandKind kind = CommandKind::launch_elements;
  int line = 0; // in the text, for messages
  std::array<int64_t, detail::mostFields()> values{};

  int64_t get(Field field) const {
    return values[static_cast<int>(field) - commandInfo(kind).firstField];
  }
};

struct ProgramEntry {
  std::string name;
  std::vector<Command> commands;
};

struct Program {
  std::string layout;
  std::vector<std::string> hyper;
  std::vector<ProgramAxis> axes;
  std::vector<ProgramClass> classes;
  int64_t accumulators = 0;
  int64_t groupStats = 0;
  std::vector<ProgramKernel> kernels;
  std::vector<ProgramEntry> entries;
  std::vector<std::string> events; // names, in order of first use

  /// Reads the text form. A mistake is reported as "SOURCE:LINE: expects ...".
  static Result<Program> parse(std::string_view text, std::string_view source);

  /// Writes the text form; parsing it gives an equal program.
  std::string print() const;

  // Lookups by name; -1 if there is none.
  int64_t findHyper(std::string_view name) const;
  int64_t findAxis(std::string_view name) const;
  int64_t findClass(std::string_view name) const;
  int64_t findKernel(std::string_view name) const;
  int64_t findEntry(std::string_view name) const;
  int64_t findArray(int64_t classIndex, std::string_view name) const;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_PROGRAM_H
