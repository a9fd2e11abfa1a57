// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that lets test/python/test_run_support.py drive the support
// library: files in, files out. No part of the product.
#include "support/NpzReader.h"
#include "support/NpzWriter.h"
#include "support/Seeded.h"

#include <chrono>
#include <cstdio>
#include <cstring>

using namespace dfa::run;

static int report(const Status &status) {
  if (status.ok())
    return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

/// Reads all arrays and writes them again.
static Status copy(const char *from, const char *to, NpzOptions options) {
  NpzReader reader;
  NpzWriter writer;
  Status status = reader.open(from);
  if (status.ok())
    status = writer.open(to, options);
  for (const std::string &key : reader.keys()) {
    Array array;
    if (status.ok())
      status = reader.read(key, array);
    if (status.ok())
      status = writer.add(key, array.info(), array.data());
  }
  return status.ok() ? writer.close() : status;
}

template <typename T>
static Status write(NpzWriter &writer, const char *key, ElementType type,
                    const std::vector<T> &values) {
  ArrayInfo info;
  info.type = type;
  info.shape = {static_cast<int64_t>(values.size())};
  return writer.add(key, info, values.data());
}

/// Converts the f4 array "wide" and the u2 array "narrow" in every way.
static Status convert(const char *from, const char *to) {
  NpzReader reader;
  NpzWriter writer;
  Array wideArray, narrowArray;
  Status status = reader.open(from);
  if (status.ok())
    status = reader.read("wide", wideArray);
  if (status.ok())
    status = reader.read("narrow", narrowArray);
  if (status.ok())
    status = writer.open(to);
  if (!status.ok())
    return status;
  int64_t wides = wideArray.elements(), narrows = narrowArray.elements();
  const float *wide = wideArray.as<float>();
  std::vector<uint16_t> bf16(wides), f16(wides), param(wides), remainder(wides);
  std::vector<float> joined(wides), fromBf16(narrows), fromF16(narrows);
  encode(Storage::BF16, wide, wides, bf16.data());
  encode(Storage::F16, wide, wides, f16.data());
  splitRemainders(wide, wides, param.data(), remainder.data());
  joinRemainders(param.data(), remainder.data(), wides, joined.data());
  decode(Storage::BF16, narrowArray.data(), narrows, fromBf16.data());
  decode(Storage::F16, narrowArray.data(), narrows, fromF16.data());
  for (const Status &step :
       {write(writer, "bf16", ElementType::U16, bf16),
        write(writer, "f16", ElementType::U16, f16),
        write(writer, "param", ElementType::U16, param),
        write(writer, "remainder", ElementType::U16, remainder),
        write(writer, "joined", ElementType::F32, joined),
        write(writer, "from_bf16", ElementType::F32, fromBf16),
        write(writer, "from_f16", ElementType::F32, fromF16)})
    if (!step.ok())
      return step;
  return writer.close();
}

/// Writes seeded values of logical indices [begin, begin + count).
static Status seeded(char **words, const char *to) {
  SeedStream stream;
  stream.seed = std::strtoull(words[0], nullptr, 0);
  stream.step = std::strtoll(words[1], nullptr, 0);
  stream.role = words[2];
  stream.name = words[3];
  stream.rank = std::strtoll(words[4], nullptr, 0);
  int64_t begin = std::strtoll(words[5], nullptr, 0);
  std::vector<float> values(std::strtoull(words[6], nullptr, 0));
  SeededValues(stream, gradientDeviation)
      .fill(begin, static_cast<int64_t>(values.size()), values.data());
  ArrayInfo info;
  info.shape = {static_cast<int64_t>(values.size())};
  return writeNpyFile(to, info, values.data());
}

/// Prints how many values a second all threads make, in both orders.
static Status speed(int64_t side, unsigned threads) {
  for (bool permuted : {false, true}) {
    ElementOrder order;
    Status status = ElementOrder::create(
        {side, side}, {permuted ? 1 : 0, permuted ? 0 : 1}, order);
    Array array;
    ArrayInfo info;
    info.shape = {side, side};
    if (status.ok())
      status = array.allocate(info);
    if (!status.ok())
      return status;
    std::memset(array.data(), 0, info.bytes());
    using Clock = std::chrono::steady_clock;
    Clock::time_point begin = Clock::now();
    SeededValues(SeedStream(), gradientDeviation)
        .fill(order, 0, order.elements(), Storage::F32, array.data(), threads);
    double seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    std::printf("%s: %.1f million values/s\n", permuted ? "permuted" : "plain",
                static_cast<double>(order.elements()) / seconds / 1e6);
  }
  return Status();
}

int main(int count, char **words) {
  std::string command = count > 1 ? words[1] : "";
  if (command == "copy" && count >= 4) {
    NpzOptions options;
    for (int i = 4; i < count; ++i) {
      options.deflate |= std::strcmp(words[i], "deflate") == 0;
      options.alwaysZip64 |= std::strcmp(words[i], "zip64") == 0;
    }
    return report(copy(words[2], words[3], options));
  }
  if (command == "convert" && count == 4)
    return report(convert(words[2], words[3]));
  if (command == "seeded" && count == 10)
    return report(seeded(words + 2, words[9]));
  if (command == "speed" && count == 4)
    return report(speed(std::atoll(words[2]),
                        static_cast<unsigned>(std::atoi(words[3]))));
  std::fprintf(stderr, "usage: dfa-run-exchange copy IN OUT [deflate] [zip64]\n"
                       "       dfa-run-exchange convert IN OUT\n"
                       "       dfa-run-exchange seeded SEED STEP ROLE NAME "
                       "RANK BEGIN COUNT OUT\n"
                       "       dfa-run-exchange speed SIDE THREADS\n");
  return 2;
}
