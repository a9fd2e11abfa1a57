// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels written by hand in the signatures of abi.h, a program that runs
// AdamW with norm and clip through them, and tables for a list of sizes. The
// compiler is not involved, so a failure here is the runtime's.

#ifndef DFA_TEST_RUNTIME_TESTKERNELS_H
#define DFA_TEST_RUNTIME_TESTKERNELS_H

#include "base/Device.h"
#include "program/Optimizer.h"

#include <string>
#include <vector>

namespace dfa::rt::test {

/// Columns of the group table, in the order of the programs below.
enum Hyper { Lr, Beta1, Beta2, Eps, WeightDecay, MaxNorm };

/// Arrays of class `w` in the one-rank program.
enum LocalArray { Grad, Param, ExpAvg, ExpAvgSq };

/// Arrays of class `w` in the program for several ranks.
enum ShardedArray { FullGrad, ShardGrad, Master, M, V, FullParam };

/// AdamW with norm, clip and skip on one rank, gradients in place.
extern const char *const localProgram;

/// The same over axes `replicate` and `shard`, bucket by bucket, with the
/// exchange of sums and presence.
extern const char *const shardedProgram;

/// Finds the kernels of both programs.
KernelSource kernels();

/// Tables of one rank for parameters of class `w` with these sizes. All
/// parameters are in group 0.
Tables tablesFor(const Program &program, const std::vector<int64_t> &sizes,
                 int64_t bucketBytes, int64_t replicas = 1, int64_t shards = 1,
                 int64_t rank = 0);

/// Parses or fails the test.
Program parseOrDie(const char *text);

} // namespace dfa::rt::test

#endif // DFA_TEST_RUNTIME_TESTKERNELS_H
