// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules between records: unique names, kernels used as declared, loops closed,
// events recorded before they can be waited for, accumulators within range.

#include "program/Verify.h"

#include "dfa-rt/abi.h"

namespace dfa::rt {

namespace {

class Verifier {
public:
  Verifier(const Program &program, std::string_view source)
      : program(program), source(source) {}

  Status run() {
    DFA_RT_TRY(uniqueNames("axis", program.axes));
    DFA_RT_TRY(uniqueNames("class", program.classes));
    for (const ProgramClass &record : program.classes) {
      DFA_RT_TRY(uniqueNames("array", record.arrays));
      for (const ProgramArray &array : record.arrays)
        if (array.name == "sums" || array.name == "presence" ||
            array.name == "stats")
          return error(0, "array name '" + array.name + "' is reserved");
    }
    DFA_RT_TRY(uniqueNames("kernel", program.kernels));
    DFA_RT_TRY(uniqueNames("entry", program.entries));
    for (size_t index = 0; index < program.hyper.size(); ++index)
      if (program.findHyper(program.hyper[index]) != int64_t(index))
        return error(0, "hyper column '" + program.hyper[index] +
                            "' is declared twice");
    for (const ProgramKernel &kernel : program.kernels)
      DFA_RT_TRY(checkKernel(kernel));
    recordedIn.assign(program.events.size(), notRecorded);
    for (const ProgramEntry &entry : program.entries)
      DFA_RT_TRY(collectEvents(entry));
    for (const ProgramEntry &entry : program.entries)
      DFA_RT_TRY(checkEntry(entry));
    return Status();
  }

private:
  static constexpr int64_t notRecorded = -2;

  Status error(int line, const std::string &message) const {
    if (line == 0)
      return DFA_RT_ERROR(ParseError, "%.*s: %s", int(source.size()),
                          source.data(), message.c_str());
    return DFA_RT_ERROR(ParseError, "%.*s:%d: %s", int(source.size()),
                        source.data(), line, message.c_str());
  }

  template <typename Records>
  Status uniqueNames(const char *what, const Records &records) const {
    for (size_t index = 0; index < records.size(); ++index)
      for (size_t other = 0; other < index; ++other)
        if (records[index].name == records[other].name)
          return error(0, std::string(what) + " '" + records[index].name +
                              "' is declared twice");
    return Status();
  }

  Status checkKernel(const ProgramKernel &kernel) const {
    if ((kernel.kind == KernelKind::Control) != (kernel.classIndex == noClass))
      return error(0, "kernel '" + kernel.name +
                          "' expects a class, or '-' if and only if it is a "
                          "control kernel");
    if (kernel.kind == KernelKind::Element &&
        (kernel.block < 1 || kernel.vector < 1))
      return error(0, "element kernel '" + kernel.name +
                          "' expects block and vector of at least 1");
    if (kernel.kind == KernelKind::Element && kernel.accs > 0 &&
        kernel.block % 32 != 0)
      return error(0, "kernel '" + kernel.name +
                          "' with accumulators expects whole warps a block, "
                          "but got block=" +
                          std::to_string(kernel.block));
    if (kernel.accs > program.accumulators)
      return error(0, "kernel '" + kernel.name + "' has " +
                          std::to_string(kernel.accs) +
                          " accumulators, but the program has " +
                          std::to_string(program.accumulators));
    return Status();
  }

  // An event belongs to the buckets of one class, or to no bucket.
  Status collectEvents(const ProgramEntry &entry) {
    int64_t loop = noClass;
    for (const Command &command : entry.commands) {
      if (command.kind == CommandKind::for_each_bucket)
        loop = command.get(Field::for_each_bucket_class);
      if (command.kind == CommandKind::end_bucket)
        loop = noClass;
      if (command.kind != CommandKind::record)
        continue;
      int64_t event = command.get(Field::record_event);
      if (recordedIn[event] != notRecorded && recordedIn[event] != loop)
        return error(command.line, "event '" + program.events[event] +
                                       "' is recorded in different loops");
      recordedIn[event] = loop;
    }
    return Status();
  }

  Status checkEntry(const ProgramEntry &entry) {
    const Command *open = nullptr;
    for (const Command &command : entry.commands) {
      int64_t loop = open ? open->get(Field::for_each_bucket_class) : noClass;
      switch (command.kind) {
      case CommandKind::for_each_bucket:
        if (open)
          return error(command.line, "loops over buckets do not nest");
        if (command.get(Field::for_each_bucket_class) == noClass)
          return error(command.line, "a loop over buckets expects a class");
        open = &command;
        break;
      case CommandKind::end_bucket:
        if (!open)
          return error(command.line, "'end_bucket' without a loop");
        open = nullptr;
        break;
      case CommandKind::launch_elements:
        DFA_RT_TRY(checkElements(command, loop));
        break;
      case CommandKind::launch_control:
        DFA_RT_TRY(checkKernelUse(command,
                                  command.get(Field::launch_control_kernel),
                                  KernelKind::Control, noClass,
                                  command.get(Field::launch_control_acc)));
        break;
      case CommandKind::launch_segments:
        DFA_RT_TRY(checkLoop(command, loop,
                             command.get(Field::launch_segments_class)));
        DFA_RT_TRY(checkKernelUse(
            command, command.get(Field::launch_segments_kernel),
            KernelKind::Segment, command.get(Field::launch_segments_class),
            command.get(Field::launch_segments_acc)));
        break;
      case CommandKind::collective:
        DFA_RT_TRY(checkCollective(command, loop));
        break;
      case CommandKind::wait:
        DFA_RT_TRY(checkWait(command, loop));
        break;
      case CommandKind::memset:
        if (command.get(Field::memset_class) == noClass)
          return error(command.line, "'memset' expects a class");
        if (command.get(Field::memset_array) < 0)
          return error(command.line, "'memset' expects an array of a class");
        DFA_RT_TRY(checkLoop(command, loop, command.get(Field::memset_class)));
        break;
      case CommandKind::record:
      case CommandKind::upload:
      case CommandKind::read_back:
      case CommandKind::barrier:
        break;
      }
    }
    if (open)
      return error(open->line, "loop over buckets is not ended");
    return Status();
  }

  Status checkLoop(const Command &command, int64_t loop,
                   int64_t classIndex) const {
    if (loop == noClass || loop == classIndex)
      return Status();
    return error(command.line, "expects class '" + program.classes[loop].name +
                                   "' of the enclosing loop");
  }

  Status checkKernelUse(const Command &command, int64_t kernelIndex,
                        KernelKind kind, int64_t classIndex,
                        int64_t acc) const {
    const ProgramKernel &kernel = program.kernels[kernelIndex];
    if (kernel.kind != kind)
      return error(command.line,
                   "kernel '" + kernel.name + "' is not of the kind that '" +
                       std::string(commandInfo(command.kind).name) + "' runs");
    if (kernel.classIndex != classIndex)
      return error(command.line,
                   "kernel '" + kernel.name + "' is for another class");
    if (acc + kernel.accs > program.accumulators)
      return error(command.line, "kernel '" + kernel.name +
                                     "' uses accumulators up to " +
                                     std::to_string(acc + kernel.accs) +
                                     ", but the program has " +
                                     std::to_string(program.accumulators));
    return Status();
  }

  Status checkElements(const Command &command, int64_t loop) const {
    int64_t classIndex = command.get(Field::launch_elements_class);
    DFA_RT_TRY(checkLoop(command, loop, classIndex));
    int64_t kernel = command.get(Field::launch_elements_kernel);
    DFA_RT_TRY(checkKernelUse(command, kernel, KernelKind::Element, classIndex,
                              command.get(Field::launch_elements_acc)));
    bool atoms =
        command.get(Field::launch_elements_table) == int64_t(ChunkTable::Atoms);
    if (atoms != (program.kernels[kernel].accs > 0))
      return error(command.line,
                   "table 'atoms' is for kernels with accumulators, and only "
                   "for them");
    return Status();
  }

  Status checkCollective(const Command &command, int64_t loop) const {
    int64_t classIndex = command.get(Field::collective_class);
    int64_t source = command.get(Field::collective_source);
    int64_t target = command.get(Field::collective_target);
    if (source == sumsArray || source == presenceArray) {
      if (target != source)
        return error(command.line, "'sums' and 'presence' are exchanged in "
                                   "place");
      if (source == sumsArray)
        return checkSums(command);
      if (command.get(Field::collective_kind) !=
          int64_t(CollectiveKind::AllReduce))
        return error(command.line, "'presence' expects an all_reduce");
      return Status();
    }
    if (source == statsArray) {
      if (target != source || command.get(Field::collective_kind) !=
                                  int64_t(CollectiveKind::AllGather))
        return error(command.line, "'stats' expects an all_gather in place");
      int64_t accs = command.get(Field::collective_accs);
      if (accs < 1 || accs > program.classes[classIndex].stats)
        return error(command.line,
                     "'stats' expects accumulators from 1 to " +
                         std::to_string(program.classes[classIndex].stats) +
                         ", but got " + std::to_string(accs));
      return Status();
    }
    if (classIndex == noClass || target < 0)
      return error(command.line, "expects source and target to be arrays of "
                                 "one class");
    DFA_RT_TRY(checkLoop(command, loop, classIndex));
    const ProgramArray &from = program.classes[classIndex].arrays[source];
    const ProgramArray &to = program.classes[classIndex].arrays[target];
    if (from.element != to.element)
      return error(command.line, "expects source and target of one element "
                                 "type, but got '" +
                                     std::string(name(from.element)) +
                                     "' and '" + name(to.element) + "'");
    return checkParts(command, from, to);
  }

  Status checkParts(const Command &command, const ProgramArray &from,
                    const ProgramArray &to) const {
    switch (CollectiveKind(command.get(Field::collective_kind))) {
    case CollectiveKind::ReduceScatter:
      if (!from.full)
        return error(command.line, "reduce_scatter expects a full source");
      break;
    case CollectiveKind::AllGather:
      if (!to.full)
        return error(command.line, "all_gather expects a full target");
      break;
    case CollectiveKind::AllReduce:
    case CollectiveKind::Broadcast:
      if (from.full != to.full)
        return error(command.line, "expects source and target to be the same "
                                   "part of the bucket");
      break;
    }
    return Status();
  }

  Status checkSums(const Command &command) const {
    int64_t acc = command.get(Field::collective_acc);
    int64_t accs = command.get(Field::collective_accs);
    if (command.get(Field::collective_class) != noClass)
      return error(command.line, "'sums' expects no class");
    int64_t groupAccs = command.get(Field::collective_group_accs);
    if (groupAccs < 0 || groupAccs > accs || groupAccs > program.groupStats)
      return error(command.line,
                   "expects group accumulators among those of the collective "
                   "and of the program, but got " +
                       std::to_string(groupAccs));
    if (accs < 1 || acc + accs > program.accumulators)
      return error(command.line, "expects accumulators from 1 to " +
                                     std::to_string(program.accumulators) +
                                     ", but got acc=" + std::to_string(acc) +
                                     " accs=" + std::to_string(accs));
    CollectiveKind kind = CollectiveKind(command.get(Field::collective_kind));
    if (kind != CollectiveKind::AllGather && kind != CollectiveKind::AllReduce)
      return error(command.line, "'sums' expects an all_gather or all_reduce");
    return Status();
  }

  Status checkWait(const Command &command, int64_t loop) const {
    int64_t event = command.get(Field::wait_event);
    if (recordedIn[event] == notRecorded)
      return error(command.line,
                   "event '" + program.events[event] + "' is recorded nowhere");
    if (loop != noClass && recordedIn[event] != noClass &&
        recordedIn[event] != loop)
      return error(command.line, "event '" + program.events[event] +
                                     "' belongs to buckets of another class");
    return Status();
  }

  const Program &program;
  std::string_view source;
  std::vector<int64_t> recordedIn; // the loop's class, for each event
};

} // namespace

Status verify(const Program &program, std::string_view source) {
  return Verifier(program, source).run();
}

} // namespace dfa::rt
