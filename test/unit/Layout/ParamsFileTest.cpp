// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PARAMS.json: what is read, and where mistakes are reported.
#include "ParamsFile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dfa::tools;
using dfa::layout::Expected;
using dfa::layout::Format;
using dfa::layout::Order;
using testing::ElementsAre;
using testing::HasSubstr;

static std::vector<ParamEntry> parsed(const std::string &text) {
  Expected<std::vector<ParamEntry>> entries = parseParams("p.json", text);
  EXPECT_TRUE(entries.ok()) << entries.message();
  return entries ? *entries : std::vector<ParamEntry>();
}

static std::string errorOf(const std::string &text) {
  Expected<std::vector<ParamEntry>> entries = parseParams("p.json", text);
  EXPECT_FALSE(entries.ok());
  return entries.message();
}

TEST(ParamsFile, AllKeys) {
  std::vector<ParamEntry> entries = parsed(R"([
    {"name": "a", "shape": [4, 8, 3, 3], "dtype": "bfloat16",
     "memory_format": "channels_last", "group": 2},
    {"order": [1, 0], "shape": [5, 6], "name": "\u00e4\"b"},
    {"name": "c", "shape": [], "dtype": "torch.float32"}
  ])");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_THAT(entries[0].shape, ElementsAre(4, 8, 3, 3));
  EXPECT_EQ(entries[0].dtype, Format::BF16);
  EXPECT_EQ(entries[0].order, (Order{0, 2, 3, 1}));
  EXPECT_EQ(entries[0].group, 2);
  EXPECT_EQ(entries[0].where.line, 2);
  EXPECT_EQ(entries[0].where.column, 5);
  EXPECT_EQ(entries[1].name, "\xc3\xa4\"b");
  EXPECT_EQ(entries[1].order, (Order{1, 0}));
  EXPECT_FALSE(entries[1].dtype.has_value());
  EXPECT_EQ(entries[1].where.line, 4);
  EXPECT_THAT(entries[2].shape, ElementsAre());
  EXPECT_EQ(entries[2].dtype, Format::F32);
}

TEST(ParamsFile, MemoryFormats) {
  std::vector<ParamEntry> entries = parsed(R"([
    {"name": "a", "shape": [2, 4, 2, 3, 3],
     "memory_format": "channels_last_3d"},
    {"name": "b", "shape": [2, 3, 4, 5], "memory_format": "contiguous"},
    {"name": "c", "shape": [2, 3, 4, 5]}])");
  EXPECT_EQ(entries[0].order, (Order{0, 2, 3, 4, 1}));
  EXPECT_EQ(entries[1].order, (Order{0, 1, 2, 3}));
  EXPECT_FALSE(entries[2].order.has_value());
}

TEST(ParamsFile, ShortFormAndWrappedList) {
  std::vector<ParamEntry> entries =
      parsed(R"({"model": "m", "params": [["a", [2, 3]], ["b", []]]})");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_THAT(entries[0].shape, ElementsAre(2, 3));
  EXPECT_TRUE(parsed("[]").empty());
}

TEST(ParamsFile, SizesBeyond32Bits) {
  EXPECT_THAT(parsed(R"([["a", [9223372036854775807]]])")[0].shape,
              ElementsAre(9223372036854775807));
  EXPECT_THAT(errorOf(R"([["a", [9223372036854775808]]])"),
              HasSubstr("p.json:1:9: error: expected a size"));
}

TEST(ParamsFile, MistakesHaveAPlace) {
  const struct {
    const char *text;
    const char *message;
  } rows[] = {
      {"", "p.json:1:1: error: syntax error"},
      {"[\n{\"name\" 3}]", "p.json:2:9: error: syntax error"},
      {"{}", "p.json:1:1: error: expected a list of parameters, but got an "
             "object"},
      {"[\n  7]", "p.json:2:3: error: expected an object with name and shape, "
                  "but got 7"},
      {"[{\"shape\": []}]", "p.json:1:2: error: expected a parameter with "
                            "'name'"},
      {"[{\"name\": \"a\"}]", "p.json:1:2: error: expected a parameter with "
                              "'shape'"},
      {"[{\"name\": 5, \"shape\": []}]", "p.json:1:11: error: expected a name"},
      {"[{\"name\": \"\", \"shape\": []}]", "expected a name"},
      {"[{\"name\": \"a\",\n \"shape\": [2,\n -1]}]",
       "p.json:3:2: error: expected a size that is an integer of at least 0, "
       "but got -1"},
      {"[{\"name\": \"a\", \"shape\": [2.5]}]", "but got a number"},
      {"[{\"name\": \"a\", \"shape\": 3}]", "p.json:1:25: error: expected a "
                                            "shape that is a list"},
      {"[{\"name\": \"a\", \"shape\": [], \"dtype\": \"int8\"}]",
       "p.json:1:38: error: expected a dtype out of float32, float16, "
       "bfloat16, but got 'int8'"},
      {"[{\"name\": \"a\", \"shape\": [2, 3], \"order\": [0, 0]}]",
       "p.json:1:42: error: expected an order that lists each of the 2 "
       "dimensions once, but got [0, 0]"},
      {"[{\"name\": \"a\", \"shape\": [2, 3], \"order\": [0, 2]}]",
       "p.json:1:46: error: expected a dimension below 2, but got 2"},
      {"[{\"name\": \"a\", \"shape\": [2, 3], \"order\": []}]", "but got []"},
      {"[{\"name\": \"a\", \"shape\": [2], \"memory_format\": "
       "\"channels_last\"}]",
       "expected 4 dimensions for channels_last, but got 1"},
      {"[{\"name\": \"a\", \"shape\": [2], \"memory_format\": \"nhwc\"}]",
       "but got 'nhwc'"},
      {"[{\"name\": \"a\", \"shape\": [2], \"memory_format\": "
       "\"contiguous\", \"order\": [0]}]",
       "expected order or memory_format, not both"},
      {"[{\"name\": \"a\", \"shape\": [], \"group\": -1}]",
       "p.json:1:38: error: expected a group from 0 to 65535, but got -1"},
      {"[{\"name\": \"a\", \"shape\": [], \"size\": 1}]",
       "p.json:1:37: error: unknown key 'size'"},
      {"[{\"name\": \"a\", \"shape\": [], \"name\": \"b\"}]",
       "p.json:1:37: error: key 'name' given twice"},
      {"[[\"a\"]]", "p.json:1:2: error: expected [name, shape]"},
  };
  for (const auto &row : rows)
    EXPECT_THAT(errorOf(row.text), HasSubstr(row.message)) << row.text;
}

TEST(ParamsFile, DeepNestingIsAnError) {
  EXPECT_THAT(errorOf(std::string(100000, '[')),
              HasSubstr("expected at most 64 nested lists"));
}

TEST(ParamsFile, HugeNumbersAndBadBytes) {
  EXPECT_THAT(errorOf("[1e999]"), HasSubstr("p.json:1:"));
  EXPECT_THAT(errorOf("[\"\xff\"]"), HasSubstr("p.json:1:"));
}
