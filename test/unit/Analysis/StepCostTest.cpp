// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// computeStepCost on level C written by hand, against numbers by hand.

#include "dfa/Analysis/StepCost.h"
#include "Parsed.h"
#include "gtest/gtest.h"

using namespace dfa_test;
using namespace mlir;
using namespace mlir::dfa;

/// A kernel that reads a gradient and writes a parameter.
static const std::string kernelText = R"(
dfa.kernel @update on @l::@w arrays [#dfa.array<"grad", bf16, read>,
    #dfa.array<"param", f32, readwrite>] accumulators [] uniform {
  %true = arith.constant true
  dfa.yield %true : i1
} body {
^bb0(%g: bf16, %p: f32):
  dfa.yield %p : f32
}
dfa.control_kernel @scalars accumulators [] {
  dfa.yield
}
)";

static std::string layoutText(const std::string &head,
                              const std::string &params) {
  return head + R"( {
  dfa.class @w param = f32 grad = bf16 master = none states = [] rule = sgd
)" + params +
         "}\n";
}

static std::string programText(const std::string &entries) {
  return R"(
dfa.program @step on @l hyper [] accumulators 0 group_stats 0 {
  dfa.program_class @w arrays ["grad", "param", "m"] types [bf16, f32, f32]
    parts [full, full, shard] derived 0
)" + entries +
         "}\n";
}

static StepCost costOf(const std::string &text, const CostOptions &options) {
  Parsed parsed(text);
  EXPECT_TRUE(parsed.get()) << parsed.messages;
  FailureOr<StepCost> cost = computeStepCost(parsed.get(), options);
  EXPECT_TRUE(succeeded(cost)) << parsed.messages;
  return succeeded(cost) ? *cost : StepCost();
}

static const char params[] =
    "  dfa.param \"a\" : tensor<1024x1024xf32>, class = @w, group = 0\n";

TEST(StepCost, BytesLaunchesFloor) {
  CostOptions options;
  options.bandwidth = 10;
  StepCost cost =
      costOf(layoutText("dfa.layout @l", params) + kernelText + programText(R"(
  dfa.entry finish {
    dfa.launch_control @scalars mode whole acc 0
    dfa.launch_elements @update on @w over chunks acc 0
    dfa.memset @w "grad"
  }
  dfa.entry zero_grad {
    dfa.launch_control @scalars mode whole acc 0
  }
)"),
             options);
  EXPECT_EQ(cost.elements, 1048576);
  // zero_grad is no part of the step.
  EXPECT_EQ(cost.launches, 3);
  ASSERT_EQ(cost.kernels.size(), 3u);
  EXPECT_EQ(cost.kernels[1].bytesPerElement, 10);
  EXPECT_EQ(cost.kernels[1].reads.size(), 2u);
  EXPECT_EQ(cost.kernels[1].writes.size(), 1u);
  EXPECT_EQ(cost.kernels[2].bytesPerElement, 2);
  EXPECT_EQ(cost.bytesPerElement, 12);
  EXPECT_DOUBLE_EQ(cost.floorMs, 12.0 * 1048576 / 10 / 1e6);
  // Of the arrays only "m" is state.
  EXPECT_EQ(cost.stateBytesPerParameter, 4);
  EXPECT_GE(cost.peakBytesPerRank, 10.0 * 1048576);
}

TEST(StepCost, WithoutParameters) {
  StepCost cost =
      costOf(layoutText("dfa.layout @l", "") + kernelText + programText(R"(
  dfa.entry finish {
    dfa.launch_elements @update on @w over chunks acc 0
  }
)"),
             CostOptions());
  EXPECT_FALSE(cost.elements.has_value());
  EXPECT_EQ(cost.bytesPerElement, 10);
  EXPECT_EQ(cost.floorMs, 0);
}

/// Bytes that a rank sends, by the textbook's ring.
TEST(StepCost, CollectivesOfShardsAndFullArrays) {
  CostOptions options;
  options.replicate = 4;
  options.shard = 8;
  StepCost cost = costOf("dfa.mesh @m(replicate = 2, shard = 2)\n" +
                             layoutText("dfa.layout @l on @m", params) +
                             kernelText + programText(R"(
  dfa.entry reduce {
    dfa.collective all_reduce over "replicate" class @w "grad" to "grad"
      reduce sum order any acc 0 accs 0
    dfa.collective reduce_scatter over "shard" class @w "grad" to "grad"
      reduce sum order any acc 0 accs 0
    dfa.collective all_reduce over "replicate" class @w "grad" to "grad"
      reduce sum order any acc 0 accs 0
  }
  dfa.entry finish {
    dfa.collective all_gather over "shard" class @w "param" to "param"
      reduce sum order any acc 0 accs 0
    dfa.collective broadcast over "replicate" class @w "param" to "param"
      reduce sum order any acc 0 accs 0
    dfa.collective all_reduce over "replicate" class @w "m" to "m"
      reduce sum order any acc 0 accs 0
  }
)"),
                         options);
  const double grad = 2.0 * 1048576, param = 4.0 * 1048576;
  ASSERT_EQ(cost.collectives.size(), 6u);
  const double expected[] = {
      grad * 2 * 3 / 4,     // all of the gradient
      grad * 7 / 8,         //
      grad / 8 * 2 * 3 / 4, // what the scatter left
      param * 7 / 8,        //
      param,                // the root's, all of it
      param / 8 * 2 * 3 / 4 // an array of shards
  };
  for (size_t index = 0; index < 6; ++index)
    EXPECT_DOUBLE_EQ(cost.collectives[index].bytesOnWirePerRank,
                     expected[index])
        << index;
  EXPECT_EQ(cost.collectives[0].ranks, 4);
  EXPECT_EQ(cost.collectives[1].ranks, 8);
}

TEST(StepCost, OneRankSendsNothing) {
  CostOptions options;
  options.replicate = options.shard = 1;
  StepCost cost = costOf("dfa.mesh @m(replicate = 2, shard = 2)\n" +
                             layoutText("dfa.layout @l on @m", params) +
                             kernelText + programText(R"(
  dfa.entry finish {
    dfa.collective all_gather over "shard" class @w "param" to "param"
      reduce sum order any acc 0 accs 0
    dfa.collective broadcast over "replicate" class @w "param" to "param"
      reduce sum order any acc 0 accs 0
  }
)"),
                         options);
  for (const CollectiveCost &collective : cost.collectives)
    EXPECT_EQ(collective.bytesOnWirePerRank, 0);
}

/// Buckets repeat what is in a loop, and the reduce entry.
TEST(StepCost, LaunchesByBucket) {
  StepCost cost = costOf(
      layoutText(
          "dfa.layout @l bucket_bytes = 1024",
          "  dfa.param \"a\" : tensor<512xf32>, class = @w, group = 0\n"
          "  dfa.param \"b\" : tensor<512xf32>, class = @w, group = 0\n"
          "  dfa.param \"c\" : tensor<512xf32>, class = @w, group = 0\n") +
          kernelText + programText(R"(
  dfa.entry reduce {
    dfa.launch_elements @update on @w over chunks acc 0
  }
  dfa.entry finish {
    dfa.for_each_bucket @w {
      dfa.launch_elements @update on @w over chunks acc 0
    }
    dfa.launch_control @scalars mode whole acc 0
  }
)"),
      CostOptions());
  EXPECT_EQ(cost.launches, 3 + 3 + 1);
}

TEST(StepCost, NothingToReportOn) {
  Parsed parsed("dfa.layout @l {\n}\n");
  EXPECT_TRUE(failed(computeStepCost(parsed.get(), CostOptions())));
  EXPECT_NE(parsed.messages.find("expects a step or a 'dfa.program'"),
            std::string::npos);
}

TEST(StepCost, LayoutIsMissing) {
  Parsed parsed(kernelText + programText(""));
  EXPECT_TRUE(failed(computeStepCost(parsed.get(), CostOptions())));
  EXPECT_NE(parsed.messages.find("expects a 'dfa.layout' @l, but found none"),
            std::string::npos)
      << parsed.messages;
}
