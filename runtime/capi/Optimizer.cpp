// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa_rt.h: optimizers.

#include "capi/Handles.h"
#include "layout/Tables.h"

#include <algorithm>

using namespace dfa::rt;
using namespace dfa::rt::capi;

static Result<Tables> makeTables(const dfa_rt_optimizer_options_t &options,
                                 const Program &program) {
  dfa::layout::TableOptions tableOptions;
  // Chunks are cut for the kernel whose warps take the largest parts.
  int64_t tile = options.tile_elements;
  if (tile == 0)
    for (const ProgramKernel &kernel : program.kernels)
      if (kernel.kind == KernelKind::Element && kernel.accs == 0)
        tile = std::max(tile, DFA_RT_PART_LANES * kernel.vector);
  if (tile > 0)
    tableOptions.tileElements = tile;
  dfa::layout::Expected<dfa::layout::RankTables> rank =
      dfa::layout::buildRankTables(*options.layout->plan, options.rank,
                                   tableOptions);
  if (!rank.ok())
    return DFA_RT_ERROR(InvalidArgument, "%s", rank.message().c_str());
  return Tables::fromLayout(program, *options.layout->plan, *rank);
}

dfa_rt_status_t
dfa_rt_optimizer_create(const dfa_rt_optimizer_options_t *options,
                        dfa_rt_optimizer_t **optimizer) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(options, "options"));
    DFA_RT_TRY(required(optimizer, "optimizer"));
    if (options->struct_size < sizeof(*options))
      return DFA_RT_ERROR(InvalidArgument,
                          "expects options of %zu bytes, but got %zu",
                          sizeof(*options), options->struct_size);
    DFA_RT_TRY(required(options->device, "options.device"));
    DFA_RT_TRY(required(options->program, "options.program"));
    DFA_RT_TRY(required(options->layout, "options.layout"));
    if (!options->layout->plan)
      return DFA_RT_ERROR(FailedPrecondition, "the layout is not planned yet");
    std::unique_ptr<dfa_rt_optimizer> handle =
        std::make_unique<dfa_rt_optimizer>();
    OptimizerOptions made;
    made.device = options->device->device;
    made.program = options->program->program;
    Result<Tables> tables = makeTables(*options, made.program);
    if (!tables.ok())
      return tables.status();
    made.tables = std::move(*tables);
    made.kernels.image = options->image;
    made.kernels.imageBytes = options->image_bytes;
    if (dfa_rt_resolve_t resolve = options->resolve) {
      void *context = options->resolve_context;
      made.kernels.resolve = [=](const char *name) {
        return resolve(context, name);
      };
    }
    for (int64_t index = 0; index < options->communicator_count; ++index) {
      const dfa_rt_communicator_t *axis = options->communicators[index];
      made.axes.push_back(axis ? axis->communicator.get() : nullptr);
      if (axis)
        handle->communicators.push_back(axis->communicator);
    }
    made.replay = options->replay;
    Result<std::unique_ptr<Optimizer>> created =
        Optimizer::create(std::move(made));
    if (!created.ok())
      return created.status();
    handle->optimizer = std::move(*created);
    *optimizer = handle.release();
    return Status();
  });
}

void dfa_rt_optimizer_release(dfa_rt_optimizer_t *optimizer) {
  guard([&] {
    delete optimizer;
    return Status();
  });
}

// Runs `body` on the optimizer behind a handle, one call at a time.
template <typename Body>
static dfa_rt_status_t with(dfa_rt_optimizer_t *handle, Body body) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(handle, "optimizer"));
    std::lock_guard<std::mutex> lock(handle->mutex);
    return body(*handle->optimizer);
  });
}

// Stores a result, or passes its failure on.
template <typename T> static Status store(Result<T> result, T *target) {
  if (!result.ok())
    return result.status();
  DFA_RT_TRY(required(target, "result"));
  *target = *result;
  return Status();
}

dfa_rt_status_t dfa_rt_optimizer_bind_segment(dfa_rt_optimizer_t *optimizer,
                                              int64_t class_index,
                                              int64_t array, int64_t segment,
                                              void *address) {
  return with(optimizer, [&](Optimizer &it) {
    return it.bindSegment(class_index, array, segment, address);
  });
}

dfa_rt_status_t dfa_rt_optimizer_bind_segments(dfa_rt_optimizer_t *optimizer,
                                               int64_t class_index,
                                               int64_t array,
                                               void *const *addresses,
                                               int64_t count) {
  return with(optimizer, [&](Optimizer &it) -> Status {
    DFA_RT_TRY(required(addresses, "addresses"));
    for (int64_t segment = 0; segment < count; ++segment)
      if (addresses[segment])
        DFA_RT_TRY(
            it.bindSegment(class_index, array, segment, addresses[segment]));
    return Status();
  });
}

dfa_rt_status_t dfa_rt_optimizer_bind_bucket(dfa_rt_optimizer_t *optimizer,
                                             int64_t class_index, int64_t array,
                                             int64_t bucket, void *address) {
  return with(optimizer, [&](Optimizer &it) {
    return it.bindBucket(class_index, array, bucket, address);
  });
}

dfa_rt_status_t dfa_rt_optimizer_segment_address(dfa_rt_optimizer_t *optimizer,
                                                 int64_t class_index,
                                                 int64_t array, int64_t segment,
                                                 void **address) {
  return with(optimizer, [&](Optimizer &it) {
    return store(it.segmentAddress(class_index, array, segment), address);
  });
}

dfa_rt_status_t dfa_rt_optimizer_set_hyper(dfa_rt_optimizer_t *optimizer,
                                           int64_t group, int64_t column,
                                           double value) {
  return with(optimizer,
              [&](Optimizer &it) { return it.setHyper(group, column, value); });
}

dfa_rt_status_t dfa_rt_optimizer_get_hyper(dfa_rt_optimizer_t *optimizer,
                                           int64_t group, int64_t column,
                                           double *value) {
  return with(optimizer, [&](Optimizer &it) {
    return store(it.hyper(group, column), value);
  });
}

dfa_rt_status_t dfa_rt_optimizer_set_present(dfa_rt_optimizer_t *optimizer,
                                             int64_t class_index,
                                             int64_t segment, bool present) {
  return with(optimizer, [&](Optimizer &it) {
    return it.setPresent(class_index, segment, present);
  });
}

dfa_rt_status_t dfa_rt_optimizer_push(dfa_rt_optimizer_t *optimizer,
                                      dfa_rt_stream_t stream) {
  return with(optimizer,
              [&](Optimizer &it) { return it.push(Stream{stream}); });
}

dfa_rt_status_t dfa_rt_optimizer_prepare(dfa_rt_optimizer_t *optimizer,
                                         dfa_rt_stream_t stream) {
  return with(optimizer,
              [&](Optimizer &it) { return it.prepare(Stream{stream}); });
}

dfa_rt_status_t dfa_rt_optimizer_run(dfa_rt_optimizer_t *optimizer,
                                     int64_t entry, dfa_rt_stream_t stream) {
  return with(optimizer,
              [&](Optimizer &it) { return it.run(entry, Stream{stream}); });
}

dfa_rt_status_t dfa_rt_optimizer_run_bucket(dfa_rt_optimizer_t *optimizer,
                                            int64_t entry, int64_t class_index,
                                            int64_t bucket,
                                            dfa_rt_stream_t stream) {
  return with(optimizer, [&](Optimizer &it) {
    return it.runBucket(entry, class_index, bucket, Stream{stream});
  });
}

dfa_rt_status_t dfa_rt_optimizer_join(dfa_rt_optimizer_t *optimizer,
                                      dfa_rt_stream_t stream) {
  return with(optimizer,
              [&](Optimizer &it) { return it.join(Stream{stream}); });
}

dfa_rt_status_t dfa_rt_optimizer_profile(dfa_rt_optimizer_t *optimizer,
                                         int64_t entry, dfa_rt_stream_t stream,
                                         dfa_rt_profile_t report,
                                         void *context) {
  std::vector<CommandTime> times;
  dfa_rt_status_t status = with(optimizer, [&](Optimizer &it) -> Status {
    DFA_RT_TRY(required(reinterpret_cast<const void *>(report), "report"));
    return store(it.profile(entry, Stream{stream}), &times);
  });
  if (status != DFA_RT_OK)
    return status;
  // Outside of the lock: the callback may use the optimizer.
  for (const CommandTime &time : times) {
    dfa_rt_command_time_t row = {};
    row.command = time.command;
    row.kind = time.kind.c_str();
    row.name = time.name.c_str();
    row.class_index = time.classIndex;
    row.bucket = time.bucket;
    row.stream = static_cast<int32_t>(time.stream);
    row.launches = time.launches;
    row.milliseconds = time.milliseconds;
    report(context, &row);
  }
  return DFA_RT_OK;
}

dfa_rt_status_t dfa_rt_optimizer_set_control(dfa_rt_optimizer_t *optimizer,
                                             const char *field, double value,
                                             dfa_rt_stream_t stream) {
  return with(optimizer, [&](Optimizer &it) -> Status {
    DFA_RT_TRY(required(field, "field"));
    return it.setControl(field, value, Stream{stream});
  });
}

dfa_rt_status_t dfa_rt_optimizer_mirror_control(dfa_rt_optimizer_t *optimizer,
                                                const char *field,
                                                double *value) {
  return with(optimizer, [&](Optimizer &it) -> Status {
    DFA_RT_TRY(required(field, "field"));
    return store(it.controlMirror(field), value);
  });
}

dfa_rt_status_t dfa_rt_optimizer_fetch_control(dfa_rt_optimizer_t *optimizer,
                                               const char *field, double *value,
                                               dfa_rt_stream_t stream) {
  return with(optimizer, [&](Optimizer &it) -> Status {
    DFA_RT_TRY(required(field, "field"));
    return store(it.fetchControl(field, Stream{stream}), value);
  });
}

dfa_rt_status_t dfa_rt_optimizer_control_address(dfa_rt_optimizer_t *optimizer,
                                                 const char *field,
                                                 void **address) {
  return with(optimizer, [&](Optimizer &it) -> Status {
    DFA_RT_TRY(required(field, "field"));
    return store(it.controlAddress(field), address);
  });
}

dfa_rt_status_t dfa_rt_optimizer_hyper_address(dfa_rt_optimizer_t *optimizer,
                                               int64_t group, int64_t column,
                                               void **address) {
  return with(optimizer, [&](Optimizer &it) {
    return store(it.hyperAddress(group, column), address);
  });
}

dfa_rt_status_t dfa_rt_optimizer_step_address(dfa_rt_optimizer_t *optimizer,
                                              int64_t class_index,
                                              int64_t segment, void **address) {
  return with(optimizer, [&](Optimizer &it) {
    return store(it.stepAddress(class_index, segment), address);
  });
}

dfa_rt_status_t dfa_rt_optimizer_fetch_step(dfa_rt_optimizer_t *optimizer,
                                            int64_t class_index,
                                            int64_t segment, int64_t *step,
                                            dfa_rt_stream_t stream) {
  return with(optimizer, [&](Optimizer &it) {
    return store(it.fetchStep(class_index, segment, Stream{stream}), step);
  });
}

dfa_rt_status_t dfa_rt_optimizer_set_step(dfa_rt_optimizer_t *optimizer,
                                          int64_t class_index, int64_t segment,
                                          int64_t step,
                                          dfa_rt_stream_t stream) {
  return with(optimizer, [&](Optimizer &it) {
    return it.setStep(class_index, segment, step, Stream{stream});
  });
}
