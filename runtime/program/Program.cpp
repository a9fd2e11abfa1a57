// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Look-ups in a program, and its text form. Fields at their default are not
// printed, so a printed program is as short as a written one.

#include "program/Program.h"

#include "dfa-rt/abi.h"

namespace dfa::rt {

template <typename Records>
static int64_t findNamed(const Records &records, std::string_view name) {
  for (size_t index = 0; index < records.size(); ++index)
    if (records[index].name == name)
      return static_cast<int64_t>(index);
  return -1;
}

int64_t Program::findHyper(std::string_view name) const {
  for (size_t index = 0; index < hyper.size(); ++index)
    if (hyper[index] == name)
      return static_cast<int64_t>(index);
  return -1;
}

int64_t Program::findAxis(std::string_view name) const {
  return findNamed(axes, name);
}

int64_t Program::findClass(std::string_view name) const {
  return findNamed(classes, name);
}

int64_t Program::findKernel(std::string_view name) const {
  return findNamed(kernels, name);
}

int64_t Program::findEntry(std::string_view name) const {
  return findNamed(entries, name);
}

int64_t Program::findArray(int64_t classIndex, std::string_view name) const {
  return findNamed(classes[classIndex].arrays, name);
}

static const char *kindWord(KernelKind kind) {
  switch (kind) {
  case KernelKind::Element:
    return "element";
  case KernelKind::Control:
    return "control";
  case KernelKind::Segment:
    return "segment";
  }
  return "?";
}

static std::string className(const Program &program, int64_t index) {
  return index == noClass ? "-" : program.classes[index].name;
}

static std::string valueText(const Program &program, int field, int64_t value,
                             int64_t classIndex) {
  switch (fieldInfo(field).kind) {
  case FieldKind::Kernel:
    return program.kernels[value].name;
  case FieldKind::Class:
    return className(program, value);
  case FieldKind::Axis:
    return program.axes[value].name;
  case FieldKind::Array:
    if (value == sumsArray)
      return "sums";
    if (value == statsArray)
      return "stats";
    if (value == presenceArray)
      return "presence";
    return program.classes[classIndex].arrays[value].name;
  case FieldKind::Table:
  case FieldKind::Enum:
    return std::string(enumWords(field)[value]);
  case FieldKind::Name:
    return program.events[value];
  case FieldKind::Int:
    return std::to_string(value);
  }
  return "?";
}

static std::string commandText(const Program &program, const Command &command) {
  const CommandInfo &info = commandInfo(command.kind);
  std::string text = std::string(info.name);
  int64_t classIndex = noClass;
  for (int index = 0; index < info.fieldCount; ++index)
    if (fieldInfo(info.firstField + index).kind == FieldKind::Class)
      classIndex = command.values[index];
  for (int index = 0; index < info.fieldCount; ++index) {
    const FieldInfo &field = fieldInfo(info.firstField + index);
    std::string value = valueText(program, info.firstField + index,
                                  command.values[index], classIndex);
    if (value != field.init)
      text += " " + std::string(field.name) + "=" + value;
  }
  return text;
}

std::string Program::print() const {
  std::string text = "dfa-program " + std::to_string(DFA_RT_PROGRAM_VERSION) +
                     "\nabi " + std::to_string(DFA_RT_ABI_VERSION) +
                     "\nlayout " + layout + "\nhyper";
  for (const std::string &column : hyper)
    text += " " + column;
  text += "\n";
  for (const ProgramAxis &axis : axes)
    text += "axis " + axis.name + " " + axis.transport + "\n";
  for (const ProgramClass &record : classes) {
    text += "class " + record.name +
            " derived=" + std::to_string(record.derived) +
            " stats=" + std::to_string(record.stats) + "\n";
    for (const ProgramArray &array : record.arrays)
      text += "array " + array.name + " element=" + rt::name(array.element) +
              " part=" + (array.full ? "full" : "shard") +
              " side=" + array.side + "\n";
  }
  text += "accumulators " + std::to_string(accumulators) + "\n";
  text += "group_stats " + std::to_string(groupStats) + "\n";
  for (const ProgramKernel &kernel : kernels)
    text += "kernel " + kernel.name + " kind=" + kindWord(kernel.kind) +
            " class=" + className(*this, kernel.classIndex) +
            " accs=" + std::to_string(kernel.accs) +
            " block=" + std::to_string(kernel.block) +
            " vector=" + std::to_string(kernel.vector) + "\n";
  for (const ProgramEntry &entry : entries) {
    text += "entry " + entry.name + "\n";
    int depth = 1;
    for (const Command &command : entry.commands) {
      if (command.kind == CommandKind::end_bucket)
        --depth;
      text += std::string(2 * depth, ' ') + commandText(*this, command) + "\n";
      if (command.kind == CommandKind::for_each_bucket)
        ++depth;
    }
    text += "end\n";
  }
  return text;
}

} // namespace dfa::rt
