// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa_rt.h: programs and layouts.

#include "capi/Handles.h"
#include "layout/Dump.h"

#include <cstring>

using namespace dfa::rt;
using namespace dfa::rt::capi;
namespace layout = dfa::layout;

// === Programs ===============================================================

dfa_rt_status_t dfa_rt_program_parse(const char *text, size_t length,
                                     const char *source,
                                     dfa_rt_program_t **program) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(text, "text"));
    DFA_RT_TRY(required(program, "program"));
    Result<Program> parsed = Program::parse(std::string_view(text, length),
                                            source ? source : "program");
    if (!parsed.ok())
      return parsed.status();
    std::string printed = parsed->print();
    *program = new dfa_rt_program{std::move(*parsed), std::move(printed)};
    return Status();
  });
}

void dfa_rt_program_release(dfa_rt_program_t *program) { delete program; }

const char *dfa_rt_program_text(const dfa_rt_program_t *program) {
  return program ? program->text.c_str() : "";
}

int64_t dfa_rt_program_entry(const dfa_rt_program_t *program,
                             const char *name) {
  return program && name ? program->program.findEntry(name) : -1;
}

int64_t dfa_rt_program_class(const dfa_rt_program_t *program,
                             const char *name) {
  return program && name ? program->program.findClass(name) : -1;
}

int64_t dfa_rt_program_array(const dfa_rt_program_t *program,
                             int64_t class_index, const char *name) {
  if (!program || !name || class_index < 0 ||
      class_index >= static_cast<int64_t>(program->program.classes.size()))
    return -1;
  return program->program.findArray(class_index, name);
}

int64_t dfa_rt_program_hyper(const dfa_rt_program_t *program,
                             const char *name) {
  return program && name ? program->program.findHyper(name) : -1;
}

// === Layouts ================================================================

static Status convert(const layout::Status &status) {
  if (status.ok())
    return Status();
  return DFA_RT_ERROR(InvalidArgument, "%s", status.message().c_str());
}

static Status open(const dfa_rt_layout_t *layout) {
  DFA_RT_TRY(required(layout, "layout"));
  if (layout->plan)
    return DFA_RT_ERROR(FailedPrecondition, "the layout is planned already");
  return Status();
}

static Status planned(const dfa_rt_layout_t *layout) {
  DFA_RT_TRY(required(layout, "layout"));
  if (!layout->plan)
    return DFA_RT_ERROR(FailedPrecondition, "the layout is not planned yet");
  return Status();
}

dfa_rt_status_t dfa_rt_layout_create(const dfa_rt_layout_options_t *options,
                                     dfa_rt_layout_t **layout) {
  return guard([&]() -> Status {
    DFA_RT_TRY(required(options, "options"));
    DFA_RT_TRY(required(layout, "layout"));
    if (options->struct_size < sizeof(*options))
      return DFA_RT_ERROR(InvalidArgument,
                          "expects options of %zu bytes, but got %zu",
                          sizeof(*options), options->struct_size);
    std::unique_ptr<dfa_rt_layout> made = std::make_unique<dfa_rt_layout>();
    made->input.mesh = {options->replicate, options->shard};
    layout::PlanOptions &plan = made->input.options;
    if (options->bucket_bytes)
      plan.bucketBytes = options->bucket_bytes;
    if (options->fill_order < 0 || options->fill_order > 2)
      return DFA_RT_ERROR(InvalidArgument,
                          "expects a fill order from 0 to 2, but got %d",
                          options->fill_order);
    plan.fillOrder = static_cast<layout::FillOrder>(options->fill_order);
    if (options->explicit_count > 0) {
      DFA_RT_TRY(required(options->explicit_order, "explicit_order"));
      plan.explicitOrder.assign(options->explicit_order,
                                options->explicit_order +
                                    options->explicit_count);
    }
    *layout = made.release();
    return Status();
  });
}

void dfa_rt_layout_release(dfa_rt_layout_t *layout) { delete layout; }

dfa_rt_status_t dfa_rt_layout_add_class(dfa_rt_layout_t *layout,
                                        const char *name,
                                        const char *sync_format,
                                        int64_t block) {
  return guard([&]() -> Status {
    DFA_RT_TRY(open(layout));
    DFA_RT_TRY(required(name, "name"));
    DFA_RT_TRY(required(sync_format, "sync_format"));
    layout::Expected<layout::Format> format = layout::parseFormat(sync_format);
    if (!format.ok())
      return convert(format.status());
    layout::ClassSpec record;
    record.name = name;
    record.syncFormat = *format;
    record.block = block;
    layout->input.classes.push_back(std::move(record));
    return Status();
  });
}

dfa_rt_status_t dfa_rt_layout_add_array(dfa_rt_layout_t *layout,
                                        const char *name, const char *format) {
  return guard([&]() -> Status {
    DFA_RT_TRY(open(layout));
    DFA_RT_TRY(required(name, "name"));
    DFA_RT_TRY(required(format, "format"));
    if (layout->input.classes.empty())
      return DFA_RT_ERROR(FailedPrecondition,
                          "expects a class before its arrays");
    layout::Expected<layout::Format> parsed = layout::parseFormat(format);
    if (!parsed.ok())
      return convert(parsed.status());
    layout->input.classes.back().arrays.push_back({name, *parsed});
    return Status();
  });
}

dfa_rt_status_t dfa_rt_layout_add_param(dfa_rt_layout_t *layout,
                                        const dfa_rt_param_t *param) {
  return guard([&]() -> Status {
    DFA_RT_TRY(open(layout));
    DFA_RT_TRY(required(param, "param"));
    DFA_RT_TRY(required(param->name, "param.name"));
    if (param->struct_size < sizeof(*param))
      return DFA_RT_ERROR(InvalidArgument,
                          "expects a parameter of %zu bytes, but got %zu",
                          sizeof(*param), param->struct_size);
    if (param->dims < 0 || (param->dims > 0 && !param->shape))
      return DFA_RT_ERROR(InvalidArgument,
                          "parameter '%s' expects a shape of %d dimensions",
                          param->name, param->dims);
    layout::ParamSpec spec;
    spec.name = param->name;
    spec.shape.assign(param->shape, param->shape + param->dims);
    if (param->strides)
      spec.strides.assign(param->strides, param->strides + param->dims);
    spec.cls = param->class_index;
    spec.group = param->group;
    spec.flags = param->flags;
    spec.sharedWith = param->shared_with;
    spec.unit = param->unit;
    spec.epoch = param->epoch;
    layout->input.params.push_back(std::move(spec));
    return Status();
  });
}

dfa_rt_status_t dfa_rt_layout_plan(dfa_rt_layout_t *layout) {
  return guard([&]() -> Status {
    DFA_RT_TRY(open(layout));
    layout::Expected<layout::Plan> plan =
        layout::Plan::create(std::move(layout->input));
    if (!plan.ok())
      return convert(plan.status());
    layout->plan = std::make_unique<layout::Plan>(std::move(*plan));
    layout->text = layout::planText(*layout->plan);
    return Status();
  });
}

dfa_rt_status_t dfa_rt_layout_placement(const dfa_rt_layout_t *layout,
                                        int64_t param,
                                        dfa_rt_placement_t *placement) {
  return guard([&]() -> Status {
    DFA_RT_TRY(planned(layout));
    DFA_RT_TRY(required(placement, "placement"));
    const std::vector<layout::Placement> &places = layout->plan->placements();
    if (param < 0 || param >= static_cast<int64_t>(places.size()))
      return DFA_RT_ERROR(InvalidArgument, "no parameter %lld",
                          static_cast<long long>(param));
    const layout::Placement &place = places[param];
    *placement = {place.elements, place.storage, place.bucket, place.start,
                  place.segment};
    return Status();
  });
}

int64_t dfa_rt_layout_bucket_count(const dfa_rt_layout_t *layout) {
  if (!layout || !layout->plan)
    return 0;
  return static_cast<int64_t>(layout->plan->buckets().size());
}

dfa_rt_status_t dfa_rt_layout_bucket(const dfa_rt_layout_t *layout,
                                     int64_t bucket, dfa_rt_bucket_t *info) {
  return guard([&]() -> Status {
    DFA_RT_TRY(planned(layout));
    DFA_RT_TRY(required(info, "info"));
    if (bucket < 0 || bucket >= dfa_rt_layout_bucket_count(layout))
      return DFA_RT_ERROR(InvalidArgument, "no bucket %lld",
                          static_cast<long long>(bucket));
    const layout::Bucket &row = layout->plan->buckets()[bucket];
    *info = {row.cls,    row.unit,      row.used,    row.shardElements,
             row.padded, row.shardBase, row.fullBase};
    return Status();
  });
}

int64_t dfa_rt_layout_bucket_at(const dfa_rt_layout_t *layout,
                                int64_t position) {
  if (position < 0 || position >= dfa_rt_layout_bucket_count(layout))
    return -1;
  return layout->plan->bucketOrder()[position];
}

const char *dfa_rt_layout_text(const dfa_rt_layout_t *layout) {
  return layout ? layout->text.c_str() : "";
}
