// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line and the rules of dfa-layout.
#include "Options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dfa::tools;
using dfa::layout::Expected;
using dfa::layout::Format;
using testing::ElementsAre;
using testing::HasSubstr;

static Options parsed(const std::vector<std::string> &args) {
  Expected<Options> options = parseOptions(args);
  EXPECT_TRUE(options.ok()) << options.message();
  return options ? *options : Options();
}

static std::string usageError(const std::vector<std::string> &args) {
  return parseOptions(args).message();
}

TEST(Options, Everything) {
  Options options = parsed(
      {"p.json", "-o", "out.mlir", "--mesh=replicate=2,shard=4", "--rule=lion",
       "--storage=remainder", "--grad-dtype", "bf16", "--scaler", "--clip=0.5",
       "--bucket-mb=2.5", "--memory-format=channels_last"});
  EXPECT_EQ(options.input, "p.json");
  EXPECT_EQ(options.output, "out.mlir");
  EXPECT_EQ(options.mesh.replicate, 2);
  EXPECT_EQ(options.mesh.shard, 4);
  EXPECT_EQ(options.rule.name, "lion");
  EXPECT_EQ(options.storage, Storage::Remainder);
  EXPECT_EQ(options.gradFormat, Format::BF16);
  EXPECT_TRUE(options.scaler);
  EXPECT_EQ(options.clip, 0.5);
  EXPECT_EQ(options.bucketBytes, 2621440);
  EXPECT_EQ(options.memoryFormat, MemoryFormat::ChannelsLast);
}

TEST(Options, Defaults) {
  Options options = parsed({"--model=resnet50"});
  EXPECT_EQ(options.rule.name, "adamw");
  EXPECT_EQ(options.bucketBytes, 104857600);
  EXPECT_FALSE(options.hasMesh());
  EXPECT_FALSE(options.clip.has_value());
}

TEST(Options, AMeshMayHaveOneAxis) {
  Options shard = parsed({"p.json", "--mesh=shard=4"});
  EXPECT_TRUE(shard.hasShardAxis);
  EXPECT_FALSE(shard.hasReplicateAxis);
  EXPECT_EQ(shard.mesh.replicate, 1);
}

TEST(Options, WrongUsage) {
  EXPECT_THAT(usageError({}), HasSubstr("expected PARAMS.json or --model"));
  EXPECT_THAT(usageError({"a", "b"}), HasSubstr("'a' and 'b'"));
  EXPECT_THAT(usageError({"a", "--model=resnet50"}), HasSubstr("not both"));
  EXPECT_THAT(usageError({"--model=x"}), HasSubstr("sd2_unet"));
  EXPECT_THAT(usageError({"a", "--frobnicate"}),
              HasSubstr("unknown option '--frobnicate'"));
  EXPECT_THAT(usageError({"a", "-o"}), HasSubstr("-o: expected a value"));
  EXPECT_THAT(usageError({"a", "--rule=foo"}), HasSubstr("but got 'foo'"));
  EXPECT_THAT(usageError({"a", "--storage=big"}),
              HasSubstr("fp32|master|remainder, but got 'big'"));
  EXPECT_THAT(usageError({"a", "--grad-dtype=i8"}), HasSubstr("but got 'i8'"));
  for (const char *value : {"0", "-1", "x", "", "nan", "inf", "1x"}) {
    EXPECT_FALSE(parseOptions({"a", std::string("--clip=") + value}).ok());
    EXPECT_FALSE(parseOptions({"a", std::string("--bucket-mb=") + value}).ok());
  }
  for (const char *value :
       {"", "shard", "shard=0", "shard=1.5", "shard=2,shard=2", "x=2",
        "shard=2,", "shard=2,replicate=2", "shard=99999999999",
        "replicate=100000,shard=100000"})
    EXPECT_FALSE(parseOptions({"a", std::string("--mesh=") + value}).ok())
        << value;
  EXPECT_THAT(usageError({"a", "--scaler", "--on-nonfinite=propagate"}),
              HasSubstr("--on-nonfinite=skip"));
  EXPECT_THAT(usageError({"a", "--hyper=beta1"}), HasSubstr("NAME=NUMBER"));
}

TEST(Options, HelpNamesEveryOption) {
  std::string help = helpText();
  for (const char *name :
       {"--model", "-o", "--mesh", "--rule", "--storage", "--grad-dtype",
        "--scaler", "--clip", "--bucket-mb", "--memory-format", "--hyper",
        "--on-nonfinite", "--emit", "--version"})
    EXPECT_THAT(help, HasSubstr(name));
}

TEST(Rules, HyperParametersReplaceDefaults) {
  Rule rule = *makeRule("adamw", {{"lr", 0.5}, {"eps", 1e-6}});
  EXPECT_EQ(rule.hyper[0].second, 0.5);
  EXPECT_EQ(rule.hyper[3].second, 1e-6);
  EXPECT_EQ(rule.hyper[4].second, 1e-2);
  EXPECT_THAT(makeRule("lion", {{"eps", 1}}).message(),
              HasSubstr("lr, beta1, beta2, weight_decay"));
}

TEST(Rules, MomentumDecidesAboutTheBuffer) {
  EXPECT_THAT(makeRule("sgd", {})->states, ElementsAre("momentum_buffer"));
  EXPECT_THAT(makeRule("sgd", {{"momentum", 0}})->states, ElementsAre());
  EXPECT_THAT(makeRule("rmsprop", {})->states, ElementsAre("square_avg"));
  Rule rule = *makeRule("rmsprop", {{"momentum", 0.9}});
  EXPECT_THAT(rule.states, ElementsAre("square_avg", "momentum_buffer"));
  EXPECT_EQ(rule.attributes, " {with_momentum}");
}
