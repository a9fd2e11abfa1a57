// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the launcher's variables. Rank and size always come from one source:
// mixing a rank of one launcher with the size of another hangs later, far from
// the cause.

#include "comm/Bootstrap.h"

#include "comm/SlurmNodeList.h"

#include <cstdlib>

namespace dfa::rt {

namespace {

constexpr int kMaxPort = 65535;

/// SLURM gives no port. Jobs that share a node must not meet, so it is derived
/// from the job and step numbers, below Linux' ephemeral range.
constexpr int kSlurmPortBase = 20000;
constexpr int kSlurmPorts = 10000;

bool parseInt(const std::string &text, int &value) {
  if (text.empty() || text.size() > 10)
    return false;
  char *end = nullptr;
  long parsed = std::strtol(text.c_str(), &end, 10);
  if (*end || text[0] == ' ' || parsed < INT32_MIN || parsed > INT32_MAX)
    return false;
  value = int(parsed);
  return true;
}

/// Reads launcher variables and remembers the first malformed one.
class Reader {
public:
  explicit Reader(const Environment &env) : env(env) {}

  std::string text(const char *name) const {
    const char *value = env(name);
    return value ? value : "";
  }

  bool has(const char *name) const {
    const char *value = env(name);
    return value && *value;
  }

  std::optional<int> number(const char *name, int low) {
    if (!has(name))
      return std::nullopt;
    int value = 0;
    if (parseInt(text(name), value) && value >= low)
      return value;
    if (status.ok())
      status = DFA_RT_ERROR(InvalidArgument,
                            "%s: expected an integer of at least %d, found "
                            "'%s'",
                            name, low, text(name).c_str());
    return std::nullopt;
  }

  Status status;

private:
  const Environment &env;
};

/// One source's view of the run.
struct Place {
  std::optional<int> rank, worldSize, localRank, localWorldSize;
};

Place torchrunPlace(Reader &env) {
  return {env.number("RANK", 0), env.number("WORLD_SIZE", 1),
          env.number("LOCAL_RANK", 0), env.number("LOCAL_WORLD_SIZE", 1)};
}

/// True inside a job step. The shell of a batch script has SLURM_PROCID=0 and
/// SLURM_NTASKS too, but it runs once: taking it for rank 0 would wait for
/// ranks that nobody starts.
bool inSlurmStep(const Reader &env) { return env.has("SLURM_STEP_NODELIST"); }

Place slurmPlace(Reader &env) {
  Place place = {env.number("SLURM_PROCID", 0), env.number("SLURM_NTASKS", 1),
                 env.number("SLURM_LOCALID", 0), std::nullopt};
  std::optional<int> node = env.number("SLURM_NODEID", 0);
  std::vector<int> counts;
  if (node && env.has("SLURM_STEP_TASKS_PER_NODE") &&
      expandTaskCounts(env.text("SLURM_STEP_TASKS_PER_NODE"), counts).ok() &&
      size_t(*node) < counts.size())
    place.localWorldSize = counts[size_t(*node)];
  return place;
}

Status missingHalf(const char *source, const char *rank, const char *size,
                   bool hasRank) {
  return DFA_RT_ERROR(InvalidArgument,
                      "%s: expected both %s and %s, found only %s", source,
                      rank, size, hasRank ? rank : size);
}

Status checkRange(const Launch &launch) {
  if (launch.rank >= 0 && launch.rank < launch.worldSize &&
      launch.localRank >= 0 && launch.localWorldSize >= 1 &&
      launch.localRank < launch.localWorldSize &&
      launch.localWorldSize <= launch.worldSize)
    return Status();
  return DFA_RT_ERROR(InvalidArgument,
                      "%s: expected rank < world size and local rank < local "
                      "world size <= world size, found rank %d of %d, local "
                      "rank %d of %d",
                      launch.source.c_str(), launch.rank, launch.worldSize,
                      launch.localRank, launch.localWorldSize);
}

/// Finds host and port when DFA_STORE and the flag are silent.
Status defaultStore(Reader &env, StoreAddress &address) {
  address.kind = StoreAddress::Kind::Tcp;
  std::optional<int> masterPort = env.number("MASTER_PORT", 1);
  if (env.has("MASTER_ADDR")) {
    address.host = env.text("MASTER_ADDR");
  } else if (inSlurmStep(env)) {
    std::vector<std::string> hosts;
    DFA_RT_TRY(expandNodeList(env.text("SLURM_STEP_NODELIST"), hosts));
    address.host = hosts.front();
  } else {
    return DFA_RT_ERROR(InvalidArgument,
                        "expected DFA_STORE=tcp://host:port|file:path or "
                        "MASTER_ADDR, found neither");
  }
  if (masterPort) {
    // torchrun's agent itself listens on MASTER_PORT, with its own protocol.
    address.port = *masterPort + 1;
    if (address.port <= kMaxPort)
      return Status();
    return DFA_RT_ERROR(
        InvalidArgument,
        "MASTER_PORT: expected at most 65534 (the store listens on "
        "the next port), found %d",
        *masterPort);
  }
  if (!inSlurmStep(env))
    return DFA_RT_ERROR(
        InvalidArgument,
        "expected MASTER_PORT beside MASTER_ADDR, or DFA_STORE");
  int job = env.number("SLURM_JOB_ID", 0).value_or(0);
  int step = env.number("SLURM_STEP_ID", 0).value_or(0);
  address.port = kSlurmPortBase + int((int64_t(job) * 7 + step) % kSlurmPorts);
  return Status();
}

Status resolveStore(const LaunchFlags &flags, Reader &env, Launch &launch) {
  std::string given = flags.store.empty() ? env.text("DFA_STORE") : flags.store;
  if (!given.empty())
    return parseStoreAddress(given, launch.store);
  if (launch.worldSize == 1)
    return Status();
  return defaultStore(env, launch.store);
}

std::string resolveRunId(const LaunchFlags &flags, const Reader &env) {
  if (!flags.runId.empty())
    return flags.runId;
  if (env.has("TORCHELASTIC_RUN_ID"))
    return env.text("TORCHELASTIC_RUN_ID");
  if (inSlurmStep(env))
    return env.text("SLURM_JOB_ID") + "." + env.text("SLURM_STEP_ID");
  return "run";
}

} // namespace

Environment processEnvironment() {
  return [](const char *name) -> const char * { return std::getenv(name); };
}

std::string StoreAddress::str() const {
  if (kind == Kind::None)
    return "none";
  if (kind == Kind::File)
    return "file:" + path;
  bool v6 = host.find(':') != std::string::npos;
  return "tcp://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Status parseStoreAddress(const std::string &text, StoreAddress &address) {
  address = StoreAddress();
  if (text.rfind("file:", 0) == 0 && text.size() > 5) {
    address.kind = StoreAddress::Kind::File;
    address.path = text.substr(5);
    if (address.path.rfind("//", 0) == 0) // file:///path
      address.path.erase(0, 2);
    return Status();
  }
  size_t colon = text.rfind(':');
  if (text.rfind("tcp://", 0) == 0 && colon > 6 && colon != std::string::npos) {
    std::string host = text.substr(6, colon - 6);
    bool bracketed =
        host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed)
      host = host.substr(1, host.size() - 2);
    int port = 0;
    bool plain = host.find_first_of(":[]/ ") == std::string::npos;
    if ((bracketed || plain) && parseInt(text.substr(colon + 1), port) &&
        port >= 1 && port <= kMaxPort) {
      address.kind = StoreAddress::Kind::Tcp;
      address.host = host;
      address.port = port;
      return Status();
    }
  }
  return DFA_RT_ERROR(InvalidArgument,
                      "store address: expected tcp://host:port or "
                      "file:path, found '%s'",
                      text.c_str());
}

Status resolveLaunch(const LaunchFlags &flags, const Environment &environment,
                     Launch &launch) {
  launch = Launch();
  Reader env(environment);
  Place torchrun = torchrunPlace(env);
  Place slurm;
  if (inSlurmStep(env))
    slurm = slurmPlace(env);
  DFA_RT_TRY(env.status);

  Place place = {flags.rank, flags.worldSize, flags.localRank,
                 flags.localWorldSize};
  if (flags.rank.has_value() != flags.worldSize.has_value())
    return missingHalf("flags", "--rank", "--world-size",
                       flags.rank.has_value());
  launch.source = "flags";
  if (!place.rank) {
    Place flagged = place;
    if (torchrun.rank || torchrun.worldSize) {
      if (!torchrun.rank || !torchrun.worldSize)
        return missingHalf("environment", "RANK", "WORLD_SIZE",
                           torchrun.rank.has_value());
      place = torchrun;
      launch.source = "RANK and WORLD_SIZE";
    } else if (slurm.rank || slurm.worldSize) {
      if (!slurm.rank || !slurm.worldSize)
        return missingHalf("environment", "SLURM_PROCID", "SLURM_NTASKS",
                           slurm.rank.has_value());
      place = slurm;
      launch.source = "SLURM_PROCID and SLURM_NTASKS";
    } else {
      place.rank = 0;
      place.worldSize = 1;
      launch.source = "no launcher";
    }
    if (flagged.localRank)
      place.localRank = flagged.localRank;
    if (flagged.localWorldSize)
      place.localWorldSize = flagged.localWorldSize;
  }

  launch.rank = *place.rank;
  launch.worldSize = *place.worldSize;
  // Without word on the node, assume all ranks share it.
  launch.localWorldSize = place.localWorldSize.value_or(launch.worldSize);
  launch.localRank = place.localRank.value_or(
      launch.localWorldSize > 0 ? launch.rank % launch.localWorldSize : 0);
  DFA_RT_TRY(checkRange(launch));

  std::optional<int> restart = env.number("TORCHELASTIC_RESTART_COUNT", 0);
  if (!restart)
    restart = env.number("SLURM_RESTART_COUNT", 0);
  launch.restart = restart.value_or(0);
  launch.runId = resolveRunId(flags, env);
  DFA_RT_TRY(resolveStore(flags, env, launch));
  launch.storeSocket = env.number("DFA_STORE_FD", 3).value_or(-1);
  return env.status;
}

std::string keyPrefix(const Launch &launch, int instance) {
  return "dfa/" + launch.runId + "/" + std::to_string(launch.restart) + "/" +
         std::to_string(instance) + "/";
}

Status timeoutFromEnvironment(const Environment &env, double &seconds) {
  seconds = 300.0;
  const char *text = env("DFA_TIMEOUT_S");
  if (!text || !*text)
    return Status();
  char *end = nullptr;
  double value = std::strtod(text, &end);
  // A day is longer than any useful wait; the bound also refuses inf and nan.
  if (*end || !(value >= 0.1) || !(value <= 86400.0 * 7))
    return DFA_RT_ERROR(
        InvalidArgument,
        "DFA_TIMEOUT_S: expected seconds between 0.1 and 604800, "
        "found '%s'",
        text);
  seconds = value;
  return Status();
}

} // namespace dfa::rt
