// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statuses, results, element types and the log level.

#include "base/Status.h"
#include "base/DataType.h"
#include "base/Log.h"

#include <gtest/gtest.h>

namespace dfa::rt::test {
namespace {

Status failing(int value) {
  return DFA_RT_ERROR(InvalidArgument, "expects 1, but got %d", value);
}

Status passingOn(int value, bool &reached) {
  if (value != 1)
    DFA_RT_TRY(failing(value));
  reached = true;
  return Status();
}

TEST(Status, SuccessIsSilent) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::Ok);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.str(), "ok");
}

TEST(Status, FailureCarriesMessageAndPlace) {
  Status status = failing(7);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_EQ(status.message(), "expects 1, but got 7");
  EXPECT_STREQ(status.file(), "StatusTest.cpp");
  EXPECT_GT(status.line(), 0);
  EXPECT_EQ(status.str(), "invalid argument: expects 1, but got 7 "
                          "(StatusTest.cpp:" +
                              std::to_string(status.line()) + ")");
}

TEST(Status, TryReturnsOnlyFailures) {
  bool reached = false;
  EXPECT_EQ(passingOn(2, reached).message(), "expects 1, but got 2");
  EXPECT_FALSE(reached);
  EXPECT_TRUE(passingOn(1, reached).ok());
  EXPECT_TRUE(reached);
}

TEST(Status, EveryCodeHasItsOwnName) {
  for (int left = 0; left <= 9; ++left)
    for (int right = 0; right < left; ++right)
      EXPECT_STRNE(codeName(Code(left)), codeName(Code(right)));
}

TEST(Status, LongMessagesAreWhole) {
  std::string text(5000, 'x');
  EXPECT_EQ(format("<%s>", text.c_str()), "<" + text + ">");
}

TEST(DataType, NamesAndSizes) {
  const std::pair<const char *, size_t> known[] = {
      {"f64", 8},       {"f32", 4},    {"f16", 2},    {"bf16", 2},
      {"i64", 8},       {"i32", 4},    {"i16", 2},    {"i8", 1},
      {"remainder", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}, {"u32", 4},
  };
  for (const std::pair<const char *, size_t> &each : known) {
    DataType type;
    ASSERT_TRUE(parseDataType(each.first, type)) << each.first;
    EXPECT_STREQ(name(type), each.first);
    EXPECT_EQ(sizeOf(type), each.second);
  }
  DataType type;
  EXPECT_FALSE(parseDataType("f31", type));
  EXPECT_FALSE(parseDataType("", type));
}

TEST(Log, LevelFilters) {
  LogLevel before = logLevel();
  setLogLevel(LogLevel::Error);
  testing::internal::CaptureStderr();
  DFA_RT_LOG(Warn, "hidden %d", 1);
  DFA_RT_LOG(Error, "shown %d", 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "dfa: error: shown 2\n");
  setLogLevel(LogLevel::Off);
  testing::internal::CaptureStderr();
  DFA_RT_LOG(Error, "hidden");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  setLogLevel(before);
}

} // namespace
} // namespace dfa::rt::test
