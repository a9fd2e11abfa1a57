// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From options and parameters to classes and a plan; see the header.
#include "Step.h"

#include "models/Models.h"

#include <algorithm>
#include <unordered_set>

using dfa::layout::ClassSpec;
using dfa::layout::Expected;
using dfa::layout::Format;
using dfa::layout::ParamSpec;
using dfa::layout::Plan;
using dfa::layout::PlanInput;
using dfa::layout::Status;

namespace dfa {
namespace tools {

namespace {

/// Collects classes and parameters in the order of the list.
class StepBuilder {
public:
  StepBuilder(const Options &options, const std::string &file)
      : options(options), file(file) {}

  Expected<Step> run(const std::vector<ParamEntry> &entries);

private:
  Status add(const ParamEntry &entry);
  Status checkFormat(const ParamEntry &entry, Format format) const;
  int32_t classOf(Format format);
  Status error(const ParamEntry &entry, const std::string &message) const {
    return Status::error(locatedMessage(file, entry.where, message));
  }

  const Options &options;
  const std::string &file;
  Storage storage = Storage::Auto;
  std::vector<StepClass> classes;
  std::vector<ParamSpec> params;
  std::unordered_set<std::string> names;
  int64_t groups = 1;
};

} // namespace

static const char *storageName(Storage storage) {
  switch (storage) {
  case Storage::Auto:
    return "auto";
  case Storage::Fp32:
    return "fp32";
  case Storage::Master:
    return "master";
  case Storage::Remainder:
    return "remainder";
  }
  return "";
}

std::vector<ParamEntry> modelParams(const std::string &model) {
  std::vector<ModelParam> params;
  makeModel(model, params);
  std::vector<ParamEntry> entries;
  for (ModelParam &param : params) {
    ParamEntry entry;
    entry.name = std::move(param.name);
    entry.shape = std::move(param.shape);
    entries.push_back(std::move(entry));
  }
  return entries;
}

Status StepBuilder::checkFormat(const ParamEntry &entry, Format format) const {
  bool fits = true;
  if (storage == Storage::Fp32)
    fits = format == Format::F32;
  else if (storage == Storage::Remainder)
    fits = format == Format::BF16 || format == Format::F32;
  if (fits)
    return Status();
  std::string wanted = storage == Storage::Fp32 ? "f32" : "bf16 or f32";
  return error(entry, "parameter '" + entry.name + "': expected dtype " +
                          wanted + " with --storage=" + storageName(storage) +
                          ", but got " + layout::formatName(format));
}

int32_t StepBuilder::classOf(Format format) {
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i].param == format)
      return static_cast<int32_t>(i);
  StepClass cls;
  cls.param = format;
  cls.grad = options.gradFormat.value_or(format);
  // An f32 parameter is its own master, whatever the others need.
  if (format == Format::F32)
    cls.master = MasterKind::None;
  else if (storage == Storage::Remainder)
    cls.master = MasterKind::Remainder;
  else
    cls.master = MasterKind::F32;
  classes.push_back(cls);
  return static_cast<int32_t>(classes.size()) - 1;
}

Status StepBuilder::add(const ParamEntry &entry) {
  if (!names.insert(entry.name).second)
    return error(entry, "parameter '" + entry.name + "': given twice");
  Format implied = storage == Storage::Fp32 ? Format::F32 : Format::BF16;
  Format format = entry.dtype.value_or(implied);
  Status status = checkFormat(entry, format);
  if (!status.ok())
    return status;
  ParamSpec spec;
  spec.name = entry.name;
  spec.shape = entry.shape;
  spec.cls = classOf(format);
  spec.group = entry.group;
  if (entry.order)
    spec.order = *entry.order;
  else if (options.memoryFormat == MemoryFormat::ChannelsLast)
    spec.order =
        channelsLastOrder(entry.shape.size()).value_or(layout::Order());
  Expected<int64_t> count = layout::elementCount(spec.name, spec.shape);
  if (!count)
    return error(entry, count.message());
  groups = std::max<int64_t>(groups, entry.group + 1);
  params.push_back(std::move(spec));
  return Status();
}

/// The class as the layout library wants it.
static ClassSpec layoutClass(const StepClass &cls, const Rule &rule) {
  ClassSpec spec;
  spec.name = cls.name;
  spec.syncFormat = cls.grad;
  spec.arrays = {{"param", cls.param}, {"grad", cls.grad}};
  if (cls.master == MasterKind::F32)
    spec.arrays.push_back({"master", Format::F32});
  if (cls.master == MasterKind::Remainder)
    spec.arrays.push_back({"remainder", Format::Remainder});
  for (const std::string &state : rule.states)
    spec.arrays.push_back({state, Format::F32});
  return spec;
}

Expected<Step> StepBuilder::run(const std::vector<ParamEntry> &entries) {
  storage = options.storage;
  if (storage == Storage::Auto) {
    bool allF32 = std::all_of(
        entries.begin(), entries.end(), [](const ParamEntry &entry) {
          return entry.dtype.value_or(Format::F32) == Format::F32;
        });
    storage = allF32 ? Storage::Fp32 : Storage::Master;
  }
  for (const ParamEntry &entry : entries) {
    Status status = add(entry);
    if (!status.ok())
      return status;
  }
  // A model without parameters still has a step, that counts.
  if (classes.empty())
    classOf(storage == Storage::Fp32 ? Format::F32 : Format::BF16);

  PlanInput input;
  input.mesh = options.mesh;
  input.options.bucketBytes = options.bucketBytes;
  input.params = std::move(params);
  for (StepClass &cls : classes) {
    cls.name = classes.size() == 1
                   ? "w"
                   : std::string("w_") + layout::formatName(cls.param);
    input.classes.push_back(layoutClass(cls, options.rule));
  }
  Expected<Plan> plan = Plan::create(std::move(input));
  if (!plan)
    return Status::error(locatedMessage(file, Location(), plan.message()));
  return Step{options, std::move(classes), groups, std::move(*plan)};
}

Expected<Step> makeStep(const Options &options, const std::string &file,
                        const std::vector<ParamEntry> &entries) {
  return StepBuilder(options, file).run(entries);
}

} // namespace tools
} // namespace dfa
