// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts and programs.

#include "Core.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <sstream>

using namespace dfa::python;

using Integers = std::vector<int64_t>;

static Layout createLayout(int64_t replicate, int64_t shard,
                           int64_t bucketBytes,
                           const std::variant<std::string, Integers> &order) {
  dfa_rt_layout_options_t options = {};
  options.struct_size = sizeof(options);
  options.replicate = replicate;
  options.shard = shard;
  options.bucket_bytes = bucketBytes;
  if (const std::string *word = std::get_if<std::string>(&order)) {
    if (*word != "reverse" && *word != "forward")
      throw nb::value_error(
          ("expects fill_order 'reverse', 'forward' or a list, but got '" +
           *word + "'")
              .c_str());
    options.fill_order = *word == "forward" ? 1 : 0;
  } else {
    const Integers &list = std::get<Integers>(order);
    options.fill_order = 2;
    options.explicit_order = list.data();
    options.explicit_count = static_cast<int64_t>(list.size());
  }
  Layout layout;
  dfa_rt_layout_t *handle = nullptr;
  check(dfa_rt_layout_create(&options, &handle));
  layout.handle.reset(handle, dfa_rt_layout_release);
  return layout;
}

static int64_t addParam(Layout &layout, const std::string &name,
                        const Integers &shape,
                        const std::optional<Integers> &strides,
                        int32_t classIndex, int32_t group, bool frozen,
                        int64_t sharedWith, int32_t unit, int32_t epoch) {
  if (strides && strides->size() != shape.size())
    throw nb::value_error("expects as many strides as dims");
  dfa_rt_param_t param = {};
  param.struct_size = sizeof(param);
  param.name = name.c_str();
  param.dims = static_cast<int32_t>(shape.size());
  param.shape = shape.data();
  param.strides = strides ? strides->data() : nullptr;
  param.class_index = classIndex;
  param.group = group;
  param.flags = frozen ? 1 : 0;
  param.shared_with = sharedWith;
  param.unit = unit;
  param.epoch = epoch;
  check(dfa_rt_layout_add_param(layout.handle.get(), &param));
  return layout.params++;
}

static dfa_rt_placement_t getPlacement(const Layout &layout, int64_t param) {
  dfa_rt_placement_t placement = {};
  check(dfa_rt_layout_placement(layout.handle.get(), param, &placement));
  return placement;
}

static dfa_rt_bucket_t getBucket(const Layout &layout, int64_t index) {
  dfa_rt_bucket_t bucket = {};
  check(dfa_rt_layout_bucket(layout.handle.get(), index, &bucket));
  return bucket;
}

static void addRows(nb::module_ &module) {
  nb::class_<dfa_rt_placement_t>(module, "Placement")
      .def_ro("elements", &dfa_rt_placement_t::elements)
      .def_ro("storage", &dfa_rt_placement_t::storage)
      .def_ro("bucket", &dfa_rt_placement_t::bucket)
      .def_ro("start", &dfa_rt_placement_t::start)
      .def_ro("segment", &dfa_rt_placement_t::segment);
  nb::class_<dfa_rt_bucket_t>(module, "Bucket")
      .def_ro("class_index", &dfa_rt_bucket_t::class_index)
      .def_ro("unit", &dfa_rt_bucket_t::unit)
      .def_ro("used", &dfa_rt_bucket_t::used)
      .def_ro("shard_elements", &dfa_rt_bucket_t::shard_elements)
      .def_ro("full_elements", &dfa_rt_bucket_t::full_elements)
      .def_ro("shard_base", &dfa_rt_bucket_t::shard_base)
      .def_ro("full_base", &dfa_rt_bucket_t::full_base);
}

static void addLayout(nb::module_ &module) {
  nb::class_<Layout>(module, "Layout")
      .def(
          "__init__",
          [](Layout *self, int64_t replicate, int64_t shard,
             int64_t bucketBytes,
             const std::variant<std::string, Integers> &order) {
            new (self)
                Layout(createLayout(replicate, shard, bucketBytes, order));
          },
          nb::kw_only(), "replicate"_a = 1, "shard"_a = 1, "bucket_bytes"_a = 0,
          "fill_order"_a = "reverse")
      .def(
          "add_class",
          [](Layout &self, const std::string &name, const std::string &format,
             int64_t block) {
            check(dfa_rt_layout_add_class(self.handle.get(), name.c_str(),
                                          format.c_str(), block));
            return self.classes++;
          },
          "name"_a, "sync_format"_a, "block"_a = 1)
      .def(
          "add_array",
          [](Layout &self, const std::string &name, const std::string &format) {
            check(dfa_rt_layout_add_array(self.handle.get(), name.c_str(),
                                          format.c_str()));
          },
          "name"_a, "format"_a)
      .def("add_param", addParam, "name"_a, "shape"_a, nb::kw_only(),
           "strides"_a = nb::none(), "class_index"_a = 0, "group"_a = 0,
           "frozen"_a = false, "shared_with"_a = -1, "unit"_a = -1,
           "epoch"_a = 0)
      .def(
          "plan",
          [](Layout &self) { check(dfa_rt_layout_plan(self.handle.get())); },
          Unlocked())
      .def("placement", getPlacement, "param"_a)
      .def("placements",
           [](const Layout &self) {
             std::vector<dfa_rt_placement_t> rows;
             for (int64_t i = 0; i < self.params; ++i)
               rows.push_back(getPlacement(self, i));
             return rows;
           })
      .def("bucket", getBucket, "index"_a)
      .def("buckets",
           [](const Layout &self) {
             std::vector<dfa_rt_bucket_t> rows;
             int64_t count = dfa_rt_layout_bucket_count(self.handle.get());
             for (int64_t i = 0; i < count; ++i)
               rows.push_back(getBucket(self, i));
             return rows;
           })
      .def(
          "bucket_at",
          [](const Layout &self, int64_t position) {
            return dfa_rt_layout_bucket_at(self.handle.get(), position);
          },
          "position"_a)
      .def_prop_ro("text", [](const Layout &self) {
        return dfa_rt_layout_text(self.handle.get());
      });
}

static Program parseProgram(const std::string &text,
                            const std::string &source) {
  dfa_rt_program_t *handle = nullptr;
  check(
      dfa_rt_program_parse(text.data(), text.size(), source.c_str(), &handle));
  Program program;
  program.handle.reset(handle, dfa_rt_program_release);
  // Records "axis NAME TRANSPORT", in their order.
  std::istringstream lines(dfa_rt_program_text(handle));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string record, name;
    if (words >> record >> name && record == "axis")
      program.axes.push_back(name);
  }
  return program;
}

static void addProgram(nb::module_ &module) {
  nb::class_<Program>(module, "Program")
      .def(
          "__init__",
          [](Program *self, const std::string &text,
             const std::string &source) {
            new (self) Program(parseProgram(text, source));
          },
          "text"_a, "source"_a = "program")
      .def_prop_ro("text",
                   [](const Program &self) {
                     return dfa_rt_program_text(self.handle.get());
                   })
      .def_ro("axes", &Program::axes)
      .def(
          "entry",
          [](const Program &self, const std::string &name) {
            return dfa_rt_program_entry(self.handle.get(), name.c_str());
          },
          "name"_a)
      .def(
          "class_index",
          [](const Program &self, const std::string &name) {
            return dfa_rt_program_class(self.handle.get(), name.c_str());
          },
          "name"_a)
      .def(
          "array",
          [](const Program &self, int64_t cls, const std::string &name) {
            return dfa_rt_program_array(self.handle.get(), cls, name.c_str());
          },
          "class_index"_a, "name"_a)
      .def(
          "hyper",
          [](const Program &self, const std::string &name) {
            return dfa_rt_program_hyper(self.handle.get(), name.c_str());
          },
          "name"_a);
}

void dfa::python::addLayouts(nb::module_ &module) {
  addRows(module);
  addLayout(module);
  addProgram(module);
}
