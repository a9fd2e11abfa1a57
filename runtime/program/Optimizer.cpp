// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Life of an optimizer: creation, preparation, and runs in one of three ways:
// issued to the user's stream, recorded into the user's capture, or replayed
// from a recording of our own.

#include "program/OptimizerCore.h"

#include "base/Log.h"
#include "program/Control.h"

namespace dfa::rt {

// === Creation ===============================================================

Optimizer::Optimizer(std::shared_ptr<Core> core) : core(std::move(core)) {}

Result<std::unique_ptr<Optimizer>> Optimizer::create(OptimizerOptions options) {
  if (!options.device)
    return DFA_RT_ERROR(InvalidArgument, "expects a device");
  DFA_RT_TRY(options.tables.verify(options.program));
  if (options.axes.size() > options.program.axes.size())
    return DFA_RT_ERROR(InvalidArgument,
                        "expects at most %zu communicators, but got %zu",
                        options.program.axes.size(), options.axes.size());
  int64_t ranks = 1;
  for (size_t index = 0; index < options.axes.size(); ++index) {
    const Communicator *axis = options.axes[index];
    if (!axis)
      continue;
    const ProgramAxis &record = options.program.axes[index];
    if (record.transport != "any" && record.transport != axis->name())
      return DFA_RT_ERROR(
          InvalidArgument, "axis '%s' expects transport '%s', but got '%s'",
          record.name.c_str(), record.transport.c_str(), axis->name());
    ranks *= axis->size();
  }
  return std::unique_ptr<Optimizer>(
      new Optimizer(std::make_shared<Core>(std::move(options), ranks)));
}

Optimizer::~Optimizer() {
  if (!core || !core->worked)
    return;
  // The device may be gone already (an error that was reported before).
  Status status = core->finishBuckets();
  if (status.ok())
    status = core->device().synchronizeEvent(core->lastWork.get());
  if (!status.ok())
    DFA_RT_LOG(Warn, "while an optimizer is destroyed: %s",
               status.str().c_str());
}

const Program &Optimizer::program() const { return core->options.program; }
const Tables &Optimizer::tables() const { return core->state.tables; }
Device &Optimizer::device() const { return core->device(); }

// === Host-side values =======================================================

Status Optimizer::Core::checkArray(int64_t classIndex, int64_t array,
                                   int64_t segment) const {
  const std::vector<ProgramClass> &classes = options.program.classes;
  if (classIndex < 0 || classIndex >= static_cast<int64_t>(classes.size()))
    return DFA_RT_ERROR(InvalidArgument, "no class %lld",
                        static_cast<long long>(classIndex));
  const ProgramClass &record = classes[classIndex];
  if (array < 0 || array >= static_cast<int64_t>(record.arrays.size()))
    return DFA_RT_ERROR(InvalidArgument, "class '%s' has no array %lld",
                        record.name.c_str(), static_cast<long long>(array));
  if (segment < 0 ||
      segment >= state.tables.classes[classIndex].rows.segments.end)
    return DFA_RT_ERROR(InvalidArgument, "class '%s' has no segment %lld",
                        record.name.c_str(), static_cast<long long>(segment));
  return Status();
}

Status Optimizer::bindSegment(int64_t classIndex, int64_t array,
                              int64_t segment, void *address) {
  DFA_RT_TRY(core->checkArray(classIndex, array, segment));
  ArrayStorage &storage = core->state.classes[classIndex].arrays[array];
  if (core->state.prepared && storage.segmentAddress(segment) == address)
    return Status(); // nothing to upload in a steady step
  storage.bindSegment(segment, address);
  if (core->state.prepared)
    core->state.refreshRow(classIndex, segment);
  return Status();
}

Status Optimizer::bindBucket(int64_t classIndex, int64_t array, int64_t bucket,
                             void *address) {
  if (core->state.prepared)
    return DFA_RT_ERROR(FailedPrecondition, "buckets are bound before prepare");
  DFA_RT_TRY(core->checkArray(classIndex, array, 0));
  if (bucket < 0 ||
      bucket >= core->state.tables.classes[classIndex].buckets.size())
    return DFA_RT_ERROR(InvalidArgument, "no bucket %lld",
                        static_cast<long long>(bucket));
  core->state.classes[classIndex].arrays[array].bindBucket(bucket, address);
  return Status();
}

Result<void *> Optimizer::segmentAddress(int64_t classIndex, int64_t array,
                                         int64_t segment) const {
  DFA_RT_TRY(core->checkArray(classIndex, array, segment));
  return core->state.classes[classIndex].arrays[array].segmentAddress(segment);
}

static Status checkHyper(const Program &program, const Tables &tables,
                         int64_t group, int64_t column) {
  int64_t columns = static_cast<int64_t>(program.hyper.size());
  if (group >= 0 && group < tables.groups && column >= 0 && column < columns)
    return Status();
  return DFA_RT_ERROR(
      InvalidArgument,
      "expects a group below %lld and a hyper-parameter below "
      "%lld, but got %lld and %lld",
      static_cast<long long>(tables.groups), static_cast<long long>(columns),
      static_cast<long long>(group), static_cast<long long>(column));
}

Status Optimizer::setHyper(int64_t group, int64_t column, double value) {
  DFA_RT_TRY(checkHyper(program(), tables(), group, column));
  double &cell =
      core->state.hostGroups[group * program().hyper.size() + column];
  if (cell == value)
    return Status();
  cell = value;
  core->state.groupsDirty = true;
  return Status();
}

Result<double> Optimizer::hyper(int64_t group, int64_t column) const {
  DFA_RT_TRY(checkHyper(program(), tables(), group, column));
  return core->state.hostGroups[group * program().hyper.size() + column];
}

Status Optimizer::setPresent(int64_t classIndex, int64_t segment,
                             bool present) {
  DFA_RT_TRY(core->checkArray(classIndex, 0, segment));
  uint32_t &word = core->state.classes[classIndex].hostPresence[segment];
  if (word == static_cast<uint32_t>(present))
    return Status();
  word = present;
  core->state.presenceDirty = true;
  return Status();
}

Status Optimizer::push(Stream stream) {
  uint64_t capture = 0;
  DFA_RT_TRY(core->begin(stream, capture));
  if (capture)
    return core->uploadAside();
  DFA_RT_TRY(core->state.uploadSegments(stream));
  return core->state.uploadGroups(stream);
}

// === Preparation ============================================================

Status Optimizer::prepare(Stream stream) {
  Core &c = *core;
  Device &device = c.device();
  if (c.state.prepared)
    return DFA_RT_ERROR(FailedPrecondition, "prepare was called before");
  uint64_t capture = 0;
  DFA_RT_TRY(device.captureId(stream, capture));
  if (capture)
    return DFA_RT_ERROR(FailedPrecondition,
                        "prepare allocates and initialises, so it cannot be "
                        "captured: call it before the capture");
  DFA_RT_TRY(c.executor.bindShared(stream));
  DFA_RT_TRY(c.state.prepare(stream));
  Module module;
  DFA_RT_TRY(device.loadModule(c.options.kernels, module));
  c.module = OwnedModule(device, module);
  DFA_RT_TRY(c.executor.prepare(module));
  if (c.executor.distributed())
    DFA_RT_TRY(c.createStreams());
  // On a CPU the null stream, which nobody records, does.
  if (device.kind() == Device::Kind::Cuda)
    for (OwnedStream *stream : {&c.sideStream, &c.branchStream})
      DFA_RT_TRY(createStream(device, *stream));
  for (OwnedEvent *event : {&c.fork, &c.joined, &c.captureFork,
                            &c.captureJoined, &c.branchJoined, &c.lastWork})
    DFA_RT_TRY(createEvent(device, *event));
  // Also for recordings that the user makes later.
  if (c.executor.distributed() && c.executor.capturable())
    DFA_RT_TRY(c.executor.warmUp(c.commStream.get()));
  if (!c.options.replay)
    return Status();
  if (!c.executor.capturable()) {
    DFA_RT_LOG(Info, "a transport cannot be recorded: steps are issued");
    return Status();
  }
  DFA_RT_TRY(createStream(device, c.captureStream));
  c.graphs.resize(program().entries.size());
  for (size_t entry = 0; entry < c.graphs.size(); ++entry)
    DFA_RT_TRY(c.record(entry));
  return Status();
}

Status Optimizer::Core::record(int64_t entry) {
  if (options.program.entries[entry].commands.empty())
    return Status();
  Stream stream = captureStream.get();
  DFA_RT_TRY(device().beginCapture(stream));
  Frame frame;
  frame.entry = entry;
  frame.compute = stream;
  frame.uploads = false;
  Status status = device().captureId(stream, frame.capture);
  if (status.ok())
    status = walk(frame);
  Graph graph;
  Status ended = device().endCapture(stream, graph);
  if (ended.ok())
    graphs[entry] = OwnedGraph(device(), graph);
  return status.ok() ? ended : status;
}

// === Runs ===================================================================

// Orders this call after the last one, should that have used another stream.
// In a capture that order is the user's: an event from before it is refused.
Status Optimizer::Core::begin(Stream stream, uint64_t &capture) {
  if (!state.prepared)
    return DFA_RT_ERROR(FailedPrecondition,
                        "expects prepare to be called first");
  DFA_RT_TRY(device().captureId(stream, capture));
  if (!capture && worked && stream.handle != lastStream.handle)
    DFA_RT_TRY(device().wait(stream, lastWork.get()));
  return Status();
}

Status Optimizer::Core::replay(int64_t entry, Stream stream) {
  // What the recording left out because it must not be frozen in it.
  DFA_RT_TRY(state.uploadSegments(stream));
  DFA_RT_TRY(state.uploadGroups(stream));
  DFA_RT_TRY(joinBuckets(stream, /*capture=*/0));
  return device().launchGraph(graphs[entry].get(), stream);
}

static Status checkEntry(const Program &program, int64_t entry) {
  if (entry >= 0 && entry < static_cast<int64_t>(program.entries.size()))
    return Status();
  return DFA_RT_ERROR(InvalidArgument, "no entry %lld",
                      static_cast<long long>(entry));
}

// Ties our memory to a capture of the user's, once, and brings the tables up
// to date beside it: an upload inside would bring old values back at every
// replay, over those that were pushed since.
Status Optimizer::Core::enterCapture(const std::shared_ptr<Core> &self,
                                     Stream stream, uint64_t capture) {
  if (!executor.capturable())
    return DFA_RT_ERROR(Unsupported,
                        "a transport of the program cannot be captured");
  if (retainedBy != capture) {
    DFA_RT_TRY(device().retainInCapture(stream, self));
    retainedBy = capture;
  }
  return uploadAside();
}

// Uploads on a stream of our own and waits; rare, and never in a steady step.
Status Optimizer::Core::uploadAside() {
  if (!state.rowsDirty && !state.presenceDirty && !state.groupsDirty)
    return Status();
  if (worked) // work in flight may still read the old values
    DFA_RT_TRY(device().synchronizeEvent(lastWork.get()));
  DFA_RT_TRY(state.uploadSegments(sideStream.get()));
  DFA_RT_TRY(state.uploadGroups(sideStream.get()));
  return device().synchronize(sideStream.get());
}

Status Optimizer::run(int64_t entry, Stream stream) {
  Core &c = *core;
  DFA_RT_TRY(checkEntry(program(), entry));
  Frame frame;
  DFA_RT_TRY(c.begin(stream, frame.capture));
  frame.entry = entry;
  frame.compute = stream;
  if (frame.capture) {
    DFA_RT_TRY(c.enterCapture(core, stream, frame.capture));
    frame.uploads = false;
    return c.walk(frame);
  }
  bool replays = !c.graphs.empty() && c.graphs[entry];
  Status status = replays ? c.replay(entry, stream) : c.walk(frame);
  // Also after a failure: what was issued before it uses our memory.
  Status ended = c.ended(stream);
  return status.ok() ? ended : status;
}

// Everything is ordered before what comes next on this stream.
Status Optimizer::Core::ended(Stream stream) {
  executor.forgetEvents();
  worked = true;
  lastStream = stream;
  return device().record(lastWork.get(), stream);
}

Result<std::vector<CommandTime>> Optimizer::profile(int64_t entry,
                                                    Stream stream) {
  Core &c = *core;
  DFA_RT_TRY(checkEntry(program(), entry));
  Frame frame;
  DFA_RT_TRY(c.begin(stream, frame.capture));
  if (frame.capture)
    return DFA_RT_ERROR(FailedPrecondition,
                        "a profile reads times, which a capture has none of: "
                        "profile outside of the capture");
  Profile profile(program(), tables(), c.device(), entry);
  DFA_RT_TRY(profile.prepare());
  frame.entry = entry;
  frame.compute = stream;
  frame.profile = &profile;
  DFA_RT_TRY(c.walk(frame));
  DFA_RT_TRY(c.ended(stream));
  return profile.read();
}

Status Optimizer::runBucket(int64_t entry, int64_t classIndex, int64_t bucket,
                            Stream stream) {
  Core &c = *core;
  DFA_RT_TRY(checkEntry(program(), entry));
  DFA_RT_TRY(c.checkArray(classIndex, 0, 0));
  if (bucket < 0 || bucket >= tables().classes[classIndex].buckets.size())
    return DFA_RT_ERROR(InvalidArgument, "no bucket %lld",
                        static_cast<long long>(bucket));
  Frame frame;
  DFA_RT_TRY(c.begin(stream, frame.capture));
  if (frame.capture)
    DFA_RT_TRY(c.enterCapture(core, stream, frame.capture));
  frame.uploads = !frame.capture;
  frame.entry = entry;
  frame.compute = stream;
  frame.loopClass = classIndex;
  frame.bucket = bucket;
  DFA_RT_TRY(c.walkBucket(frame));
  if (frame.capture)
    return Status();
  c.worked = true;
  c.lastStream = stream;
  return c.device().record(c.lastWork.get(), stream);
}

Status Optimizer::join(Stream stream) {
  uint64_t capture = 0;
  DFA_RT_TRY(core->begin(stream, capture));
  return core->joinBuckets(stream, capture);
}

// === Control fields and step counts =========================================

Status Optimizer::setControl(std::string_view field, double value,
                             Stream stream) {
  Result<ControlField> place = findControlField(field);
  if (!place.ok())
    return place.status();
  State &state = core->state;
  DFA_RT_TRY(writeControlField(state.hostControl, place->offset, value));
  if (!state.prepared)
    return Status();
  uint64_t capture = 0;
  DFA_RT_TRY(core->begin(stream, capture));
  if (capture)
    return DFA_RT_ERROR(FailedPrecondition,
                        "control field '%.*s' cannot be written during a "
                        "capture: every replay would write it again",
                        int(field.size()), field.data());
  return state.write(reinterpret_cast<char *>(state.control) + place->offset,
                     reinterpret_cast<char *>(&state.hostControl) +
                         place->offset,
                     place->bytes, stream);
}

Result<double> Optimizer::controlMirror(std::string_view field) const {
  Result<ControlField> place = findControlField(field);
  if (!place.ok())
    return place.status();
  const State &state = core->state;
  return readControlField(state.prepared ? *state.mirror : state.hostControl,
                          place->offset);
}

Result<double> Optimizer::fetchControl(std::string_view field, Stream stream) {
  State &state = core->state;
  if (state.prepared) {
    uint64_t capture = 0;
    DFA_RT_TRY(core->begin(stream, capture));
    if (capture)
      return DFA_RT_ERROR(FailedPrecondition,
                          "a control field cannot be read during a capture");
    DFA_RT_TRY(state.readBack(stream));
    DFA_RT_TRY(core->device().synchronize(stream));
  }
  return controlMirror(field);
}

static Status requirePrepared(const State &state) {
  if (state.prepared)
    return Status();
  return DFA_RT_ERROR(FailedPrecondition,
                      "nothing is on the device before prepare");
}

Result<void *> Optimizer::controlAddress(std::string_view field) const {
  Result<ControlField> place = findControlField(field);
  if (!place.ok())
    return place.status();
  Status status = requirePrepared(core->state);
  if (!status.ok())
    return status;
  return static_cast<void *>(reinterpret_cast<char *>(core->state.control) +
                             place->offset);
}

Result<void *> Optimizer::hyperAddress(int64_t group, int64_t column) const {
  Status status = checkHyper(program(), tables(), group, column);
  if (status.ok())
    status = requirePrepared(core->state);
  if (!status.ok())
    return status;
  int64_t columns = static_cast<int64_t>(program().hyper.size());
  return static_cast<void *>(core->state.groups + group * columns + column);
}

Result<void *> Optimizer::stepAddress(int64_t classIndex,
                                      int64_t segment) const {
  Status status = core->checkArray(classIndex, 0, segment);
  if (status.ok())
    status = requirePrepared(core->state);
  if (!status.ok())
    return status;
  return static_cast<void *>(
      &core->state.classes[classIndex].state[segment].step);
}

Result<int64_t> Optimizer::fetchStep(int64_t classIndex, int64_t segment,
                                     Stream stream) {
  Core &c = *core;
  DFA_RT_TRY(c.checkArray(classIndex, 0, segment));
  uint64_t capture = 0;
  DFA_RT_TRY(c.begin(stream, capture));
  if (capture)
    return DFA_RT_ERROR(FailedPrecondition,
                        "a step count cannot be read during a capture");
  int64_t step = 0;
  DFA_RT_TRY(c.device().copy(&step,
                             &c.state.classes[classIndex].state[segment].step,
                             sizeof(step), stream));
  DFA_RT_TRY(c.device().synchronize(stream));
  return step;
}

Status Optimizer::setStep(int64_t classIndex, int64_t segment, int64_t step,
                          Stream stream) {
  Core &c = *core;
  DFA_RT_TRY(c.checkArray(classIndex, 0, segment));
  uint64_t capture = 0;
  DFA_RT_TRY(c.begin(stream, capture));
  if (capture)
    return DFA_RT_ERROR(FailedPrecondition,
                        "a step count cannot be written during a capture");
  DFA_RT_TRY(c.state.write(&c.state.classes[classIndex].state[segment].step,
                           &step, sizeof(step), stream));
  return c.device().synchronize(stream);
}

} // namespace dfa::rt
