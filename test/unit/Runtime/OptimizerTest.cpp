// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An optimizer on one rank of the CPU, through hand-written kernels: numbers,
// empty parameters, skips, live hyper-parameters, replay, and no allocation
// after prepare.

#include "HeapCounter.h"
#include "TestKernels.h"

#include "cpu/CpuDevice.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

namespace dfa::rt::test {
namespace {

class Local {
public:
  explicit Local(std::vector<int64_t> sizes, bool replay = false,
                 int64_t bucketBytes = 1 << 20) {
    device = createCpuDevice(2);
    OptimizerOptions options;
    options.device = device;
    options.program = parseOrDie(localProgram);
    options.tables = tablesFor(options.program, sizes, bucketBytes);
    options.kernels = kernels();
    options.replay = replay;
    Result<std::unique_ptr<Optimizer>> made =
        Optimizer::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().str();
    optimizer = std::move(*made);
    hyper({0.1, 0.9, 0.999, 1e-8, 0.0, 0.0});
  }

  void hyper(std::vector<double> values) {
    for (size_t column = 0; column < values.size(); ++column)
      ok(optimizer->setHyper(0, column, values[column]));
  }

  void ok(const Status &status) { EXPECT_TRUE(status.ok()) << status.str(); }

  void prepare() { ok(optimizer->prepare(Stream())); }
  void finish() {
    ok(optimizer->run(optimizer->program().findEntry("finish"), Stream()));
  }

  float *at(int array, int segment) {
    return static_cast<float *>(*optimizer->segmentAddress(0, array, segment));
  }
  int64_t elements(int segment) {
    return optimizer->tables().classes[0].segments[segment].elements;
  }
  void fill(int array, int segment, float value) {
    for (int64_t index = 0; index < elements(segment); ++index)
      at(array, segment)[index] = value;
  }
  double control(const char *field) { return *optimizer->controlMirror(field); }

  std::shared_ptr<Device> device;
  std::unique_ptr<Optimizer> optimizer;
};

// Case B20: empty parameters among others. Expected values are the case's.
void checkEmpty(std::vector<int64_t> sizes, int64_t bucketBytes) {
  Local local(sizes, false, bucketBytes);
  local.prepare();
  int64_t found = -1;
  for (size_t segment = 0; segment < sizes.size(); ++segment) {
    if (local.elements(segment) == 0)
      continue;
    found = segment;
    for (int index = 0; index < 3; ++index)
      local.at(Param, segment)[index] = 1.0f + index;
    local.fill(Grad, segment, 0.1f);
  }
  ASSERT_GE(found, 0);
  local.finish();
  for (int index = 0; index < 3; ++index)
    EXPECT_NEAR(local.at(Param, found)[index], 0.9000000100 + index, 2e-7);
  EXPECT_NEAR(local.control("norm"), 0.1732050808, 1e-8);
  EXPECT_EQ(local.control("step"), 1);
  EXPECT_EQ(*local.optimizer->fetchStep(0, found, Stream()), 1);
}

TEST(Optimizer, EmptyParametersB20) {
  checkEmpty({3, 0}, 1 << 20);
  checkEmpty({0, 3}, 1 << 20);
  checkEmpty({0, 3}, 128);
  std::vector<int64_t> many(1000, 0);
  many.push_back(3);
  checkEmpty(many, 1 << 20);
}

TEST(Optimizer, OnlyEmptyParametersB20) {
  Local local({0, 0, 0});
  local.prepare();
  local.finish();
  EXPECT_EQ(local.control("norm"), 0);
  EXPECT_EQ(local.control("step"), 1);
}

// Case B16 on one rank: padding enters nothing, bucket sizes do not matter.
TEST(Optimizer, AlignmentB16) {
  for (int64_t bucketBytes : {128, 512, 1 << 20}) {
    Local local({7, 13, 1, 129}, false, bucketBytes);
    local.hyper({0.01, 0.9, 0.999, 1e-8, 0.1, 0.0});
    local.prepare();
    for (int segment = 0; segment < 4; ++segment) {
      local.fill(Param, segment, 1.0f);
      local.fill(Grad, segment, 0.5f);
    }
    local.finish();
    EXPECT_NEAR(local.control("norm"), 6.1237243570, 1e-9);
    for (int segment = 0; segment < 4; ++segment)
      for (int64_t index = 0; index < local.elements(segment); ++index)
        ASSERT_NEAR(local.at(Param, segment)[index], 0.9890000002, 2e-7);
  }
}

TEST(Optimizer, UsesMemoryOfTheCaller) {
  Local local({5, 300});
  std::vector<float> grads(301, 0.1f);
  std::vector<float> params(301, 1.0f);
  // Deliberately not 16-byte aligned: kernels must get no vector flag, and
  // nothing may be copied.
  local.ok(local.optimizer->bindSegment(0, Grad, 1, grads.data() + 1));
  local.ok(local.optimizer->bindSegment(0, Param, 1, params.data() + 1));
  local.prepare();
  EXPECT_EQ(local.at(Grad, 1), grads.data() + 1);
  local.finish();
  EXPECT_EQ(params[0], 1.0f);
  for (int index = 1; index < 301; ++index)
    ASSERT_NEAR(params[index], 0.9, 2e-7);

  // A new address after prepare travels with the next upload.
  std::vector<float> moved(300, 2.0f);
  local.ok(local.optimizer->bindSegment(0, Param, 1, moved.data()));
  local.finish();
  EXPECT_LT(moved[299], 1.95f);
  EXPECT_NEAR(params[300], 0.9, 2e-7);
}

TEST(Optimizer, NonFiniteStepChangesNothing) {
  Local local({9, 20000});
  local.prepare();
  local.fill(Grad, 0, 0.1f);
  local.fill(Grad, 1, 0.1f);
  local.at(Grad, 1)[19999] = std::numeric_limits<float>::infinity();
  local.finish();
  EXPECT_EQ(local.control("found_inf"), 1);
  EXPECT_EQ(local.control("skipped"), 1);
  EXPECT_EQ(local.control("step"), 0);
  EXPECT_EQ(local.at(Param, 0)[0], 0.0f);
  EXPECT_EQ(local.at(ExpAvg, 1)[5], 0.0f);
  EXPECT_EQ(*local.optimizer->fetchStep(0, 0, Stream()), 0);
}

TEST(Optimizer, AbsentParametersKeepTheirState) {
  Local local({4, 4});
  local.prepare();
  local.fill(Grad, 0, 0.1f);
  local.fill(Grad, 1, 0.1f);
  local.ok(local.optimizer->setPresent(0, 1, false));
  local.finish();
  EXPECT_NEAR(local.at(Param, 0)[0], -0.1, 1e-6);
  EXPECT_EQ(local.at(Param, 1)[0], 0.0f);
  EXPECT_NEAR(local.control("norm"), 0.2, 1e-8);
  EXPECT_EQ(*local.optimizer->fetchStep(0, 1, Stream()), 0);
}

TEST(Optimizer, ReplayEqualsEagerOver100Steps) {
  Local eager({1000, 3, 9000}, false);
  Local replay({1000, 3, 9000}, true);
  for (Local *each : {&eager, &replay})
    each->prepare();
  for (int step = 0; step < 100; ++step) {
    for (Local *each : {&eager, &replay}) {
      each->hyper({0.01 / (1 + step), 0.9 - 0.001 * (step % 5),
                   0.99 + 0.00005 * step, 1e-8, 0.001 * (step % 7),
                   step % 3 ? 1.0 : 0.5});
      each->ok(each->optimizer->setControl("scale", 1 << (step % 4), Stream()));
      if (step == 70) // a checkpoint, in place
        for (int segment = 0; segment < 3; ++segment) {
          for (int array : {Param, ExpAvg, ExpAvgSq})
            each->fill(array, segment, 0.25f * (1 + array));
          each->ok(each->optimizer->setStep(0, segment, 7, Stream()));
        }
      for (int segment = 0; segment < 3; ++segment)
        for (int64_t index = 0; index < each->elements(segment); ++index)
          each->at(Grad, segment)[index] =
              std::sin(0.1f * index + step) * (segment + 1);
      if (step == 50)
        each->at(Grad, 1)[2] = std::numeric_limits<float>::quiet_NaN();
      each->finish();
    }
    for (int array : {Param, ExpAvg, ExpAvgSq})
      for (int segment = 0; segment < 3; ++segment)
        ASSERT_EQ(0, std::memcmp(eager.at(array, segment),
                                 replay.at(array, segment),
                                 eager.elements(segment) * 4))
            << "step " << step;
    ASSERT_EQ(eager.control("norm") == eager.control("norm"), step != 50);
  }
  EXPECT_EQ(replay.control("skipped"), 1);
  EXPECT_EQ(replay.control("step"), 99);
  EXPECT_EQ(*replay.optimizer->fetchStep(0, 1, Stream()), 7 + 100 - 70);
}

TEST(Optimizer, NothingIsAllocatedAfterPrepare) {
  for (bool replay : {false, true}) {
    Local local({1000, 3, 9000}, replay);
    local.prepare();
    local.finish();
    DeviceCounters before = local.device->counters();
    int64_t heap = heapAllocations();
    for (int step = 0; step < 5; ++step) {
      local.ok(local.optimizer->setHyper(0, Lr, 0.1 + step));
      local.ok(local.optimizer->setControl("scale", 2.0 + step, Stream()));
      local.finish();
    }
    EXPECT_EQ(heapAllocations(), heap);
    DeviceCounters after = local.device->counters();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.moduleLoads, before.moduleLoads);
    EXPECT_EQ(after.graphsInstantiated, before.graphsInstantiated);
    EXPECT_GT(after.launches, before.launches);
  }
}

TEST(Optimizer, ControlFieldsByName) {
  Local local({4});
  local.ok(local.optimizer->setControl("scale", 65536, Stream()));
  local.prepare();
  EXPECT_EQ(*local.optimizer->fetchControl("scale", Stream()), 65536);
  local.ok(local.optimizer->setControl("growth_interval", 10, Stream()));
  EXPECT_EQ(*local.optimizer->fetchControl("growth_interval", Stream()), 10);
  // What the device counted is not overwritten by a neighbour's write.
  local.finish();
  local.ok(local.optimizer->setControl("scale", 2, Stream()));
  EXPECT_EQ(*local.optimizer->fetchControl("step", Stream()), 1);

  Status status = local.optimizer->setControl("sclae", 1, Stream());
  EXPECT_EQ(status.code(), Code::NotFound);
  status = local.optimizer->setControl("growth_interval", 0.5, Stream());
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  status = local.optimizer->setControl("generation", -1, Stream());
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  status =
      local.optimizer->setControl("growth_interval", 2147483648.0, Stream());
  EXPECT_EQ(status.code(), Code::InvalidArgument);
}

TEST(Optimizer, SetStepIsReadByTheNextStep) {
  Local local({4});
  local.prepare();
  local.fill(Grad, 0, 0.1f);
  local.ok(local.optimizer->setStep(0, 0, 41, Stream()));
  local.finish();
  EXPECT_EQ(*local.optimizer->fetchStep(0, 0, Stream()), 42);
}

TEST(Optimizer, RecordsIntoTheUsersCapture) {
  Local local({100});
  local.prepare();
  local.fill(Grad, 0, 0.1f);
  Stream stream;
  local.ok(local.device->createStream(stream));
  local.ok(local.device->beginCapture(stream));
  local.ok(local.optimizer->run(0, stream));
  EXPECT_EQ(local.optimizer->setControl("scale", 1, stream).code(),
            Code::FailedPrecondition);
  EXPECT_EQ(local.optimizer->fetchControl("scale", stream).status().code(),
            Code::FailedPrecondition);
  EXPECT_EQ(local.optimizer->fetchStep(0, 0, stream).status().code(),
            Code::FailedPrecondition);
  Graph graph;
  local.ok(local.device->endCapture(stream, graph));
  EXPECT_EQ(local.at(Param, 0)[0], 0.0f); // recorded, not run
  for (int step = 1; step <= 3; ++step) {
    local.ok(local.device->launchGraph(graph, stream));
    local.ok(local.device->synchronize(stream));
    EXPECT_EQ(local.control("step"), step);
  }
  EXPECT_NEAR(local.at(Param, 0)[0], -0.3, 1e-5);
  // Live: a pushed learning rate reaches the next replay.
  local.ok(local.optimizer->setHyper(0, Lr, 0.0));
  local.ok(local.optimizer->push(stream));
  local.ok(local.device->launchGraph(graph, stream));
  local.ok(local.device->synchronize(stream));
  EXPECT_NEAR(local.at(Param, 0)[0], -0.3, 1e-5);
  EXPECT_EQ(local.control("step"), 4);
  // The recording keeps the memory that it works on.
  local.optimizer.reset();
  local.ok(local.device->launchGraph(graph, stream));
  local.ok(local.device->synchronize(stream));
  local.device->destroyGraph(graph);
  local.device->destroyStream(stream);
}

TEST(Optimizer, RefusesMisuse) {
  Local local({4});
  Status status = local.optimizer->run(0, Stream());
  EXPECT_EQ(status.code(), Code::FailedPrecondition);
  Stream stream;
  local.ok(local.device->createStream(stream));
  local.ok(local.device->beginCapture(stream));
  status = local.optimizer->prepare(stream);
  EXPECT_EQ(status.code(), Code::FailedPrecondition);
  Graph graph;
  local.ok(local.device->endCapture(stream, graph));
  local.device->destroyGraph(graph);
  local.device->destroyStream(stream);

  local.prepare();
  EXPECT_EQ(local.optimizer->prepare(Stream()).code(),
            Code::FailedPrecondition);
  EXPECT_EQ(local.optimizer->run(7, Stream()).code(), Code::InvalidArgument);
  EXPECT_EQ(local.optimizer->setHyper(1, 0, 1).code(), Code::InvalidArgument);
  EXPECT_EQ(local.optimizer->setHyper(0, 6, 1).code(), Code::InvalidArgument);
  EXPECT_EQ(local.optimizer->bindSegment(0, 0, 1, nullptr).code(),
            Code::InvalidArgument);
  EXPECT_EQ(local.optimizer->bindBucket(0, 0, 0, nullptr).code(),
            Code::FailedPrecondition);
}

TEST(Optimizer, ReportsAMissingKernel) {
  OptimizerOptions options;
  options.device = createCpuDevice(1);
  options.program = parseOrDie(localProgram);
  options.tables = tablesFor(options.program, {4}, 1024);
  options.kernels.resolve = [](const char *) -> void * { return nullptr; };
  Result<std::unique_ptr<Optimizer>> made =
      Optimizer::create(std::move(options));
  ASSERT_TRUE(made.ok());
  Status status = (*made)->prepare(Stream());
  EXPECT_EQ(status.code(), Code::NotFound);
  EXPECT_NE(status.message().find("'local_norm'"), std::string::npos);
}

TEST(Optimizer, RefusesTablesOutOfBounds) {
  Program program = parseOrDie(localProgram);
  Tables good = tablesFor(program, {100, 50}, 1024);
  ASSERT_TRUE(good.verify(program).ok());
  Tables bad = good;
  bad.chunks[0].length += 1;
  EXPECT_FALSE(bad.verify(program).ok());
  bad = good;
  bad.chunks[0].segment = 2;
  EXPECT_FALSE(bad.verify(program).ok());
  bad = good;
  bad.classes[0].segments[1].group = 1;
  EXPECT_FALSE(bad.verify(program).ok());
  bad = good;
  bad.classes[0].segments[1].shardOffset = 1 << 20;
  EXPECT_FALSE(bad.verify(program).ok());
  bad = good;
  bad.classes[0].rows.atoms.end += 1;
  EXPECT_FALSE(bad.verify(program).ok());
  bad = good;
  bad.classes.clear();
  EXPECT_FALSE(bad.verify(program).ok());
}

} // namespace
} // namespace dfa::rt::test
