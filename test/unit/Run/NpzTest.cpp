// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files written and read back, and what damaged files are answered with.
// Exchange with NumPy is tested in test/python/test_run_support.py.
#include "support/NpzReader.h"
#include "support/NpzWriter.h"

#include "TempDir.h"

#include <cstring>
#include <numeric>

using namespace dfa::run;
using Shape = std::vector<int64_t>;

static ArrayInfo info(ElementType type, Shape shape) {
  ArrayInfo result;
  result.type = type;
  result.shape = std::move(shape);
  return result;
}

/// A file with one 3x4 f4 array "param/w" and a scalar.
static std::string writeSmall(const TempDir &dir, NpzOptions options) {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 1.0f);
  NpzWriter writer;
  std::string path = dir.file("small.npz");
  EXPECT_OK(writer.open(path, options));
  EXPECT_OK(
      writer.add("param/w", info(ElementType::F32, {3, 4}), values.data()));
  EXPECT_OK(writer.addScalar("control/step", int64_t(5)));
  EXPECT_OK(writer.close());
  return path;
}

class NpzForms : public testing::TestWithParam<NpzOptions> {};

TEST_P(NpzForms, RoundTrip) {
  TempDir dir;
  std::string path = writeSmall(dir, GetParam());
  NpzReader reader;
  EXPECT_OK(reader.open(path));
  EXPECT_EQ(reader.keys(),
            std::vector<std::string>({"param/w", "control/step"}));
  Array array;
  EXPECT_OK(reader.read("param/w", array));
  EXPECT_EQ(array.info().describe(), "f4[3, 4]");
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(array.as<float>()[i], i + 1.0f);
  EXPECT_OK(reader.read("control/step", array));
  EXPECT_EQ(array.info().describe(), "i8[]");
  EXPECT_EQ(*array.as<int64_t>(), 5);
}

TEST_P(NpzForms, StreamsLargeArraysInPieces) {
  TempDir dir;
  // Not a multiple of any buffer, and not compressible to nothing.
  constexpr int64_t count = 1000003;
  std::vector<uint64_t> values(count);
  uint64_t state = 1;
  for (uint64_t &value : values)
    value = state = state * 6364136223846793005u + 1442695040888963407u;
  ArrayInfo description = info(ElementType::U64, {count});
  NpzWriter writer;
  EXPECT_OK(writer.open(dir.file("large.npz"), GetParam()));
  EXPECT_OK(writer.begin("x", description));
  const char *next = reinterpret_cast<const char *>(values.data());
  for (uint64_t left = description.bytes(), piece = 1; left > 0;) {
    uint64_t now = std::min(left, piece);
    EXPECT_OK(writer.append(next, now));
    next += now;
    left -= now;
    piece = piece * 3 + 1;
  }
  EXPECT_OK(writer.end());
  EXPECT_OK(writer.close());
  NpzReader reader;
  EXPECT_OK(reader.open(dir.file("large.npz")));
  std::vector<uint64_t> found(count);
  EXPECT_OK(reader.readInto("x", ElementType::U64, {count}, found.data()));
  EXPECT_EQ(found, values);
}

static NpzOptions form(bool deflate, bool always64) {
  NpzOptions options;
  options.deflate = deflate;
  options.alwaysZip64 = always64;
  return options;
}

INSTANTIATE_TEST_SUITE_P(All, NpzForms,
                         testing::Values(form(false, false), form(true, false),
                                         form(false, true), form(true, true)));

TEST(Npz, ReadsFortranOrderAsC) {
  TempDir dir;
  ArrayInfo description = info(ElementType::I32, {2, 3, 4});
  description.fortranOrder = true;
  std::vector<int32_t> memory(24);
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 4; ++c)
        memory[a + 2 * b + 6 * c] = 100 * a + 10 * b + c;
  NpzWriter writer;
  EXPECT_OK(writer.open(dir.file("f.npz")));
  EXPECT_OK(writer.add("x", description, memory.data()));
  EXPECT_OK(writer.close());
  NpzReader reader;
  EXPECT_OK(reader.open(dir.file("f.npz")));
  ArrayInfo inFile;
  EXPECT_OK(reader.readInfo("x", inFile));
  EXPECT_TRUE(inFile.fortranOrder);
  Array array;
  EXPECT_OK(reader.read("x", array));
  EXPECT_FALSE(array.info().fortranOrder);
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 4; ++c)
        EXPECT_EQ(array.as<int32_t>()[12 * a + 4 * b + c],
                  100 * a + 10 * b + c);
}

TEST(Npz, PlainNpyRoundTrip) {
  TempDir dir;
  const double values[2] = {0.5, -3};
  EXPECT_OK(
      writeNpyFile(dir.file("a.npy"), info(ElementType::F64, {2}), values));
  Array array;
  EXPECT_OK(readNpyFile(dir.file("a.npy"), array));
  EXPECT_EQ(array.info().describe(), "f8[2]");
  EXPECT_EQ(array.as<double>()[1], -3);
}

TEST(Npz, EmptyArraysAndFiles) {
  TempDir dir;
  NpzWriter writer;
  EXPECT_OK(writer.open(dir.file("e.npz"), form(true, false)));
  EXPECT_OK(writer.add("x", info(ElementType::F32, {0, 3}), nullptr));
  EXPECT_OK(writer.close());
  NpzReader reader;
  EXPECT_OK(reader.open(dir.file("e.npz")));
  Array array;
  EXPECT_OK(reader.read("x", array));
  EXPECT_EQ(array.elements(), 0);
  NpzWriter none;
  EXPECT_OK(none.open(dir.file("none.npz")));
  EXPECT_OK(none.close());
  NpzReader second;
  EXPECT_OK(second.open(dir.file("none.npz")));
  EXPECT_TRUE(second.keys().empty());
}

TEST(Npz, ManyMembersNeedZip64) {
  TempDir dir;
  NpzWriter writer;
  constexpr int64_t count = 65536;
  EXPECT_OK(writer.open(dir.file("many.npz")));
  for (int64_t i = 0; i < count; ++i)
    ASSERT_TRUE(writer.addScalar("p/" + std::to_string(i), i).ok());
  EXPECT_OK(writer.close());
  NpzReader reader;
  EXPECT_OK(reader.open(dir.file("many.npz")));
  ASSERT_EQ(reader.keys().size(), static_cast<size_t>(count));
  int64_t value = 0;
  EXPECT_OK(reader.readInto("p/65535", ElementType::I64, {}, &value));
  EXPECT_EQ(value, 65535);
}

TEST(Npz, EqualContentsGiveEqualBytes) {
  TempDir first, second;
  EXPECT_EQ(TempDir::read(writeSmall(first, NpzOptions())),
            TempDir::read(writeSmall(second, NpzOptions())));
}

TEST(Npz, AFailedRunLeavesNoFile) {
  TempDir dir;
  {
    NpzWriter writer;
    EXPECT_OK(writer.open(dir.file("half.npz")));
    EXPECT_OK(writer.begin("x", info(ElementType::F32, {1000})));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.file("")));
}

TEST(Npz, WriterRefusesMisuse) {
  TempDir dir;
  NpzWriter writer;
  std::string path = dir.file("x.npz");
  EXPECT_OK(writer.open(path));
  float values[3] = {};
  EXPECT_OK(writer.begin("x", info(ElementType::F32, {2})));
  EXPECT_EQ(writer.append(values, 12).message(),
            path + ": member 'x.npy': expects at most 8 more bytes, but got "
                   "12");
  EXPECT_OK(writer.append(values, 4));
  EXPECT_EQ(writer.end().message(),
            path + ": member 'x.npy': expects no end of an array, but got 4 "
                   "bytes missing");
  EXPECT_OK(writer.append(values, 4));
  EXPECT_OK(writer.end());
  EXPECT_EQ(writer.begin("x", info(ElementType::F32, {2})).message(),
            path + ": member 'x.npy': expects one member of this name, but "
                   "got two");
  EXPECT_EQ(NpzWriter().open(dir.file("no/x.npz")).message(),
            dir.file("no/x.npz") +
                ": cannot create: No such file or directory");
}

TEST(Npz, ReaderLocatesWrongRequests) {
  TempDir dir;
  std::string path = writeSmall(dir, NpzOptions());
  NpzReader reader;
  EXPECT_OK(reader.open(path));
  float values[12];
  EXPECT_EQ(
      reader.readInto("param/w", ElementType::F32, {4, 3}, values).message(),
      path + ": member 'param/w.npy': expects f4[4, 3], but got f4[3, "
             "4]");
  EXPECT_EQ(
      reader.readInto("param/w", ElementType::I32, {3, 4}, values).message(),
      path + ": member 'param/w.npy': expects i4[3, 4], but got f4[3, "
             "4]");
  EXPECT_EQ(
      reader.readInto("param/v", ElementType::F32, {3, 4}, values).message(),
      path + ": expects member 'param/v.npy', but got a file without it");
}

/// Applies `edit` to the small file's bytes; the first message of opening it
/// and reading "param/w", without the path.
static std::string damage(void (*edit)(std::string &),
                          NpzOptions options = NpzOptions()) {
  TempDir dir;
  std::string path = writeSmall(dir, options);
  std::string bytes = TempDir::read(path);
  edit(bytes);
  dir.write("small.npz", bytes);
  NpzReader reader;
  Array array;
  Status status = reader.open(path);
  if (status.ok())
    status = reader.read("param/w", array);
  EXPECT_FALSE(status.ok());
  std::string message = status.message();
  EXPECT_EQ(message.compare(0, path.size() + 2, path + ": "), 0) << message;
  return message.substr(std::min(message.size(), path.size() + 2));
}

// Offsets in the small file: a local header of 30 bytes, the name "param/w.npy"
// and the npy header of 128 bytes.
static constexpr size_t textAt = 41 + 10;
static constexpr size_t dataAt = 41 + 128;

static size_t centralAt(const std::string &bytes) {
  return bytes.find("PK\x01\x02");
}

TEST(Npz, DamageIsLocated) {
  EXPECT_EQ(damage([](std::string &b) { b[dataAt] ^= 1; }).substr(0, 45),
            "member 'param/w.npy': expects data with CRC 0");
  EXPECT_EQ(damage([](std::string &b) { b.resize(b.size() / 2); }),
            "expects a zip file (.npz), but got a file of 270 bytes without "
            "a zip directory");
  EXPECT_EQ(damage([](std::string &b) { b.clear(); }),
            "expects a zip file (.npz), but got a file of 0 bytes without a "
            "zip directory");
  EXPECT_EQ(damage([](std::string &b) { b[0] = 'X'; }),
            "member 'param/w.npy': expects a local header at offset 0, but "
            "got other bytes");
  EXPECT_EQ(damage([](std::string &b) { b[30] = 'P'; }),
            "member 'param/w.npy': expects the same name in its local header, "
            "but got 'Param/w.npy'");
  EXPECT_EQ(damage([](std::string &b) { b[centralAt(b) + 10] = 12; }),
            "member 'param/w.npy': expects a stored or deflated member, but "
            "got compression method 12");
  EXPECT_EQ(damage([](std::string &b) { b[centralAt(b) + 8] |= 1; }),
            "member 'param/w.npy': expects plain data, but got encrypted "
            "data");
  EXPECT_EQ(damage([](std::string &b) { b[centralAt(b) + 24] ^= 1; }),
            "member 'param/w.npy': expects stored data of 177 bytes, but got "
            "176");
  EXPECT_EQ(damage([](std::string &b) { b[centralAt(b) + 45] = 1; }),
            "member 'param/w.npy': expects data within the file of 540 bytes, "
            "but got 176 bytes behind offset 16777216");
  EXPECT_EQ(damage([](std::string &b) { b[b.size() - 12] = 9; }),
            "expects at most 2 members in a zip directory of 119 bytes, but "
            "got 9");
  EXPECT_EQ(damage([](std::string &b) { b[textAt + 1] = 'X'; }),
            "member 'param/w.npy': expects a string at column 2 of the npy "
            "header, but got 'Xdescr': '<f4', '");
}

TEST(Npz, ClaimsAreCheckedBeforeMemoryIsAllocated) {
  EXPECT_EQ(damage([](std::string &b) {
              std::string shape = "(3, 4), }";
              b.replace(b.find(shape), shape.size() + 9, "(99999999999, 4)}");
              b.insert(b.find("4)}") + 3, 1, ' ');
            }),
            "member 'param/w.npy': expects 1599999999984 bytes of data for "
            "f4[99999999999, 4], but got 48");
  // A deflated member that claims 4 GiB.
  EXPECT_EQ(
      damage(
          [](std::string &b) { std::memset(&b[centralAt(b) + 24], 0xfe, 4); },
          form(true, false))
          .substr(0, 50),
      "member 'param/w.npy': expects at most 1032 bytes f");
}

TEST(Npz, DeflatedDataMustEndWhereItSays) {
  NpzOptions deflate = form(true, false);
  // The central directory's size says four bytes less, or more.
  EXPECT_NE(damage([](std::string &b) { b[centralAt(b) + 24] -= 4; }, deflate)
                .find("bytes of data for f4[3, 4]"),
            std::string::npos);
  EXPECT_NE(damage([](std::string &b) { b[centralAt(b) + 20] -= 4; }, deflate)
                .find("more deflated data, but got its end"),
            std::string::npos);
}

TEST(Npz, RefusesOtherMembersAndFiles) {
  TempDir dir;
  NpzReader reader;
  EXPECT_EQ(reader.open(dir.file("none.npz")).message(),
            dir.file("none.npz") + ": cannot open: No such file or directory");
  NpzReader folder;
  EXPECT_EQ(folder.open(dir.file("")).message(),
            dir.file("") + ": expects a regular file, but got a directory");
}

// Writes and reads more than 4 GiB: minutes, so only on request.
TEST(Npz, LargeMembers) {
  if (std::getenv("DFA_TEST_LARGE") == nullptr)
    GTEST_SKIP() << "set DFA_TEST_LARGE=1 to write a 4 GiB member";
  TempDir dir;
  constexpr int64_t count = (int64_t(1) << 30) + 5;
  std::vector<float> piece(1 << 20, 1.5f);
  NpzWriter writer;
  EXPECT_OK(writer.open(dir.file("l.npz")));
  EXPECT_OK(writer.begin("x", info(ElementType::F32, {count})));
  for (int64_t done = 0; done < count; done += 1 << 20)
    EXPECT_OK(writer.append(piece.data(),
                            4 * std::min<int64_t>(count - done, 1 << 20)));
  EXPECT_OK(writer.end());
  EXPECT_OK(writer.addScalar("y", int64_t(7)));
  EXPECT_OK(writer.close());
  NpzReader reader;
  EXPECT_OK(reader.open(dir.file("l.npz")));
  Array array;
  EXPECT_OK(reader.read("x", array));
  EXPECT_EQ(array.elements(), count);
  EXPECT_EQ(array.as<float>()[count - 1], 1.5f);
  EXPECT_OK(reader.read("y", array));
  EXPECT_EQ(*array.as<int64_t>(), 7);
}
