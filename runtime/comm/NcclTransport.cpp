// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL as a transport. Communicators are blocking and made on a helper thread,
// so that a peer that never comes is a timeout here and not a hang; axes are
// split off the communicator of the whole mesh. Nothing collective runs when a
// set is destroyed without close().

#include "comm/LocalReduce.h"
#include "comm/NcclHelper.h"
#include "comm/NcclLibrary.h"
#include "comm/Transport.h"

#include <cinttypes>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;
using Library = std::shared_ptr<const NcclLibrary>;

/// How long a launch may still take before an abort frees what it uses. One
/// that waits for a peer only ends by the abort.
constexpr Milliseconds kLaunchPatience(200);
/// How long a recording that is gone may still be counted: the driver tells of
/// its end from a thread of its own.
constexpr Milliseconds kGraphPatience(1000);
/// How long a set that goes waits for its abort.
constexpr Milliseconds kAbortPatience(10000);

Status ncclError(const NcclLibrary &library, const char *call,
                 nccl::Result result) {
  if (result == nccl::kInProgress)
    return DFA_RT_ERROR(Unsupported,
                        "%s: expected a blocking communicator, found one that "
                        "is not; unset NCCL_COMM_BLOCKING",
                        call);
  // The text of the last error says what NCCL_DEBUG=WARN would print.
  const char *last = library.getLastError(nullptr);
  return DFA_RT_ERROR(CollectiveError, "%s: %s%s%s", call,
                      library.getErrorString(result), last && *last ? ": " : "",
                      last ? last : "");
}

/// Counts the recordings that use a transport's communicators.
using GraphCount = std::atomic<int64_t>;

/// Lives as long as one recording; see Device::retainInCapture.
struct GraphHold {
  explicit GraphHold(std::shared_ptr<GraphCount> count)
      : count(std::move(count)) {
    this->count->fetch_add(1);
  }
  ~GraphHold() { count->fetch_sub(1); }
  std::shared_ptr<GraphCount> count;
};

/// Shared by communicators, transport and helper threads.
struct Shared {
  CommContext context;
  Library library;
  std::shared_ptr<GraphCount> graphs = std::make_shared<GraphCount>(0);
  /// One order of launches. A launch can block (NCCL connects lazily), so
  /// abort() waits for it only for a while.
  std::timed_mutex launching;
  std::mutex mutex; // guards the next four
  std::condition_variable changed;
  std::vector<nccl::Comm> comms;
  bool aborted = false;  // or closed
  bool aborting = false; // a thread of ours is inside ncclCommAbort
  // The last recording seen, and its id in the sequence log.
  uint64_t capture = 0;
  uint32_t recording = 0;
};

class NcclCommunicator : public Communicator {
public:
  NcclCommunicator(std::shared_ptr<Shared> shared, nccl::Comm comm,
                   AxisGroup members, void *token)
      : shared(std::move(shared)), comm(comm), members(std::move(members)),
        token(token) {}

  int rank() const override { return members.index; }
  int size() const override { return int(members.ranks.size()); }
  const char *name() const override { return "nccl"; }
  bool ordersByRank() const override { return false; }
  bool capturable() const override { return true; }
  // Channels of an algorithm are made by the first collective that uses it.
  bool connectsLazily() const override { return true; }

  void label(const char *collective, int64_t bucket) override {
    labelled = collective;
    labelledBucket = bucket;
  }

  Status reduceScatter(const void *send, void *recv, int64_t count,
                       DataType type, ReduceOp op, Stream stream) override {
    int ncclType = 0, ncclOp = 0;
    DFA_RT_TRY(checkReducible(type, op));
    DFA_RT_TRY(ncclReduction(type, op, ncclType, ncclOp));
    return launch(
        "reduce_scatter", count, type, stream, [&](const NcclLibrary &library) {
          return library.reduceScatter(send, recv, size_t(count), ncclType,
                                       ncclOp, comm, stream.handle);
        });
  }

  Status allReduce(const void *send, void *recv, int64_t count, DataType type,
                   ReduceOp op, Stream stream) override {
    int ncclType = 0, ncclOp = 0;
    DFA_RT_TRY(checkReducible(type, op));
    DFA_RT_TRY(ncclReduction(type, op, ncclType, ncclOp));
    return launch(
        "all_reduce", count, type, stream, [&](const NcclLibrary &library) {
          return library.allReduce(send, recv, size_t(count), ncclType, ncclOp,
                                   comm, stream.handle);
        });
  }

  Status allGather(const void *send, void *recv, int64_t count, DataType type,
                   Stream stream) override {
    int ncclType = 0;
    size_t factor = 1;
    ncclMovement(type, ncclType, factor);
    return launch("all_gather", count, type, stream,
                  [&](const NcclLibrary &library) {
                    return library.allGather(send, recv, size_t(count) * factor,
                                             ncclType, comm, stream.handle);
                  });
  }

  Status broadcast(const void *send, void *recv, int64_t count, DataType type,
                   int root, Stream stream) override {
    if (root < 0 || root >= size())
      return DFA_RT_ERROR(InvalidArgument,
                          "broadcast: expected a root below %d, found %d",
                          size(), root);
    int ncclType = 0;
    size_t factor = 1;
    ncclMovement(type, ncclType, factor);
    return launch(
        "broadcast", count, type, stream, [&](const NcclLibrary &library) {
          return library.broadcast(send, recv, size_t(count) * factor, ncclType,
                                   root, comm, stream.handle);
        });
  }

  Status barrier(Stream stream) override {
    return launch("barrier", 1, DataType::U32, stream,
                  [&](const NcclLibrary &library) {
                    return library.allReduce(token, token, 1, nccl::Uint32,
                                             nccl::Max, comm, stream.handle);
                  });
  }

private:
  template <typename Call>
  Status launch(const char *collective, int64_t count, DataType type,
                Stream stream, Call call);
  Status number(const char *collective, int64_t count, DataType type,
                Stream stream, uint64_t &number);

  std::shared_ptr<Shared> shared;
  nccl::Comm comm;
  AxisGroup members;
  void *token; // device memory of one word, for barriers
  const char *labelled = nullptr;
  int64_t labelledBucket = -1;
};

Status NcclCommunicator::number(const char *collective, int64_t count,
                                DataType type, Stream stream,
                                uint64_t &number) {
  const CommContext &context = shared->context;
  CollectiveInfo info;
  info.collective = labelled ? labelled : collective;
  info.axis = members.axis;
  info.bucket = labelled ? labelledBucket : -1;
  info.bytes = count * int64_t(sizeOf(type));
  info.ranks = members.ranks;
  uint64_t capture = 0;
  if (context.device)
    DFA_RT_TRY(context.device->captureId(stream, capture));
  if (capture == 0) {
    number = context.log->issue(std::move(info));
    return Status();
  }
  if (capture != shared->capture) {
    shared->capture = capture;
    shared->recording = context.log->beginRecording();
  }
  // NCCL hangs if a communicator is destroyed before its graphs are.
  DFA_RT_TRY(context.device->retainInCapture(
      stream, std::make_shared<GraphHold>(shared->graphs)));
  number = context.log->issueRecorded(shared->recording, std::move(info));
  return Status();
}

template <typename Call>
Status NcclCommunicator::launch(const char *collective, int64_t count,
                                DataType type, Stream stream, Call call) {
  if (count < 0)
    return DFA_RT_ERROR(InvalidArgument,
                        "%s: expected a count of at least 0, found %" PRId64,
                        collective, count);
  const CommContext &context = shared->context;
  DFA_RT_TRY(context.watchdog->failure());
  std::unique_lock<std::timed_mutex> lock(shared->launching);
  {
    std::lock_guard<std::mutex> guard(shared->mutex);
    if (shared->aborted)
      return DFA_RT_ERROR(FailedPrecondition,
                          "%s: the communicators are closed", collective);
  }
  uint64_t current = 0;
  DFA_RT_TRY(number(collective, count, type, stream, current));
  SequenceWords *words = context.log->memory();
  if (context.writeWord)
    DFA_RT_TRY(context.writeWord(&words->begun, current, stream));
  else
    context.log->begin(current);
  nccl::Result result = call(*shared->library);
  if (result != 0) {
    Status status = ncclError(*shared->library, collective, result);
    lock.unlock();
    return context.watchdog->explain(current, status.message(), false);
  }
  if (context.writeWord)
    return context.writeWord(&words->ended, current, stream);
  context.log->end(current);
  return Status();
}

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
  nccl::Comm whole = nullptr;
  DFA_RT_TRY(make(
      "ncclCommInitRank", mesh,
      [library, id, size = int(mesh.ranks.size()),
       index = mesh.index](nccl::Comm *comm) {
        return library->commInitRank(comm, size, id, index);
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
    made.push_back(
        std::make_unique<NcclCommunicator>(shared, comm, group, token));
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
    std::unique_lock<std::timed_mutex> launches(shared->launching,
                                                kLaunchPatience);
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
  return Status();
}

} // namespace

std::unique_ptr<Transport> makeNcclTransport(const CommContext &context) {
  return std::make_unique<NcclTransport>(context);
}

} // namespace dfa::rt
