// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// program.def as data: the commands, their fields and the words an enumerated
// field may hold. Parser, printer and executor read the format from here only.

#ifndef DFA_PROGRAM_SCHEMA_H
#define DFA_PROGRAM_SCHEMA_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace dfa::rt {

/// The commands, in the order of program.def.
enum class CommandKind : uint8_t {
#define DFA_RT_COMMAND(name, doc) name,
#include "dfa-rt/program.def"
};

/// All fields of all commands, in the order of program.def:
/// Field::launch_elements_kernel and so on.
enum class Field : uint8_t {
#define DFA_RT_COMMAND_FIELD(command, field, kind, init, doc) command##_##field,
#include "dfa-rt/program.def"
};

/// What a field's value names.
enum class FieldKind : uint8_t {
  Kernel,
  Class,
  Table,
  Axis,
  Array,
  Name,
  Enum,
  Int,
};

struct FieldInfo {
  std::string_view name;
  FieldKind kind;
  std::string_view init; // empty: the field must be given
};

struct CommandInfo {
  std::string_view name;
  int firstField; // index of its first field among all fields
  int fieldCount;
};

/// The description of a command.
const CommandInfo &commandInfo(CommandKind kind);
/// The description of a field, by its index among all fields.
const FieldInfo &fieldInfo(int field);
/// The number of commands.
int commandCount();
/// Finds a command by its word; returns false if there is none.
bool findCommand(std::string_view word, CommandKind &kind);
/// The words that an enumerated field may hold, in the order of their values.
const std::vector<std::string_view> &enumWords(int field);

// Values of enumerated fields: positions in enumWords.
enum class StreamChoice : int64_t { Compute, Comm, Side };
enum class ChunkTable : int64_t { Chunks, Atoms, Full };
enum class ControlMode : int64_t { Whole, Local, Gathered };
enum class CollectiveKind : int64_t {
  ReduceScatter,
  AllReduce,
  AllGather,
  Broadcast,
};
enum class CollectiveOrder : int64_t { Any, Rank };
enum class UploadTable : int64_t { Segments, Groups, Chunks };

// Values of array fields that are not arrays of the class.
inline constexpr int64_t sumsArray = -2;
inline constexpr int64_t presenceArray = -3;
inline constexpr int64_t statsArray = -4;
// Value of a class field that holds `-`.
inline constexpr int64_t noClass = -1;

} // namespace dfa::rt

#endif // DFA_PROGRAM_SCHEMA_H
