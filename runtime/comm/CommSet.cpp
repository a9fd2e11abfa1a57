// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Assembles groups, watchdog and transport, and takes them down in the order
// that leaves no thread with a dangling pointer.

#include "comm/CommSet.h"

#include "base/Log.h"
#include "comm/CudaWords.h"
#include "comm/PlanAgreement.h"
#include "comm/Transport.h"

#include <numeric>
#include <thread>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;

/// The group of all ranks; no axis can have this name in a program.
constexpr const char *kMesh = "(mesh)";

class CommSetImpl : public CommSet {
public:
  ~CommSetImpl() override { takeDown(); }

  Status begin(const CommSetOptions &options, std::shared_ptr<Store> store);

  Communicator *axis(const std::string &name) override {
    for (size_t i = 0; i < communicators.size(); ++i)
      if (groups[i].axis == name)
        return communicators[i].get();
    return nullptr;
  }
  Communicator *mesh() override { return axis(kMesh); }
  const AxisGroup *group(const std::string &name) const override {
    for (const AxisGroup &group : groups)
      if (group.axis == name)
        return &group;
    return nullptr;
  }

  Status agreePlan(const std::string &plan) override {
    DFA_RT_TRY(checkOpen());
    DFA_RT_TRY(watchdog->failure());
    return agreeOnPlan(context, agreements++, plan);
  }

  Status failure() override {
    return watchdog ? watchdog->failure() : Status();
  }
  bool failure(CollectiveFailure &found) override {
    return watchdog && watchdog->failure(found);
  }
  void reportLocalFailure(const std::string &reason) override {
    if (watchdog)
      watchdog->reportLocalFailure(reason);
  }

  Status close() override {
    if (transport)
      DFA_RT_TRY(transport->close());
    takeDown();
    return Status();
  }

  SequenceLog &log() override { return *sequence; }
  std::string describe() const override;

private:
  Status makeSequenceLog();
  Status checkOpen() const {
    if (watchdog)
      return Status();
    return DFA_RT_ERROR(FailedPrecondition, "the communicators are closed");
  }
  void takeDown();

  CommContext context;
  std::vector<AxisGroup> groups;
  std::shared_ptr<Store> store;
  void *words = nullptr; // mapped host memory, if a device writes them
  std::unique_ptr<SequenceLog> sequence;
  std::unique_ptr<Watchdog> watchdog;
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<Communicator>> communicators;
  int agreements = 0;
};

Status CommSetImpl::begin(const CommSetOptions &options,
                          std::shared_ptr<Store> given) {
  context.launch = options.launch;
  context.env = options.env;
  context.timeout = options.timeout;
  context.device = options.device;
  context.enterDevice = options.enterDevice;
  context.ranks = options.ranks;
  if (context.ranks.empty()) {
    context.ranks.resize(size_t(options.launch.worldSize));
    std::iota(context.ranks.begin(), context.ranks.end(), 0);
  }
  if (!given)
    return DFA_RT_ERROR(InvalidArgument, "expected a store, found none");
  DFA_RT_TRY(meshGroups(options.axes, context.ranks, options.launch.worldSize,
                        options.launch.rank, groups));
  std::vector<AxisGroup> whole;
  DFA_RT_TRY(meshGroups({{kMesh, int(context.ranks.size())}}, context.ranks,
                        options.launch.worldSize, options.launch.rank, whole));
  // First: NCCL splits the axes off it.
  groups.insert(groups.begin(), whole.front());

  store = makePrefixStore(std::move(given),
                          keyPrefix(options.launch, options.instance));
  context.store = store.get();
  if (options.transport == TransportKind::Nccl)
    DFA_RT_TRY(makeSequenceLog());
  if (!sequence)
    sequence = std::make_unique<SequenceLog>();
  context.log = sequence.get();

  WatchdogOptions watch;
  watch.rank = options.launch.rank;
  watch.ranks = context.ranks;
  watch.timeout = options.timeout;
  DFA_RT_TRY(Watchdog::start(watch, *store, *sequence, watchdog));
  context.watchdog = watchdog.get();

  transport = options.transport == TransportKind::Gloo
                  ? makeGlooTransport(context)
                  : makeNcclTransport(context);
  Transport *aborted = transport.get();
  watchdog->onFailure([aborted] { aborted->abort(); });
  Status status = transport->connect(groups, communicators);
  // The others would wait for this rank until the timeout.
  if (!status.ok())
    watchdog->reportLocalFailure(status.message());
  return status;
}

Status CommSetImpl::makeSequenceLog() {
  Device *device = context.device;
  if (!device || device->kind() != Device::Kind::Cuda)
    return Status();
  DFA_RT_TRY(device->allocateHost(sizeof(SequenceWords), &words));
  DFA_RT_TRY(
      makeCudaWordWriters(*device, context.writeWord, context.writeWords));
  sequence = std::make_unique<SequenceLog>(new (words) SequenceWords());
  return Status();
}

void CommSetImpl::takeDown() {
  // A watchdog that goes between a failure and its abort leaves that to us.
  if (watchdog && transport && !watchdog->failure().ok())
    transport->abort();
  // The watchdog's thread calls the transport and reads the log: it goes first.
  watchdog.reset();
  context.watchdog = nullptr;
  bool idle = !transport || transport->idle();
  communicators.clear();
  transport.reset();
  store.reset();
  if (words && !idle) {
    // A device may still write them; they go with the process.
    DFA_RT_LOG(Warn, "an abort of collectives does not end: their memory is "
                     "not freed");
    words = nullptr;
  } else if (words) {
    sequence = std::make_unique<SequenceLog>();
    context.device->freeHost(words);
    words = nullptr;
  }
}

std::string CommSetImpl::describe() const {
  std::string text = transport ? transport->describe() + "\n" : std::string();
  for (const AxisGroup &group : groups) {
    text += "axis " + group.axis + ": ranks";
    for (int rank : group.ranks)
      text += " " + std::to_string(rank);
    text += "\n";
  }
  return text;
}

} // namespace

Status waitForKey(const CommContext &context, uint64_t number,
                  const std::string &key, std::string &value) {
  Clock::time_point deadline = Clock::now() + context.timeout;
  Milliseconds pause(1);
  while (true) {
    bool found = false;
    Status status = context.store->tryGet(key, value, found);
    if (!status.ok())
      return context.watchdog->explain(number, status.message(), false);
    if (found)
      return Status();
    bool late = Clock::now() >= deadline;
    if (late || !context.watchdog->failure().ok())
      return context.watchdog->explain(number, "", late);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, Milliseconds(50));
  }
}

Status CommSet::create(const CommSetOptions &options,
                       std::shared_ptr<Store> store,
                       std::unique_ptr<CommSet> &set) {
  std::unique_ptr<CommSetImpl> made = std::make_unique<CommSetImpl>();
  DFA_RT_TRY(made->begin(options, std::move(store)));
  set = std::move(made);
  return Status();
}

} // namespace dfa::rt
