// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joining a test world.

#include "Ranks.h"

#include <thread>

using namespace dfa::rt;

World World::tcp(int size, std::vector<MeshAxis> axes) {
  World world;
  world.size = size;
  world.axes = std::move(axes);
  world.store.kind = StoreAddress::Kind::Tcp;
  world.store.host = "127.0.0.1";
  world.store.port = freePort();
  return world;
}

World World::file(int size, std::vector<MeshAxis> axes,
                  const std::string &path) {
  World world;
  world.size = size;
  world.axes = std::move(axes);
  world.store.kind = StoreAddress::Kind::File;
  world.store.path = path;
  return world;
}

static Launch launchOf(const World &world, int rank) {
  Launch launch;
  launch.rank = launch.localRank = rank;
  launch.worldSize = launch.localWorldSize = world.size;
  launch.store = world.store;
  launch.runId = "test";
  return launch;
}

Status openWorldStore(const World &world, int rank,
                      std::shared_ptr<Store> &store) {
  std::unique_ptr<Store> opened;
  DFA_RT_TRY(openStore(launchOf(world, rank), Milliseconds(20000), opened));
  store = std::move(opened);
  return Status();
}

Status join(const World &world, int rank, Rank &joined) {
  if (!joined.store)
    DFA_RT_TRY(openWorldStore(world, rank, joined.store));
  CommSetOptions options;
  options.launch = launchOf(world, rank);
  options.axes = world.axes;
  options.ranks = world.ranks;
  options.transport = world.transport;
  options.timeout = Milliseconds(int64_t(world.timeoutSeconds * 1000));
  options.device = world.device;
  std::string nccl = world.nccl;
  options.env = [nccl](const char *name) -> const char * {
    return std::string(name) == "DFA_NCCL" && !nccl.empty() ? nccl.c_str()
                                                            : nullptr;
  };
  return CommSet::create(options, joined.store, joined.set);
}

Status meet(const World &world, int rank, Rank &joined,
            const std::string &name) {
  int64_t sum = 0;
  DFA_RT_TRY(joined.store->add("meet/" + name, 1, sum));
  if (sum == world.size)
    DFA_RT_TRY(joined.store->set("met/" + name, ""));
  std::string value;
  DFA_RT_TRY(joined.store->get("met/" + name, value, Milliseconds(20000)));
  DFA_RT_TRY(joined.store->add("left/" + name, 1, sum));
  bool serves = joined.store->servedBy() == rank;
  for (int i = 0; serves && sum < world.size && i < 10000; ++i) {
    std::this_thread::sleep_for(Milliseconds(2));
    DFA_RT_TRY(joined.store->add("left/" + name, 0, sum));
  }
  return Status();
}
