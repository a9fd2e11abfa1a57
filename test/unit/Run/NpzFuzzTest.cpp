// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thousands of damaged files: each is either refused with a located message or
// read; nothing crashes or allocates more than the file can account for. Run
// with address and undefined-behaviour sanitizers by scripts/sanitize.sh.
#include "support/NpzReader.h"
#include "support/NpzWriter.h"

#include "TempDir.h"

#include <random>

using namespace dfa::run;

static std::string makeSeed(const TempDir &dir, NpzOptions options) {
  NpzWriter writer;
  std::string path = dir.file("seed.npz");
  EXPECT_OK(writer.open(path, options));
  ArrayInfo info;
  info.shape = {3, 5};
  std::vector<float> values(15, 0.25f);
  EXPECT_OK(writer.add("param/w", info, values.data()));
  info.fortranOrder = true;
  EXPECT_OK(writer.add("grad/w", info, values.data()));
  EXPECT_OK(writer.addScalar("control/norm", 2.0));
  EXPECT_OK(writer.close());
  return TempDir::read(path);
}

/// Changes a file in one to four places, in ways that hit length fields.
static void mutate(std::string &bytes, std::mt19937_64 &random) {
  static const unsigned char extremes[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
  for (uint64_t times = random() % 4 + 1; times > 0 && !bytes.empty();
       --times) {
    size_t at = random() % bytes.size();
    size_t run = std::min<size_t>(1 + random() % 8, bytes.size() - at);
    switch (random() % 7) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
      break;
    case 1:
      bytes.replace(at, run, run, static_cast<char>(extremes[random() % 6]));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, run);
      break;
    case 4:
      bytes.insert(at, run, static_cast<char>(random()));
      break;
    case 5:
      bytes.insert(at, bytes.substr(random() % bytes.size(), run * 8));
      break;
    case 6: {
      // A digit, where headers in text are likely.
      size_t digit = bytes.find_first_of("0123456789", at);
      if (digit != std::string::npos)
        bytes[digit] = static_cast<char>('0' + random() % 10);
      break;
    }
    }
  }
}

TEST(NpzFuzz, DamagedFilesAreRefusedOrRead) {
  TempDir dir;
  std::mt19937_64 random(20240607);
  int refused = 0, read = 0;
  for (bool deflate : {false, true}) {
    for (bool always64 : {false, true}) {
      NpzOptions options;
      options.deflate = deflate;
      options.alwaysZip64 = always64;
      std::string seed = makeSeed(dir, options);
      for (int i = 0; i < 3000; ++i) {
        std::string bytes = seed;
        mutate(bytes, random);
        std::string path = dir.write("mutant.npz", bytes);
        NpzReader reader;
        Status status = reader.open(path);
        Array array;
        for (size_t k = 0; status.ok() && k < reader.keys().size(); ++k) {
          status = reader.read(reader.keys()[k], array);
          if (status.ok()) {
            EXPECT_LE(array.info().bytes(), bytes.size() * 1032);
          }
        }
        status.ok() ? ++read : ++refused;
        if (!status.ok()) {
          EXPECT_EQ(status.message().rfind(path + ": ", 0), 0u)
              << status.message();
        }
      }
    }
  }
  // Some mutations hit bytes without a meaning (dates, attributes).
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 6000);
}

TEST(NpzFuzz, EveryTruncationIsRefused) {
  TempDir dir;
  std::string seed = makeSeed(dir, NpzOptions());
  for (size_t length = 0; length < seed.size(); ++length) {
    NpzReader reader;
    EXPECT_FALSE(reader.open(dir.write("cut.npz", seed.substr(0, length))).ok())
        << length;
  }
}

TEST(NpzFuzz, DamagedPlainFiles) {
  TempDir dir;
  std::mt19937_64 random(7);
  const float values[15] = {};
  ArrayInfo info;
  info.shape = {5, 3};
  EXPECT_OK(writeNpyFile(dir.file("a.npy"), info, values));
  std::string seed = TempDir::read(dir.file("a.npy"));
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = seed;
    mutate(bytes, random);
    Array array;
    Status status = readNpyFile(dir.write("m.npy", bytes), array);
    refused += !status.ok();
    if (status.ok()) {
      EXPECT_LE(array.info().bytes(), bytes.size());
    }
  }
  EXPECT_GT(refused, 1000);
}
