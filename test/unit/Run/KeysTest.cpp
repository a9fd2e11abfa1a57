// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys of .npz files.
#include "support/Keys.h"

#include "gtest/gtest.h"

using namespace dfa::run;

TEST(Keys, SplitsAtTheFirstSlash) {
  Key key;
  ASSERT_TRUE(parseKey("param/conv/in.weight", key).ok());
  EXPECT_EQ(key.kind, "param");
  EXPECT_EQ(key.name, "conv/in.weight");
  EXPECT_FALSE(key.bf16);
  EXPECT_EQ(key.str(), "param/conv/in.weight");
}

TEST(Keys, TakesTheSuffixOff) {
  Key key;
  ASSERT_TRUE(parseKey("grad/a:b:bf16", key).ok());
  EXPECT_EQ(key.name, "a:b");
  EXPECT_TRUE(key.bf16);
  EXPECT_EQ(key.str(), "grad/a:b:bf16");
}

TEST(Keys, SaysWhatIsWrong) {
  Key key;
  EXPECT_EQ(parseKey("weight", key).message(),
            "expects a key of the form KIND/NAME, but got 'weight'");
  EXPECT_EQ(parseKey("/weight", key).message(),
            "expects a key of the form KIND/NAME, but got '/weight'");
  EXPECT_EQ(parseKey("param/", key).message(),
            "expects a name behind the slash, but got 'param/'");
  EXPECT_EQ(parseKey("param/:bf16", key).message(),
            "expects a name behind the slash, but got 'param/:bf16'");
  EXPECT_EQ(parseKey("control/step:bf16", key).message(),
            "expects a control field without ':bf16', but got "
            "'control/step:bf16'");
}

TEST(Keys, QuotesBytesThatATerminalWouldInterpret) {
  EXPECT_EQ(quoted(std::string("a\x1b[2J\0b", 7)), "'a\\x1b[2J\\x00b'");
  EXPECT_EQ(quoted(std::string(300, 'x')),
            "'" + std::string(200, 'x') + "...'");
}
