// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Classes and text of a step. That the text is valid MLIR is tested with
// dfa-opt, in test/Tools.
#include "StepText.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdlib>

using namespace dfa::tools;
using dfa::layout::Expected;
using dfa::layout::Format;
using testing::HasSubstr;
using testing::Not;

static Expected<Step> makeFrom(const std::string &json,
                               std::vector<std::string> args) {
  args.push_back("p.json");
  Expected<Options> options = parseOptions(args);
  EXPECT_TRUE(options.ok()) << options.message();
  Expected<std::vector<ParamEntry>> entries = parseParams("p.json", json);
  EXPECT_TRUE(entries.ok()) << entries.message();
  return makeStep(*options, "p.json", *entries);
}

static std::string textOf(const std::string &json,
                          const std::vector<std::string> &args) {
  Expected<Step> step = makeFrom(json, args);
  EXPECT_TRUE(step.ok()) << step.message();
  return step ? stepText(*step) : "";
}

static const char *const oneParam = R"([{"name": "a", "shape": [3, 2]}])";
static const char *const mixed = R"([
  {"name": "a", "shape": [3, 2], "dtype": "bf16"},
  {"name": "n", "shape": [3], "dtype": "f32", "group": 1}])";

TEST(StepText, WholeFileOfThePlainStep) {
  EXPECT_EQ(textOf(oneParam, {"--rule=sgd", "--hyper=momentum=0,lr=0.5"}),
            R"(dfa.layout @model bucket_bytes = 104857600 {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.group 0 {lr = 0.5, weight_decay = 0.0, momentum = 0.0, dampening = 0.0}
  dfa.param "a" : tensor<3x2xf32>, order = [0, 1], class = @w, group = 0
}
!full_f32 = !dfa.flat<@model, @w, full, f32>
func.func @step(%grad: !full_f32 {dfa.role = "grad"},
                %param: !full_f32 {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!full_f32 {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %inf_part = dfa.non_finite %grad : !full_f32 -> !dfa.partial<flag, whole>
  %inf = dfa.flag_finish %inf_part : !dfa.partial<flag, whole> -> i1
  %new:1 = dfa.sgd ins(%grad : !full_f32) outs(%param : !full_f32) control(%ctl) unless %inf -> !full_f32
  %ctl1 = dfa.step_count %ctl unless %inf
  %ctl2 = dfa.zero_grad generation %ctl1
  return %new#0, %ctl2 : !full_f32, !dfa.control
}
)");
}

TEST(StepText, PropagateNeedsNoFlag) {
  std::string text = textOf(oneParam, {"--on-nonfinite=propagate"});
  EXPECT_THAT(text, Not(HasSubstr("non_finite")));
  EXPECT_THAT(text, Not(HasSubstr("unless")));
}

TEST(StepText, MeshReducesAndGathers) {
  std::string text =
      textOf(oneParam, {"--mesh=replicate=2,shard=4", "--clip=1.5"});
  EXPECT_THAT(text, HasSubstr("dfa.mesh @dp(replicate = 2, shard = 4)\n"));
  EXPECT_THAT(text, HasSubstr("dfa.layout @model on @dp "));
  EXPECT_THAT(text,
              HasSubstr("dfa.control = {average = 0.125, max_norm = 1.5}"));
  EXPECT_THAT(text, HasSubstr("dfa.reduce_scatter sum %grad over \"shard\" : "
                              "!full_f32 -> !shard_f32"));
  EXPECT_THAT(text, HasSubstr("dfa.all_reduce sum %scattered over "
                              "\"replicate\" : !shard_f32"));
  EXPECT_THAT(text, HasSubstr("dfa.combine %norm_part over [\"shard\"]"));
  EXPECT_THAT(text, HasSubstr("%gathered = dfa.all_gather %new#0"));
}

TEST(StepText, ReplicasAloneShardNothing) {
  std::string text = textOf(oneParam, {"--mesh=replicate=2"});
  EXPECT_THAT(text, Not(HasSubstr("shard")));
  EXPECT_THAT(text, Not(HasSubstr("all_gather")));
  EXPECT_THAT(text, HasSubstr("dfa.all_reduce sum %grad over \"replicate\""));
}

TEST(StepText, MixedModelHasTwoClasses) {
  std::string text = textOf(mixed, {"--clip=1", "--scaler"});
  EXPECT_THAT(text, HasSubstr("dfa.class @w_bf16 param = bf16 grad = bf16 "
                              "master = f32"));
  EXPECT_THAT(text, HasSubstr("dfa.class @w_f32 param = f32 grad = f32 "
                              "master = none"));
  EXPECT_THAT(text, HasSubstr("dfa.group 1 {"));
  EXPECT_THAT(text, HasSubstr("dfa.combine %norm_part0, %norm_part1 : "));
  EXPECT_THAT(text, HasSubstr("dfa.encode bf16 %new0#0"));
  EXPECT_THAT(text, HasSubstr("scale = 65536.0"));
}

TEST(StepText, RemainderStorage) {
  std::string text = textOf(mixed, {"--storage=remainder"});
  EXPECT_THAT(text, HasSubstr("master = remainder"));
  EXPECT_THAT(text, HasSubstr("dfa.decode remainder %param0, %remainder0"));
  EXPECT_THAT(text, HasSubstr("%stored0, %rest0 = dfa.encode remainder"));
}

TEST(StepText, MemoryFormatOfTheOthers) {
  const char *json = R"([{"name": "a", "shape": [2, 3, 4, 5]},
    {"name": "b", "shape": [2, 3, 4, 5], "memory_format": "contiguous"},
    {"name": "c", "shape": [2, 3, 1, 1]}, {"name": "d", "shape": [7]}])";
  std::string text = textOf(json, {"--memory-format=channels_last"});
  EXPECT_THAT(text, HasSubstr("\"a\" : tensor<2x3x4x5xf32>, order = [0, 2, 3, "
                              "1],"));
  EXPECT_THAT(text, HasSubstr("\"b\" : tensor<2x3x4x5xf32>, order = [0, 1, 2, "
                              "3],"));
  // One pixel: the same memory, so the same order.
  EXPECT_THAT(text, HasSubstr("\"c\" : tensor<2x3x1x1xf32>, order = [0, 1, 2, "
                              "3],"));
}

TEST(Step, StorageFollowsTheParameters) {
  EXPECT_EQ(makeFrom(oneParam, {})->classes[0].param, Format::F32);
  EXPECT_EQ(makeFrom(oneParam, {"--storage=master"})->classes[0].param,
            Format::BF16);
  EXPECT_EQ(makeFrom(mixed, {})->classes[0].master, MasterKind::F32);
  EXPECT_EQ(makeFrom("[]", {})->classes.size(), 1u);
}

TEST(Step, MistakesAreLocated) {
  EXPECT_THAT(makeFrom(mixed, {"--storage=fp32"}).message(),
              HasSubstr("p.json:2:3: error: parameter 'a': expected dtype f32 "
                        "with --storage=fp32, but got bf16"));
  EXPECT_THAT(makeFrom(R"([{"name": "a", "shape": [], "dtype": "f16"}])",
                       {"--storage=remainder"})
                  .message(),
              HasSubstr("but got f16"));
  EXPECT_THAT(makeFrom("[[\"a\", []],\n[\"a\", []]]", {}).message(),
              HasSubstr("p.json:2:1: error: parameter 'a': given twice"));
  EXPECT_THAT(makeFrom("[[\"a\", [4294967296, 4294967296]]]", {}).message(),
              HasSubstr("p.json:1:2: error: parameter 'a' of shape"));
}

TEST(Text, FloatsReadBack) {
  EXPECT_EQ(floatText(1), "1.0");
  EXPECT_EQ(floatText(1e-8), "1.0e-08");
  EXPECT_EQ(floatText(-0.0), "-0.0");
  for (double value : {0.1, 1e300, 5e-324, 1.0 / 3, 123456789.125, 65536.0}) {
    std::string text = floatText(value);
    EXPECT_THAT(text, HasSubstr("."));
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value);
  }
}

TEST(Text, StringsAreEscaped) {
  EXPECT_EQ(stringText("a.b"), "\"a.b\"");
  EXPECT_EQ(stringText("a\"\\\n\xc3"), "\"a\\22\\5C\\0A\\C3\"");
}
