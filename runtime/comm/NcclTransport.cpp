// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL as a transport. Communicators are blocking and made on a helper thread,
// so that a peer that never comes is a timeout here and not a hang; axes are
// split off the communicator of the whole mesh. Nothing collective runs when a
// set is destroyed without close().

#include "comm/NcclCommunicator.h"
#include "comm/NcclHelper.h"
#include "comm/NcclLibrary.h"

#include <cinttypes>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;
using Shared = NcclShared;

/// How long a launch may still take before an abort frees what it uses. One
/// that waits for a peer only ends by the abort.
constexpr Milliseconds kLaunchPatience(200);
/// How long a recording that is gone may still be counted: the driver tells of
/// its end from a thread of its own.
constexpr Milliseconds kGraphPatience(1000);
/// How long a set that goes waits for its abort.
constexpr Milliseconds kAbortPatience(10000);

class NcclTransport : public Transport {
public:
  explicit NcclTransport(const CommContext &context)
      : shared(std::make_shared<Shared>()) {
    shared->context = context;
  }

  ~NcclTransport() override {
    std::lock_guard<std::mutex> guard(shared->mutex);
    // What still runs may use the token.
    if (!token || shared->aborting)
      return;
    if (Device *device = shared->context.device)
      device->free(token, sizeof(uint32_t));
    else
      delete static_cast<uint32_t *>(token);
  }

  Status connect(const std::vector<AxisGroup> &groups,
                 std::vector<std::unique_ptr<Communicator>> &made) override;
  void abort() override;
  bool idle() override;
  Status close() override;
  std::string asyncError();

  std::string describe() const override {
    if (!shared->library)
      return "nccl";
    // NCCL documents deadlocks without it when graphs of several communicators
    // are launched by one thread.
    const char *order = shared->context.env("NCCL_LAUNCH_ORDER_IMPLICIT");
    bool ordered = order && std::string(order) == "1";
    return "nccl " + shared->library->str() +
           (ordered ? "" : "; recommended: NCCL_LAUNCH_ORDER_IMPLICIT=1");
  }

private:
  Status make(const char *call, const AxisGroup &group,
              std::function<nccl::Result(nccl::Comm *)> body, nccl::Comm &comm);
  Status exchangeId(nccl::UniqueId &id, const AxisGroup &mesh);

  std::shared_ptr<Shared> shared;
  void *token = nullptr;
};

Status NcclTransport::exchangeId(nccl::UniqueId &id, const AxisGroup &mesh) {
  const CommContext &context = shared->context;
  std::string own = ncclVersionName(shared->library->version);
  CollectiveInfo info;
  info.collective = "connect";
  info.ranks = context.ranks;
  uint64_t number = context.log->issue(info);
  context.log->begin(number);
  if (mesh.index == 0) {
    nccl::Result result = shared->library->getUniqueId(&id);
    if (result != 0)
      return ncclError(*shared->library, "ncclGetUniqueId", result);
    DFA_RT_TRY(context.store->set(
        "nccl/id", std::string(id.bytes, sizeof(id.bytes)) + own));
    context.log->end(number);
    return Status();
  }
  std::string text;
  DFA_RT_TRY(waitForKey(context, number, "nccl/id", text));
  context.log->end(number);
  if (text.size() < sizeof(id.bytes))
    return DFA_RT_ERROR(Internal, "expected 128 bytes of identity, found %zu",
                        text.size());
  std::memcpy(id.bytes, text.data(), sizeof(id.bytes));
  std::string other = text.substr(sizeof(id.bytes));
  if (other != own)
    return DFA_RT_ERROR(CollectiveError,
                        "ranks load different NCCL versions: rank %d has %s, "
                        "rank %d has %s",
                        context.ranks.front(), other.c_str(),
                        context.launch.rank, shared->library->str().c_str());
  return Status();
}

Status NcclTransport::make(const char *call, const AxisGroup &group,
                           std::function<nccl::Result(nccl::Comm *)> body,
                           nccl::Comm &comm) {
  const CommContext &context = shared->context;
  CollectiveInfo info;
  info.collective = "connect";
  info.axis = group.axis;
  info.ranks = context.ranks;
  uint64_t number = context.log->issue(info);
  context.log->begin(number);
  std::shared_ptr<HelperOutcome> outcome;
  if (!runOnHelper(context, shared->library, std::move(body), outcome))
    return context.watchdog->explain(
        number, std::string(call) + " did not return in time", true);
  DFA_RT_TRY(outcome->device);
  if (outcome->result != 0)
    return context.watchdog->explain(
        number, ncclError(*shared->library, call, outcome->result).message(),
        false);
  context.log->end(number);
  comm = outcome->made;
  std::lock_guard<std::mutex> guard(shared->mutex);
  shared->comms.push_back(comm);
  return Status();
}

Status
NcclTransport::connect(const std::vector<AxisGroup> &groups,
                       std::vector<std::unique_ptr<Communicator>> &made) {
  CommContext &context = shared->context;
  DFA_RT_TRY(NcclLibrary::load(context.env, shared->library));
  if (context.device)
    DFA_RT_TRY(context.device->allocate(sizeof(uint32_t), &token));
  else
    token = new uint32_t(0);

  const AxisGroup &mesh = groups.front();
  nccl::UniqueId id = {};
  DFA_RT_TRY(exchangeId(id, mesh));
  const NcclLibrary *library = shared->library.get();
  shared->choices = NcclChoices::of(context, *library);
  nccl::Comm whole = nullptr;
  DFA_RT_TRY(make(
      "ncclCommInitRank", mesh,
      [library, id, size = int(mesh.ranks.size()), index = mesh.index,
       config = shared->choices.config()](nccl::Comm *comm) mutable {
        return library->commInitRankConfig
                   ? library->commInitRankConfig(comm, size, id, index, &config)
                   : library->commInitRank(comm, size, id, index);
      },
      whole));
  for (const AxisGroup &group : groups) {
    nccl::Comm comm = whole;
    if (&group != &mesh)
      DFA_RT_TRY(make(
          "ncclCommSplit", group,
          [library, whole, color = group.color,
           index = group.index](nccl::Comm *split) {
            return library->commSplit(whole, color, index, split, nullptr);
          },
          comm));
    made.push_back(makeNcclCommunicator(shared, comm, group, token));
  }
  // Lost connections show up here; a peer killed on the same host does not.
  context.watchdog->setProbe([this] { return asyncError(); });
  return Status();
}

std::string NcclTransport::asyncError() {
  std::lock_guard<std::mutex> guard(shared->mutex);
  for (nccl::Comm comm : shared->comms) {
    nccl::Result error = 0;
    if (shared->library->commGetAsyncError(comm, &error) == 0 && error != 0 &&
        error != nccl::kInProgress)
      return ncclError(*shared->library, "asynchronous error", error).message();
  }
  return std::string();
}

void NcclTransport::abort() {
  {
    std::lock_guard<std::mutex> guard(shared->mutex);
    if (shared->aborted)
      return;
    shared->aborted = true; // no launch begins after this
    shared->aborting = true;
  }
  // ncclCommAbort ends the kernels at once but returns only when no graph
  // uses the communicator: it may never return, so it gets its own thread.
  // `shared` holds the device through `enterDevice`.
  std::thread([shared = shared] {
    // It also frees what a launch that another thread is in works on.
    std::unique_lock<std::mutex> launches(shared->launching, std::defer_lock);
    Clock::time_point deadline = Clock::now() + kLaunchPatience;
    while (!launches.try_lock() && Clock::now() < deadline)
      std::this_thread::sleep_for(Milliseconds(1));
    if (launches.owns_lock())
      launches.unlock();
    std::vector<nccl::Comm> comms;
    {
      std::lock_guard<std::mutex> guard(shared->mutex);
      comms.swap(shared->comms);
    }
    if (shared->context.enterDevice)
      (void)shared->context.enterDevice();
    // Splits before the communicator they were split from.
    for (size_t i = comms.size(); i-- > 0;)
      shared->library->commAbort(comms[i]);
    std::lock_guard<std::mutex> guard(shared->mutex);
    shared->aborting = false;
    shared->changed.notify_all();
  }).detach();
}

bool NcclTransport::idle() {
  std::unique_lock<std::mutex> lock(shared->mutex);
  return shared->changed.wait_for(lock, kAbortPatience,
                                  [this] { return !shared->aborting; });
}

Status NcclTransport::close() {
  Clock::time_point deadline = Clock::now() + kGraphPatience;
  while (shared->graphs->load() > 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(Milliseconds(1));
  int64_t graphs = shared->graphs->load();
  if (graphs > 0)
    return DFA_RT_ERROR(FailedPrecondition,
                        "close: %" PRId64
                        " recorded collectives still use the communicators; "
                        "destroy the recordings first",
                        graphs);
  // Peers that failed do not come to an orderly end, which would wait for them.
  if (!shared->context.watchdog->failure().ok())
    abort();
  std::vector<nccl::Comm> comms;
  {
    std::lock_guard<std::mutex> guard(shared->mutex);
    if (shared->aborted)
      return Status();
    shared->aborted = true; // no launch after this
    comms.swap(shared->comms);
  }
  const NcclLibrary *library = shared->library.get();
  for (size_t i = comms.size(); i-- > 0;) {
    std::shared_ptr<HelperOutcome> outcome;
    nccl::Comm comm = comms[i];
    bool returned = runOnHelper(
        shared->context, shared->library,
        [library, comm](nccl::Comm *) { return library->commDestroy(comm); },
        outcome);
    if (!returned)
      return DFA_RT_ERROR(CollectiveError,
                          "ncclCommDestroy did not return in time");
    if (outcome->result != 0)
      return ncclError(*library, "ncclCommDestroy", outcome->result);
  }
  return shared->memory.release(shared->context, shared->library);
}

} // namespace

std::unique_ptr<Transport> makeNcclTransport(const CommContext &context) {
  return std::make_unique<NcclTransport>(context);
}

} // namespace dfa::rt
