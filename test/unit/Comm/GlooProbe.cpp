// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A shared object with our Gloo inside and one exported function, for trying it
// in a process that carries another Gloo (a framework's).

#include "comm/CommSet.h"

#include <cstdio>

using namespace dfa::rt;

/// All-reduces 1.5 * (rank + 1) over `size` ranks that meet in a directory and
/// returns the sum, or a negative number.
extern "C" __attribute__((visibility("default"))) double
dfaGlooProbe(int rank, int size, const char *directory, int instance) {
  std::unique_ptr<Store> opened;
  CommSetOptions options;
  options.launch.rank = options.launch.localRank = rank;
  options.launch.worldSize = options.launch.localWorldSize = size;
  options.launch.runId = "probe";
  options.axes = {{"shard", size}};
  options.timeout = Milliseconds(30000);
  options.instance = instance;
  std::unique_ptr<CommSet> set;
  Status status = openFileStore(directory, opened);
  if (status.ok())
    status = CommSet::create(options, std::move(opened), set);
  double value = 1.5 * (rank + 1);
  if (status.ok())
    status = set->axis("shard")->allReduce(&value, &value, 1, DataType::F64,
                                           ReduceOp::Sum, Stream());
  if (status.ok())
    return value;
  std::fprintf(stderr, "%s\n", status.str().c_str());
  return -1;
}
