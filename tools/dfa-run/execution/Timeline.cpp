// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A walk through the commands as the runtime's executor does it, with nominal
// costs in place of work.
#include "execution/Timeline.h"

#include <algorithm>
#include <array>
#include <map>

using namespace dfa::run;
namespace layout = dfa::layout;
namespace rt = dfa::rt;

// Costs of the largest bucket; others in proportion. A command also has a
// start-up.
constexpr double collectiveCost = 3, kernelCost = 2, normCost = 0.6;
constexpr double startUp = 0.25;

namespace {

class Scheduler {
public:
  Scheduler(const rt::Program &program, const layout::Plan &plan)
      : program(program), plan(plan) {
    for (const layout::Bucket &bucket : plan.buckets())
      largest = std::max(largest, bucket.padded);
  }

  EntrySpans run(const rt::ProgramEntry &entry, double begin);

private:
  struct Command {
    rt::StreamChoice stream = rt::StreamChoice::Compute;
    double cost = 0;
    std::string what;
    bool collective = false;
  };

  double sizeOf(int64_t bucket) const {
    double sum = 0;
    for (size_t i = 0; i < plan.buckets().size(); ++i)
      if (bucket < 0 || bucket == static_cast<int64_t>(i))
        sum += static_cast<double>(plan.buckets()[i].padded);
    return sum / static_cast<double>(largest);
  }
  std::vector<int64_t> bucketsOf(int64_t cls) const;
  bool describe(const rt::Command &command, int64_t bucket,
                Command &result) const;
  void issue(const rt::Command &command, int64_t bucket);

  const rt::Program &program;
  const layout::Plan &plan;
  int64_t largest = 1;
  std::array<double, 3> reached{};
  std::map<std::pair<int64_t, int64_t>, double> events;
  EntrySpans result;
};

} // namespace

/// The class of the program is found in the plan by its name.
std::vector<int64_t> Scheduler::bucketsOf(int64_t cls) const {
  std::vector<int64_t> found;
  for (int64_t bucket : plan.bucketOrder())
    if (plan.classes()[plan.buckets()[bucket].cls].name ==
        program.classes[cls].name)
      found.push_back(bucket);
  return found;
}

/// What a command does and where; false for one that takes no time.
bool Scheduler::describe(const rt::Command &command, int64_t bucket,
                         Command &result) const {
  using rt::Field;
  auto on = [&](Field field) {
    result.stream = rt::StreamChoice(command.get(field));
  };
  switch (command.kind) {
  case rt::CommandKind::launch_elements: {
    const rt::ProgramKernel &kernel =
        program.kernels[command.get(Field::launch_elements_kernel)];
    on(Field::launch_elements_stream);
    result.what = kernel.name;
    result.cost = (kernel.accs > 0 ? normCost : kernelCost) * sizeOf(bucket);
    return true;
  }
  case rt::CommandKind::launch_control:
    on(Field::launch_control_stream);
    result.what =
        program.kernels[command.get(Field::launch_control_kernel)].name;
    return true;
  case rt::CommandKind::launch_segments:
    on(Field::launch_segments_stream);
    result.what =
        program.kernels[command.get(Field::launch_segments_kernel)].name;
    return true;
  case rt::CommandKind::collective:
    on(Field::collective_stream);
    result.what = rt::enumWords(
        int(Field::collective_kind))[command.get(Field::collective_kind)];
    result.collective = true;
    // Sums and presence words are small.
    if (command.get(Field::collective_source) >= 0)
      result.cost = collectiveCost * sizeOf(bucket);
    return true;
  case rt::CommandKind::read_back:
    on(Field::read_back_stream);
    result.what = "read_back";
    return true;
  case rt::CommandKind::memset:
    on(Field::memset_stream);
    result.what = "memset";
    return true;
  default:
    return false;
  }
}

void Scheduler::issue(const rt::Command &command, int64_t bucket) {
  using rt::Field;
  if (command.kind == rt::CommandKind::record) {
    events[{command.get(Field::record_event), bucket}] =
        reached[command.get(Field::record_stream)];
    return;
  }
  if (command.kind == rt::CommandKind::wait) {
    double &time = reached[command.get(Field::wait_stream)];
    // Outside of a loop it waits for the event of every bucket.
    for (const auto &[key, when] : events)
      if (key.first == command.get(Field::wait_event) &&
          (bucket < 0 || key.second < 0 || key.second == bucket))
        time = std::max(time, when);
    return;
  }
  Command what;
  if (!describe(command, bucket, what))
    return;
  Span span;
  span.stream = int(what.stream);
  span.begin = reached[span.stream];
  span.end = reached[span.stream] = span.begin + startUp + what.cost;
  span.what = what.what;
  span.bucket = bucket;
  span.collective = what.collective;
  result.spans.push_back(span);
}

EntrySpans Scheduler::run(const rt::ProgramEntry &entry, double begin) {
  result = EntrySpans();
  result.entry = entry.name;
  result.begin = begin;
  reached.fill(begin);
  events.clear();
  for (size_t index = 0; index < entry.commands.size(); ++index) {
    if (entry.commands[index].kind != rt::CommandKind::for_each_bucket) {
      issue(entry.commands[index], -1);
      continue;
    }
    size_t end = index + 1;
    while (entry.commands[end].kind != rt::CommandKind::end_bucket)
      ++end;
    for (int64_t bucket :
         bucketsOf(entry.commands[index].get(rt::Field::for_each_bucket_class)))
      for (size_t body = index + 1; body < end; ++body)
        issue(entry.commands[body], bucket);
    index = end;
  }
  result.end = *std::max_element(reached.begin(), reached.end());
  return result;
}

std::vector<EntrySpans> dfa::run::schedule(const rt::Program &program,
                                           const layout::Plan &plan) {
  std::vector<EntrySpans> entries;
  double now = 0;
  for (const char *name : {"fill", "reduce", "finish"}) {
    int64_t entry = program.findEntry(name);
    if (entry < 0)
      continue;
    entries.push_back(
        Scheduler(program, plan).run(program.entries[entry], now));
    now = entries.back().end;
  }
  return entries;
}
