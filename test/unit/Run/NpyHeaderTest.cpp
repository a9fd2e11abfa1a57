// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header parser on headers as NumPy and others write them, and on wrong
// ones. That NumPy reads ours is tested in test/python/test_run_support.py.
#include "support/NpyHeader.h"

#include "gtest/gtest.h"

using namespace dfa::run;
using Shape = std::vector<int64_t>;

static std::string parseError(const std::string &text) {
  ArrayInfo info;
  Status status = parseNpyText(text, info);
  EXPECT_FALSE(status.ok()) << text;
  return status.message();
}

TEST(NpyHeader, ReadsTheFormsThatExist) {
  ArrayInfo info;
  ASSERT_TRUE(parseNpyText("{'descr': '<f4', 'fortran_order': False, "
                           "'shape': (3, 4), }          \n",
                           info)
                  .ok());
  EXPECT_EQ(info.type, ElementType::F32);
  EXPECT_EQ(info.shape, Shape({3, 4}));
  EXPECT_FALSE(info.fortranOrder);
  // Keys in any order, double quotes, no blanks, Python 2 integers.
  ASSERT_TRUE(
      parseNpyText("{\"shape\":(3L,),\"fortran_order\":True,\"descr\":\"|b1\"}",
                   info)
          .ok());
  EXPECT_EQ(info.type, ElementType::Bool);
  EXPECT_EQ(info.shape, Shape({3}));
  EXPECT_TRUE(info.fortranOrder);
  ASSERT_TRUE(parseNpyText(
                  "{'descr': '=u2', 'fortran_order': False, 'shape': ()}", info)
                  .ok());
  EXPECT_EQ(info.type, ElementType::U16);
  EXPECT_EQ(info.elements(), 1);
}

TEST(NpyHeader, WritesWhatItReads) {
  Shape longShape(64, 1);
  for (const Shape &shape : {Shape(), Shape({0}), Shape({7}), Shape({2, 0, 3}),
                             Shape({int64_t(1) << 60}), longShape}) {
    for (bool fortran : {false, true}) {
      ArrayInfo info;
      info.type = ElementType::F16;
      info.shape = shape;
      info.fortranOrder = fortran;
      std::string header = formatNpyHeader(info);
      EXPECT_EQ(header.size() % 64, 0u);
      EXPECT_EQ(header.back(), '\n');
      size_t begin = 0, length = 0;
      ASSERT_TRUE(
          parseNpyPrefix(reinterpret_cast<const unsigned char *>(header.data()),
                         begin, length)
              .ok());
      ASSERT_EQ(begin + length, header.size());
      ArrayInfo parsed;
      ASSERT_TRUE(parseNpyText(header.substr(begin), parsed).ok());
      EXPECT_EQ(parsed.type, info.type);
      EXPECT_EQ(parsed.shape, info.shape);
      EXPECT_EQ(parsed.fortranOrder, fortran);
    }
  }
}

TEST(NpyHeader, RefusesTypesByName) {
  EXPECT_EQ(parseError("{'descr': '>f4', 'fortran_order': False, 'shape': ()}"),
            "expects little-endian data ('<f4'), but got big-endian '>f4'");
  EXPECT_EQ(parseError("{'descr': '<c8', 'fortran_order': False, 'shape': ()}"),
            "expects dtype f2, f4, f8, i4, i8, u2, u4, u8 or b1, but got "
            "'<c8'");
  EXPECT_NE(parseError("{'descr': '<V2', 'fortran_order': False, 'shape': ()}")
                .find("NAME:bf16"),
            std::string::npos);
  EXPECT_EQ(parseError("{'descr': [('a', '<f4')], 'shape': ()}"),
            "expects a string at column 11 of the npy header, but got "
            "'[('a', '<f4')], '");
}

TEST(NpyHeader, SaysWhatIsWrong) {
  EXPECT_EQ(parseError(""), "expects '{' at column 1 of the npy header, but "
                            "got the end of the header");
  EXPECT_EQ(parseError("{'descr': '<f4"),
            "expects a closed string at column 11 of the npy header, but got "
            "''<f4'");
  EXPECT_EQ(parseError("{'descr': '<f4', 'descr': '<f4'}"),
            "expects each npy header key once, but got 'descr' twice");
  EXPECT_EQ(parseError("{'descr': '<f4', 'colour': 1}"),
            "expects the npy header keys 'descr', 'fortran_order' and "
            "'shape', but got 'colour'");
  EXPECT_EQ(parseError("{'descr': '<f4'}"),
            "expects the npy header keys 'descr', 'fortran_order' and "
            "'shape', but got '{'descr': '<f4'}'");
  EXPECT_EQ(parseError("{'descr': '<f4', 'fortran_order': 0}"),
            "expects True or False at column 35 of the npy header, but got "
            "'0}'");
  EXPECT_EQ(parseError("{'shape': (3)}"),
            "expects ',' at column 13 of the npy header, but got ')}'");
  EXPECT_EQ(parseError("{'shape': (-3,)}"),
            "expects a non-negative integer at column 12 of the npy header, "
            "but got '-3,)}'");
  EXPECT_EQ(parseError("{'shape': (9223372036854775808,)}"),
            "expects an extent of less than 2^63 at column 30 of the npy "
            "header, but got '8,)}'");
  EXPECT_EQ(parseError("{'descr': '<f8', 'fortran_order': False, 'shape': "
                       "(4294967296, 4294967296, 0)}"),
            "expects a shape of less than 2^63 bytes, but got [4294967296, "
            "4294967296, 0]");
  EXPECT_EQ(parseError("{'descr': '<f8', 'fortran_order': False, 'shape': ()} "
                       "x"),
            "expects nothing behind the dictionary at column 55 of the npy "
            "header, but got 'x'");
}

TEST(NpyHeader, RefusesVersionsAndLengths) {
  size_t begin = 0, length = 0;
  unsigned char prefix[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 4, 0};
  EXPECT_EQ(parseNpyPrefix(prefix, begin, length).message(),
            "expects npy format version 1.0, 2.0 or 3.0, but got 4.0");
  prefix[6] = 3;
  prefix[11] = 0xff;
  EXPECT_EQ(parseNpyPrefix(prefix, begin, length).message(),
            "expects an npy header of at most 1048576 bytes, but got "
            "4278190080");
  prefix[0] = 'P';
  EXPECT_EQ(parseNpyPrefix(prefix, begin, length).message(),
            "expects the magic bytes of a .npy file, but got 'PNUMPY'");
}
