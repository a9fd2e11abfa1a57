// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches: numbered, refused after an abort, and noted in recordings.

#include "comm/NcclCommunicator.h"

#include "comm/LocalReduce.h"

#include <cinttypes>
#include <utility>

namespace dfa::rt {

namespace {

/// Lives as long as one recording; see Device::retainInCapture.
struct GraphHold {
  explicit GraphHold(std::shared_ptr<NcclGraphCount> count)
      : count(std::move(count)) {
    this->count->fetch_add(1);
  }
  ~GraphHold() { count->fetch_sub(1); }
  std::shared_ptr<NcclGraphCount> count;
};

class NcclCommunicator : public Communicator {
public:
  NcclCommunicator(std::shared_ptr<NcclShared> shared, nccl::Comm comm,
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

  Status allocateShared(size_t bytes, void **memory) override {
    *memory = nullptr;
    if (!shared->choices.engines || bytes == 0)
      return Status();
    return shared->memory.allocate(shared->context, shared->library, comm,
                                   bytes, memory);
  }

  Status settle(Stream stream) override;

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

  std::shared_ptr<NcclShared> shared;
  nccl::Comm comm;
  AxisGroup members;
  void *token; // device memory of one word, for barriers
  const char *labelled = nullptr;
  int64_t labelledBucket = -1;
};

} // namespace

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
    shared->unsettled = 0;
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
  std::unique_lock<std::mutex> lock(shared->launching);
  {
    std::lock_guard<std::mutex> guard(shared->mutex);
    if (shared->aborted)
      return DFA_RT_ERROR(FailedPrecondition,
                          "%s: the communicators are closed", collective);
  }
  uint64_t current = 0;
  DFA_RT_TRY(number(collective, count, type, stream, current));
  SequenceWords *words = context.log->memory();
  bool recorded = SequenceLog::isRecorded(current);
  if (context.writeWords && recorded && shared->unsettled)
    DFA_RT_TRY(context.writeWords(words, current, shared->unsettled, stream));
  else if (context.writeWord)
    DFA_RT_TRY(context.writeWord(&words->begun, current, stream));
  else
    context.log->begin(current);
  nccl::Result result = call(*shared->library);
  if (result != 0) {
    Status status = ncclError(*shared->library, collective, result);
    lock.unlock();
    return context.watchdog->explain(current, status.message(), false);
  }
  // In a recording a node costs the host microseconds at every replay: the end
  // of a collective is written with the beginning of the next one.
  if (context.writeWords && recorded) {
    shared->unsettled = current;
    return Status();
  }
  if (context.writeWord)
    return context.writeWord(&words->ended, current, stream);
  context.log->end(current);
  return Status();
}

Status NcclCommunicator::settle(Stream stream) {
  const CommContext &context = shared->context;
  std::lock_guard<std::mutex> lock(shared->launching);
  uint64_t capture = 0;
  if (context.device)
    DFA_RT_TRY(context.device->captureId(stream, capture));
  if (!shared->unsettled || capture == 0 || capture != shared->capture)
    return Status();
  uint64_t last = std::exchange(shared->unsettled, 0);
  return context.writeWords(context.log->memory(), last, last, stream);
}

std::unique_ptr<Communicator>
makeNcclCommunicator(std::shared_ptr<NcclShared> shared, nccl::Comm comm,
                     AxisGroup members, void *token) {
  return std::make_unique<NcclCommunicator>(std::move(shared), comm,
                                            std::move(members), token);
}

} // namespace dfa::rt
