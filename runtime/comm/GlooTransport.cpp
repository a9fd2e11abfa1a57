// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gloo as a transport: one group of sockets an axis, one worker thread for all
// of them, failures explained by the watchdog.

#include "comm/GlooGroup.h"
#include "comm/Interface.h"
#include "comm/LocalReduce.h"
#include "comm/Transport.h"
#include "comm/Worker.h"

#include <cinttypes>
#include <functional>
#include <mutex>

namespace dfa::rt {

namespace {

/// Shared by the communicators of one transport.
struct Shared {
  CommContext context;
  Worker worker;
  std::mutex mutex; // guards `groups` against abort()
  std::vector<GlooGroup *> groups;
  bool aborted = false;
};

using Body = std::function<bool(GlooGroup &, GlooError &)>;

class GlooCommunicator : public Communicator {
public:
  GlooCommunicator(std::shared_ptr<Shared> shared,
                   std::unique_ptr<GlooGroup> group, AxisGroup members)
      : shared(std::move(shared)), group(std::move(group)),
        members(std::move(members)) {}

  ~GlooCommunicator() override {
    {
      std::lock_guard<std::mutex> guard(shared->mutex);
      std::vector<GlooGroup *> &all = shared->groups;
      for (size_t i = 0; i < all.size(); ++i)
        if (all[i] == group.get())
          all.erase(all.begin() + long(i--));
    }
    // Closing sockets writes to them: keep it on the thread without SIGPIPE.
    (void)shared->worker.run([this] {
      group.reset();
      return Status();
    });
  }

  int rank() const override { return group->rank(); }
  int size() const override { return group->size(); }
  const char *name() const override { return "gloo"; }
  bool ordersByRank() const override { return true; }
  /// As part of a CPU device's recording: the task is replayed.
  bool capturable() const override { return true; }

  void label(const char *collective, int64_t bucket) override {
    labelled = collective;
    labelledBucket = bucket;
  }

  Status reduceScatter(const void *send, void *recv, int64_t count,
                       DataType type, ReduceOp op, Stream stream) override {
    DFA_RT_TRY(checkReducible(type, op));
    return submit("reduce_scatter", count, type, stream,
                  [=](GlooGroup &group, GlooError &error) {
                    return group.reduceScatter(send, recv, count, type, op,
                                               error);
                  });
  }

  Status allReduce(const void *send, void *recv, int64_t count, DataType type,
                   ReduceOp op, Stream stream) override {
    DFA_RT_TRY(checkReducible(type, op));
    return submit("all_reduce", count, type, stream,
                  [=](GlooGroup &group, GlooError &error) {
                    return group.allReduce(send, recv, count, type, op, error);
                  });
  }

  Status allGather(const void *send, void *recv, int64_t count, DataType type,
                   Stream stream) override {
    int64_t bytes = count * int64_t(sizeOf(type));
    return submit("all_gather", count, type, stream,
                  [=](GlooGroup &group, GlooError &error) {
                    return group.allGather(send, recv, bytes, error);
                  });
  }

  Status broadcast(const void *send, void *recv, int64_t count, DataType type,
                   int root, Stream stream) override {
    if (root < 0 || root >= size())
      return DFA_RT_ERROR(InvalidArgument,
                          "broadcast: expected a root below %d, found %d",
                          size(), root);
    int64_t bytes = count * int64_t(sizeOf(type));
    return submit("broadcast", count, type, stream,
                  [=](GlooGroup &group, GlooError &error) {
                    return group.broadcast(send, recv, bytes, root, error);
                  });
  }

  Status barrier(Stream stream) override {
    return submit("barrier", 0, DataType::I8, stream,
                  [](GlooGroup &group, GlooError &error) {
                    return group.barrier(error);
                  });
  }

private:
  Status submit(const char *collective, int64_t count, DataType type,
                Stream stream, Body body) {
    if (count < 0)
      return DFA_RT_ERROR(InvalidArgument,
                          "%s: expected a count of at least 0, found %" PRId64,
                          collective, count);
    CollectiveInfo info;
    info.collective = labelled ? labelled : collective;
    info.axis = members.axis;
    info.bucket = labelled ? labelledBucket : -1;
    info.bytes = count * int64_t(sizeOf(type));
    info.ranks = members.ranks;
    std::function<Status()> task = [this, info = std::move(info),
                                    body = std::move(body)] {
      return shared->worker.run([&] { return perform(info, body); });
    };
    if (Device *device = shared->context.device)
      return device->enqueueHost(std::move(task), stream);
    return task();
  }

  Status perform(const CollectiveInfo &info, const Body &body) {
    const CommContext &context = shared->context;
    // A failure is for ever: the ranks no longer agree on what comes next.
    DFA_RT_TRY(context.watchdog->failure());
    uint64_t number = context.log->issue(info);
    context.log->begin(number);
    GlooError error;
    Status status;
    group->begin(std::hash<std::string>()(info.str()));
    if (!body(*group, error))
      status = context.watchdog->explain(number, error.message, error.timedOut);
    else
      context.log->end(number);
    // After a failure the words keep saying where this rank stopped.
    return status;
  }

  std::shared_ptr<Shared> shared;
  std::unique_ptr<GlooGroup> group;
  AxisGroup members;
  const char *labelled = nullptr;
  int64_t labelledBucket = -1;
};

class GlooTransport : public Transport {
public:
  explicit GlooTransport(const CommContext &context)
      : shared(std::make_shared<Shared>()) {
    shared->context = context;
  }

  Status connect(const std::vector<AxisGroup> &groups,
                 std::vector<std::unique_ptr<Communicator>> &made) override {
    DFA_RT_TRY(chooseLocalAddress(shared->context.launch, shared->context.env,
                                  address));
    DFA_RT_TRY(compareAddresses());
    for (const AxisGroup &group : groups) {
      std::unique_ptr<Communicator> communicator;
      DFA_RT_TRY(shared->worker.run(
          [&] { return connectGroup(group, communicator); }));
      made.push_back(std::move(communicator));
    }
    return Status();
  }

  void abort() override {
    std::lock_guard<std::mutex> guard(shared->mutex);
    shared->aborted = true;
    for (GlooGroup *group : shared->groups)
      group->abort();
  }

  Status close() override { return Status(); }

  std::string describe() const override {
    return "gloo on " + address.address + " (" + address.interface + ", " +
           address.reason + ")";
  }

private:
  /// Refuses a loopback address beside real ones: those peers could never
  /// connect, and the wait would tell nobody why.
  Status compareAddresses() {
    const CommContext &context = shared->context;
    int first = context.ranks.front();
    std::string mine = (address.loopback ? "loopback " : "") + address.address;
    // Numbered on the first rank too: numbers mean the same on all ranks.
    CollectiveInfo info;
    info.collective = "connect";
    info.ranks = context.ranks;
    uint64_t number = context.log->issue(info);
    context.log->begin(number);
    if (context.launch.rank == first) {
      DFA_RT_TRY(context.store->set("gloo/address", mine));
      context.log->end(number);
      return Status();
    }
    std::string other;
    DFA_RT_TRY(waitForKey(context, number, "gloo/address", other));
    context.log->end(number);
    bool otherLoopback = other.compare(0, 9, "loopback ") == 0;
    if (otherLoopback == address.loopback)
      return Status();
    Status status = DFA_RT_ERROR(
        CollectiveError,
        "rank %d binds to %s, rank %d to %s: one of them is loopback; name the "
        "interface with DFA_SOCKET_IFNAME",
        first, other.c_str(), context.launch.rank, mine.c_str());
    context.watchdog->reportLocalFailure(status.message());
    return status;
  }

  Status connectGroup(const AxisGroup &members,
                      std::unique_ptr<Communicator> &communicator) {
    const CommContext &context = shared->context;
    CollectiveInfo info;
    info.collective = "connect";
    info.axis = members.axis;
    info.ranks = members.ranks;
    uint64_t number = context.log->issue(info);
    context.log->begin(number);
    std::unique_ptr<Store> access;
    Status cloned = context.store->clone(access);
    if (!cloned.ok())
      return context.watchdog->explain(number, cloned.message(), false);
    std::unique_ptr<Store> store = makePrefixStore(
        std::move(access),
        "gloo/" + members.axis + "/" + std::to_string(members.color) + "/");
    std::unique_ptr<GlooGroup> group;
    GlooError error;
    Watchdog *watchdog = context.watchdog;
    bool connected = GlooGroup::connect(
        members.index, int(members.ranks.size()), address.address, *store,
        context.timeout, [watchdog] { return !watchdog->failure().ok(); },
        group, error);
    if (!connected)
      return watchdog->explain(number, error.message, error.timedOut);
    context.log->end(number);
    {
      std::lock_guard<std::mutex> guard(shared->mutex);
      shared->groups.push_back(group.get());
      if (shared->aborted)
        group->abort();
    }
    communicator =
        std::make_unique<GlooCommunicator>(shared, std::move(group), members);
    return Status();
  }

  std::shared_ptr<Shared> shared;
  LocalAddress address;
};

} // namespace

std::unique_ptr<Transport> makeGlooTransport(const CommContext &context) {
  return std::make_unique<GlooTransport>(context);
}

} // namespace dfa::rt
