// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one rank measures, by timers in its stream.
#include "execution/Rank.h"
#include "support/Seeded.h"

#include <algorithm>
#include <chrono>

using namespace dfa::run;

namespace {

/// Two timers on a device.
class Stopwatch {
public:
  explicit Stopwatch(dfa_rt_device_t *device) {
    made = checkRuntime(dfa_rt_timer_create(device, &first), "making a timer");
    if (made.ok())
      made = checkRuntime(dfa_rt_timer_create(device, &last), "making a timer");
  }
  ~Stopwatch() {
    dfa_rt_timer_release(first);
    dfa_rt_timer_release(last);
  }
  Stopwatch(const Stopwatch &) = delete;

  Status start(dfa_rt_stream_t stream) {
    return made.ok()
               ? checkRuntime(dfa_rt_timer_record(first, stream), "timing")
               : made;
  }
  Status end(dfa_rt_stream_t stream) {
    return checkRuntime(dfa_rt_timer_record(last, stream), "timing");
  }
  /// Waits for the end.
  Status read(double &milliseconds) {
    return checkRuntime(dfa_rt_timer_elapsed(first, last, &milliseconds),
                        "timing");
  }
  Status stop(dfa_rt_stream_t stream, double &milliseconds) {
    Status status = end(stream);
    return status.ok() ? read(milliseconds) : status;
  }

private:
  Status made;
  dfa_rt_timer_t *first = nullptr, *last = nullptr;
};

/// Two equal areas of device memory; none if they do not fit.
class CopyArea {
public:
  CopyArea(dfa_rt_device_t *device, size_t most, size_t least)
      : device(device) {
    for (bytes = most; bytes >= least; bytes /= 2) {
      if (dfa_rt_device_allocate(device, bytes, &source) == DFA_RT_OK &&
          dfa_rt_device_allocate(device, bytes, &target) == DFA_RT_OK)
        return;
      release();
    }
    bytes = 0;
  }
  ~CopyArea() { release(); }
  CopyArea(const CopyArea &) = delete;

  /// Writes seeded values to the source: some from the host, then copies.
  Status fill(dfa_rt_stream_t stream) {
    size_t part = std::min<size_t>(bytes, 16 << 20);
    std::vector<float> values(part / sizeof(float));
    SeededValues({0, 0, "copy", "", -1}, parameterDeviation)
        .fill(0, static_cast<int64_t>(values.size()), values.data());
    Status status = checkRuntime(
        dfa_rt_device_copy(device, source, values.data(), part, stream),
        "filling the copy's source");
    for (size_t done = part; done < bytes && status.ok(); done *= 2)
      status = checkRuntime(
          dfa_rt_device_copy(device, static_cast<char *>(source) + done, source,
                             std::min(done, bytes - done), stream),
          "filling the copy's source");
    // The values are gone when this returns.
    return status.ok() ? checkRuntime(dfa_rt_stream_synchronize(device, stream),
                                      "waiting for the device")
                       : status;
  }
  Status copy(dfa_rt_stream_t stream) {
    return checkRuntime(
        dfa_rt_device_copy(device, target, source, bytes, stream), "copying");
  }

  size_t bytes = 0;

private:
  void release() {
    for (void **memory : {&source, &target}) {
      if (*memory)
        dfa_rt_device_free(device, *memory, bytes);
      *memory = nullptr;
    }
  }

  dfa_rt_device_t *device;
  void *source = nullptr, *target = nullptr;
};

} // namespace

Status Rank::timeCopy(CopyTime &time) {
  CopyArea area(device, options.cuda ? size_t(1) << 30 : size_t(1) << 28,
                size_t(1) << 20);
  if (area.bytes == 0)
    return Status::failure("expects memory for a copy of 1 MiB, but the device "
                           "has none left");
  Status status = area.fill(stream);
  Stopwatch watch(device);
  double best = 0;
  // The first round touches the memory; the best of the others counts.
  for (int round = 0; round < 6 && status.ok(); ++round) {
    const int copies = options.cuda ? 4 : 1;
    double taken = 0;
    status = watch.start(stream);
    for (int i = 0; i < copies && status.ok(); ++i)
      status = area.copy(stream);
    if (status.ok())
      status = watch.stop(stream, taken);
    if (round > 0 && (best == 0 || taken / copies < best))
      best = taken / copies;
  }
  time.bytes = area.bytes;
  time.rate = 2 * static_cast<double>(area.bytes) / best * 1e-6;
  return status;
}

Status Rank::timeBatch(int64_t count, double &milliseconds,
                       std::vector<double> &hostMicroseconds) {
  using Clock = std::chrono::steady_clock;
  Status status = synchronize();
  Stopwatch watch(device);
  if (status.ok())
    status = watch.start(stream);
  for (int64_t i = 0; i < count && status.ok(); ++i) {
    Clock::time_point begin = Clock::now();
    status = step();
    // Later ones may wait for room in the queue.
    if (i < 10)
      hostMicroseconds.push_back(
          std::chrono::duration<double, std::micro>(Clock::now() - begin)
              .count());
  }
  if (status.ok())
    status = watch.stop(stream, milliseconds);
  milliseconds /= static_cast<double>(count);
  return status;
}

/// Adds a command's time to that of its kind and name.
static void addTime(void *context, const dfa_rt_command_time_t *time) {
  std::vector<CommandSum> &sums =
      *static_cast<std::vector<CommandSum> *>(context);
  std::vector<CommandSum>::iterator sum =
      std::find_if(sums.begin(), sums.end(), [&](const CommandSum &it) {
        return it.kind == time->kind && it.name == time->name;
      });
  if (sum == sums.end()) {
    sums.emplace_back();
    sum = sums.end() - 1;
    sum->kind = time->kind;
    sum->name = time->name;
  }
  sum->launches += sum->isKernel() ? time->launches : 1;
  sum->milliseconds += time->milliseconds;
}

/// Times each of the entries as a whole, as it runs in a step.
Status Rank::timeEntries(std::vector<CommandSum> &sums) {
  Status status = synchronize();
  const std::pair<const char *, int64_t> entries[] = {{"reduce", reduceEntry},
                                                      {"finish", finishEntry}};
  Stopwatch watches[] = {Stopwatch(device), Stopwatch(device)};
  // A step is ahead, so the host is too; all ranks are where they are in a run.
  for (int ahead = 0; ahead < 2 && status.ok(); ++ahead)
    status = step();
  for (size_t i = 0; i < 2 && status.ok(); ++i) {
    status = watches[i].start(stream);
    if (status.ok() && entries[i].second >= 0)
      status = checkRuntime(
          dfa_rt_optimizer_run(optimizer, entries[i].second, stream),
          "running the step");
    if (status.ok())
      status = watches[i].end(stream);
  }
  for (size_t i = 0; i < 2 && status.ok(); ++i) {
    if (entries[i].second < 0)
      continue;
    CommandSum sum;
    sum.kind = "entry";
    sum.name = entries[i].first;
    sum.launches = 1;
    status = watches[i].read(sum.milliseconds);
    sums.push_back(sum);
  }
  return status;
}

Status Rank::profile(std::vector<CommandSum> &sums) {
  sums.clear();
  Status timed = timeEntries(sums);
  if (!timed.ok())
    return timed;
  std::vector<int64_t> entries;
  for (int64_t entry : {reduceEntry, finishEntry})
    if (entry >= 0)
      entries.push_back(entry);
  // Copies keep a GPU busy until the host has issued everything, so that no
  // time contains a wait for the host; the step behind them warms the caches.
  CopyArea area(device, options.cuda ? size_t(1) << 26 : 0, 1);
  Status status = synchronize();
  for (size_t i = 0; i < entries.size(); ++i) {
    for (int copies = 0; copies < 64 && area.bytes && status.ok(); ++copies)
      status = area.copy(stream);
    if (status.ok())
      status = step();
    for (size_t j = 0; j < entries.size() && status.ok(); ++j)
      status =
          i == j
              ? checkRuntime(dfa_rt_optimizer_profile(optimizer, entries[j],
                                                      stream, addTime, &sums),
                             "profiling the step")
              : checkRuntime(
                    dfa_rt_optimizer_run(optimizer, entries[j], stream),
                    "running the step");
  }
  return status.ok() ? synchronize() : status;
}
