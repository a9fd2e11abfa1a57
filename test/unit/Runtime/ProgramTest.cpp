// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program text: what parses, what is printed, where mistakes are reported,
// and that no damaged text does harm.

#include "TestKernels.h"

#include "program/Program.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace dfa::rt::test {
namespace {

// Every command with every field, at values other than the defaults where
// there is a choice.
const char *const everything = R"(# all of it
dfa-program 1
abi 2
layout   everything	# tabs and comments
hyper lr eps
axis replicate nccl
axis shard any
class w derived=4 stats=2
array g element=bf16 part=full side=none
array s element=bf16 part=shard side=none
array p element=f32 part=shard side=none
class n derived=0 stats=0
accumulators 3
group_stats 1
kernel each kind=element class=w accs=0 block=128 vector=4
kernel norm kind=element class=w accs=2 block=256 vector=8
kernel ctl kind=control class=- accs=2 block=1024 vector=1
kernel seg kind=segment class=w accs=1 block=128 vector=1

entry fill
  memset class=w array=s stream=comm
  upload table=segments
  upload table=chunks stream=comm
  upload table=groups
  for_each_bucket class=w
    launch_elements kernel=each class=w table=full
    record event=filled stream=compute
    wait event=filled stream=comm
    collective kind=reduce_scatter axis=shard class=w source=g target=s order=rank
    collective kind=all_reduce axis=replicate class=w source=s target=s reduce=max
    collective kind=all_gather axis=shard class=w source=s target=g
    collective kind=broadcast axis=shard class=w source=g target=g stream=compute
    launch_elements kernel=norm class=w table=atoms acc=1 stream=comm
  end_bucket
end
entry finish
  collective kind=all_gather axis=shard source=sums target=sums acc=1 accs=2
  collective kind=all_reduce axis=replicate class=w source=presence target=presence reduce=or
  launch_control kernel=ctl acc=1 mode=gathered
  launch_control kernel=ctl mode=local stream=comm
  launch_segments kernel=seg class=w acc=2
  wait event=filled stream=compute
  barrier axis=shard
  read_back stream=comm
end
)";

TEST(Program, ParsesEverything) {
  Result<Program> parsed = Program::parse(everything, "e");
  ASSERT_TRUE(parsed.ok()) << parsed.status().str();
  const Program &program = *parsed;
  EXPECT_EQ(program.layout, "everything");
  EXPECT_EQ(program.hyper, (std::vector<std::string>{"lr", "eps"}));
  ASSERT_EQ(program.axes.size(), 2u);
  EXPECT_EQ(program.axes[0].transport, "nccl");
  ASSERT_EQ(program.classes.size(), 2u);
  EXPECT_EQ(program.classes[0].derived, 4);
  EXPECT_EQ(program.classes[0].stats, 2);
  ASSERT_EQ(program.classes[0].arrays.size(), 3u);
  EXPECT_EQ(program.classes[0].arrays[0].element, DataType::BF16);
  EXPECT_TRUE(program.classes[0].arrays[0].full);
  EXPECT_FALSE(program.classes[0].arrays[1].full);
  EXPECT_EQ(program.accumulators, 3);
  EXPECT_EQ(program.groupStats, 1);
  EXPECT_EQ(program.kernels[1].block, 256);
  EXPECT_EQ(program.kernels[2].classIndex, noClass);
  EXPECT_EQ(program.findEntry("finish"), 1);
  EXPECT_EQ(program.findEntry("begin"), -1);
  EXPECT_EQ(program.findArray(0, "p"), 2);

  const Command &launch = program.entries[0].commands[12];
  EXPECT_EQ(launch.kind, CommandKind::launch_elements);
  EXPECT_EQ(launch.line, 33);
  EXPECT_EQ(launch.get(Field::launch_elements_kernel), 1);
  EXPECT_EQ(launch.get(Field::launch_elements_table),
            int64_t(ChunkTable::Atoms));
  EXPECT_EQ(launch.get(Field::launch_elements_acc), 1);
  EXPECT_EQ(launch.get(Field::launch_elements_stream),
            int64_t(StreamChoice::Comm));
  const Command &gather = program.entries[1].commands[0];
  EXPECT_EQ(gather.get(Field::collective_source), sumsArray);
  EXPECT_EQ(gather.get(Field::collective_class), noClass);
}

TEST(Program, TestCoversEveryCommand) {
  Program program = parseOrDie(everything);
  std::vector<bool> seen(commandCount());
  for (const ProgramEntry &entry : program.entries)
    for (const Command &command : entry.commands)
      seen[static_cast<int>(command.kind)] = true;
  for (int command = 0; command < commandCount(); ++command)
    EXPECT_TRUE(seen[command]) << commandInfo(CommandKind(command)).name;
}

TEST(Program, EveryEnumeratedFieldHasWords) {
  for (int command = 0; command < commandCount(); ++command) {
    const CommandInfo &info = commandInfo(CommandKind(command));
    ASSERT_LE(size_t(info.fieldCount), Command().values.size()) << info.name;
    for (int index = 0; index < info.fieldCount; ++index) {
      int field = info.firstField + index;
      if (fieldInfo(field).kind != FieldKind::Enum)
        continue;
      const std::vector<std::string_view> &words = enumWords(field);
      EXPECT_FALSE(words.empty()) << info.name << " " << fieldInfo(field).name;
      std::string_view init = fieldInfo(field).init;
      EXPECT_TRUE(init.empty() ||
                  std::find(words.begin(), words.end(), init) != words.end());
    }
  }
}

TEST(Program, PrintIsAFixedPoint) {
  for (const char *text : {everything, localProgram, shardedProgram}) {
    Program program = parseOrDie(text);
    std::string printed = program.print();
    Result<Program> again = Program::parse(printed, "printed");
    ASSERT_TRUE(again.ok()) << again.status().str();
    EXPECT_EQ(again->print(), printed);
    ASSERT_EQ(again->entries.size(), program.entries.size());
    for (size_t entry = 0; entry < program.entries.size(); ++entry) {
      const std::vector<Command> &left = program.entries[entry].commands;
      const std::vector<Command> &right = again->entries[entry].commands;
      ASSERT_EQ(left.size(), right.size());
      for (size_t index = 0; index < left.size(); ++index) {
        EXPECT_EQ(left[index].kind, right[index].kind);
        EXPECT_EQ(left[index].values, right[index].values);
      }
    }
  }
}

// Replaces the first occurrence of `from` and expects a message.
void expectError(const std::string &from, const std::string &to,
                 const std::string &message) {
  std::string text = everything;
  size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  Result<Program> parsed = Program::parse(text, "e");
  ASSERT_FALSE(parsed.ok()) << from << " -> " << to;
  EXPECT_EQ(parsed.status().code(), Code::ParseError);
  EXPECT_NE(parsed.status().message().find(message), std::string::npos)
      << parsed.status().message();
}

TEST(Program, LocatedErrors) {
  expectError("dfa-program 1", "dfa-program 2",
              "e:2: expects 'dfa-program' version 1, but got 2");
  expectError("abi 2", "abi 99", "e:3: expects 'abi' version 2, but got 99");
  expectError("abi 2\n", "", "e:3: expects 'abi', but got 'layout'");
  expectError("layout   everything", "layout a b",
              "e:4: 'layout' expects 1 words, but got 2");
  expectError("axis replicate nccl", "axis replicate",
              "e:6: 'axis' expects 2 words, but got 1");
  expectError("derived=4", "derived=-4",
              "e:8: expects 'derived' from 0 to 1048576, but got '-4'");
  expectError("derived=4", "derived=4x", "but got '4x'");
  expectError("derived=4", "derived=99999999999999999999", "but got '9999");
  expectError(" stats=2", "", "e:8: 'class' expects a field 'stats'");
  expectError("stats=2", "stats=2 stats=2", "field 'stats' is given twice");
  expectError("stats=2", "stats=2 color=1", "'class' has no field 'color'");
  expectError("stats=2", "stats", "expects FIELD=VALUE, but got 'stats'");
  expectError("element=bf16", "element=bf15",
              "e:9: expects an element type, but got 'bf15'");
  expectError("part=full", "part=half",
              "expects part 'full' or 'shard', but got 'half'");
  expectError("array p", "array g", "array 'g' is declared twice");
  expectError("array p", "array sums", "array name 'sums' is reserved");
  expectError("class n", "class w", "class 'w' is declared twice");
  expectError("hyper lr eps", "hyper lr lr", "'lr' is declared twice");
  expectError("accumulators 3\ngroup_stats 1", "group_stats 1\naccumulators 3",
              "e:13: expects 'accumulators', but got 'group_stats'");
  expectError("kind=element", "kind=elements", "but got 'elements'");
  expectError("class=w accs=0", "class=q accs=0",
              "expects the name of a class, but got 'q'");
  expectError("class=w accs=0", "class=- accs=0", "expects a class, or '-'");
  expectError("accs=2 block=256", "accs=2 block=100", "expects whole warps");
  expectError("accs=2 block=256", "accs=4 block=256", "has 4 accumulators");
  expectError("kernel norm kind",
              "kernel norm kind=control class=- accs=0 block=1 vector=1\n"
              "kernel norm kind",
              "kernel 'norm' is declared twice");
  expectError("entry finish", "entry fill", "entry 'fill' is declared twice");
  expectError("  memset", "  memsets",
              "e:21: expects a command or 'end', but got 'memsets'");
  expectError("array=s stream", "array=x stream",
              "expects the name of an array, but got 'x'");
  expectError("table=segments", "table=rows",
              "expects 'table' to be one of 'segments', 'groups', 'chunks', "
              "but got 'rows'");
  expectError("kernel=each class=w", "kernel=norm class=w",
              "table 'atoms' is for kernels with accumulators");
  expectError("kernel=each class=w", "kernel=ctl class=w",
              "is not of the kind that 'launch_elements' runs");
  expectError("kernel=each class=w", "class=w",
              "e:26: 'launch_elements' expects a field 'kernel'");
  expectError("for_each_bucket class=w", "for_each_bucket class=n",
              "expects class 'n' of the enclosing loop");
  expectError("  for_each_bucket class=w\n",
              "  for_each_bucket class=w\n  for_each_bucket class=w\n",
              "loops over buckets do not nest");
  expectError("  end_bucket\n", "", "loop over buckets is not ended");
  expectError("  end_bucket\n", "  end_bucket\n  end_bucket\n",
              "'end_bucket' without a loop");
  expectError("wait event=filled stream=comm", "wait event=full stream=comm",
              "event 'full' is recorded nowhere");
  expectError("source=g target=s order", "source=s target=s order",
              "reduce_scatter expects a full source");
  expectError("source=g target=s order", "source=g target=p order",
              "of one element type, but got 'bf16' and 'f32'");
  expectError("source=s target=g", "source=s target=s",
              "all_gather expects a full target");
  expectError("acc=1 accs=2", "acc=2 accs=2", "expects accumulators from 1");
  expectError("acc=1 mode", "acc=2 mode", "uses accumulators up to 4");
  expectError("target=sums", "target=presence", "in place");
  expectError("source=sums target=sums", "source=g target=g",
              "expects 'sums' or 'presence' without a class");
  expectError("source=sums target=sums", "source=sums target=sums group_accs=2",
              "expects group accumulators among those of the collective");
  expectError("source=s target=g", "source=stats target=g",
              "'stats' expects an all_gather in place");
  expectError("source=s target=g", "source=stats target=stats accs=3",
              "'stats' expects accumulators from 1 to 2, but got 3");
  expectError("  read_back stream=comm\nend\n", "  read_back stream=comm\n",
              "e:45: expects a command or 'end', but the text ends");
  expectError("  read_back stream=comm\nend\n", "end\nfinish\n",
              "expects 'entry' or the end of the text, but got 'finish'");
}

TEST(Program, EmptyTextIsLocated) {
  Result<Program> parsed = Program::parse("", "x");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().message(),
            "x:1: expects 'dfa-program', but the text ends");
}

// Damaged texts: either an error, or a program that is its own fixed point.
void checkMutant(const std::string &text) {
  Result<Program> parsed = Program::parse(text, "mutant");
  if (!parsed.ok()) {
    ASSERT_EQ(parsed.status().code(), Code::ParseError);
    ASSERT_EQ(parsed.status().message().rfind("mutant:", 0), 0u);
    return;
  }
  std::string printed = parsed->print();
  Result<Program> again = Program::parse(printed, "printed");
  ASSERT_TRUE(again.ok()) << again.status().str() << "\n" << printed;
  ASSERT_EQ(again->print(), printed);
}

TEST(Program, MutatedTextsDoNoHarm) {
  std::mt19937 random(4);
  const std::string original = everything;
  std::vector<std::string> words;
  for (size_t from = 0; from < original.size();) {
    size_t to = original.find_first_of(" \n=", from);
    to = std::min(to, original.size());
    words.push_back(original.substr(from, to - from));
    from = to + 1;
  }
  for (int round = 0; round < 20000; ++round) {
    std::string text = original;
    int edits = 1 + random() % 3;
    for (int edit = 0; edit < edits; ++edit) {
      size_t at = random() % text.size();
      switch (random() % 5) {
      case 0:
        text[at] = char(random() % 256);
        break;
      case 1:
        text.erase(at, 1 + random() % 20);
        break;
      case 2:
        text.insert(at, words[random() % words.size()]);
        break;
      case 3: { // drop a line
        size_t end = text.find('\n', at);
        text.erase(at, end == std::string::npos ? end : end - at + 1);
        break;
      }
      case 4: // repeat a stretch
        text.insert(at, text.substr(random() % text.size(), 40));
        break;
      }
      if (text.empty())
        text = " ";
    }
    checkMutant(text);
    if (HasFatalFailure())
      return;
  }
}

} // namespace
} // namespace dfa::rt::test
