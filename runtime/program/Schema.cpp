// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables made from program.def. The words of enumerated fields are listed
// here, since the X-macros carry them only in prose; a test checks that no
// enumerated field is without words.

#include "program/Schema.h"

#include <array>

namespace dfa::rt {

namespace {

constexpr std::string_view commandNames[] = {
#define DFA_RT_COMMAND(name, doc) #name,
#include "dfa-rt/program.def"
};
constexpr int commands = sizeof(commandNames) / sizeof(commandNames[0]);

struct FieldRow {
  CommandKind command;
  std::string_view kind;
  FieldInfo info;
};

constexpr FieldKind fieldKind(std::string_view word) {
  if (word == "kernel")
    return FieldKind::Kernel;
  if (word == "class")
    return FieldKind::Class;
  if (word == "table")
    return FieldKind::Table;
  if (word == "axis")
    return FieldKind::Axis;
  if (word == "array")
    return FieldKind::Array;
  if (word == "name")
    return FieldKind::Name;
  if (word == "enum")
    return FieldKind::Enum;
  return FieldKind::Int;
}

constexpr FieldRow fieldRows[] = {
#define DFA_RT_COMMAND_FIELD(command, field, kind, init, doc)                  \
  {CommandKind::command, #kind, {#field, fieldKind(#kind), init}},
#include "dfa-rt/program.def"
};
constexpr int fields = sizeof(fieldRows) / sizeof(fieldRows[0]);

struct Tables {
  std::array<CommandInfo, commands> infos;
  std::array<std::vector<std::string_view>, fields> words;

  Tables() {
    for (int command = 0; command < commands; ++command)
      infos[command] = {commandNames[command], 0, 0};
    // Fields of a command are consecutive in program.def.
    for (int field = fields - 1; field >= 0; --field) {
      CommandInfo &info = infos[static_cast<int>(fieldRows[field].command)];
      info.firstField = field;
      ++info.fieldCount;
    }
    for (int field = 0; field < fields; ++field)
      if (fieldRows[field].info.kind == FieldKind::Enum)
        words[field] = wordsOf(static_cast<Field>(field));
  }

  static std::vector<std::string_view> wordsOf(Field field) {
    if (fieldRows[static_cast<int>(field)].info.name == "stream")
      return {"compute", "comm", "side"};
    switch (field) {
    case Field::launch_elements_table:
      return {"chunks", "atoms", "full"};
    case Field::launch_control_mode:
    case Field::launch_segments_mode:
      return {"whole", "local", "gathered"};
    case Field::collective_kind:
      return {"reduce_scatter", "all_reduce", "all_gather", "broadcast"};
    case Field::collective_reduce:
      return {"sum", "max", "or"};
    case Field::collective_order:
      return {"any", "rank"};
    case Field::upload_table:
      return {"segments", "groups", "chunks"};
    default:
      return {};
    }
  }
};

const Tables &tables() {
  static const Tables instance;
  return instance;
}

} // namespace

const CommandInfo &commandInfo(CommandKind kind) {
  return tables().infos[static_cast<int>(kind)];
}

const FieldInfo &fieldInfo(int field) { return fieldRows[field].info; }

int commandCount() { return commands; }

bool findCommand(std::string_view word, CommandKind &kind) {
  for (int command = 0; command < commands; ++command) {
    if (commandNames[command] != word)
      continue;
    kind = static_cast<CommandKind>(command);
    return true;
  }
  return false;
}

const std::vector<std::string_view> &enumWords(int field) {
  return tables().words[field];
}

} // namespace dfa::rt
