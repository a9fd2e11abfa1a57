// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-c/dfa.h in Python: passes, steps, artifacts, diagnostics.

#include "Core.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

using namespace dfa::python;

namespace {

struct Diagnostic {
  std::string severity, message, file;
  int32_t line = 0, column = 0;
};

/// The caller's list of a call into the compiler.
class Diagnostics {
public:
  Diagnostics() : list(dfa_diagnostics_create()) {}
  Diagnostics(const Diagnostics &) = delete;
  ~Diagnostics() { dfa_diagnostics_release(list); }

  operator dfa_diagnostics_t *() const { return list; }
  std::vector<Diagnostic> get() const;
  /// Throws dfa.CompileError unless the call succeeded.
  void check(dfa_status_t status) const;

private:
  dfa_diagnostics_t *list;
};

/// A result of the compiler as bytes.
class Text {
public:
  Text() = default;
  Text(const Text &) = delete;
  ~Text() { dfa_text_release(text); }

  dfa_text_t **out() { return &text; }
  std::string str() const {
    return std::string(dfa_text_data(text), dfa_text_size(text));
  }

private:
  dfa_text_t *text = nullptr;
};

struct Step {
  std::shared_ptr<dfa_step_t> handle;
};

} // namespace

std::vector<Diagnostic> Diagnostics::get() const {
  static const char *const names[] = {"note", "warning", "error", "remark"};
  std::vector<Diagnostic> entries;
  for (size_t i = 0; i < dfa_diagnostics_count(list); ++i) {
    dfa_diagnostic_t entry = dfa_diagnostics_get(list, i);
    entries.push_back({names[entry.severity], entry.message, entry.file,
                       entry.line, entry.column});
  }
  return entries;
}

void Diagnostics::check(dfa_status_t status) const {
  if (status == DFA_OK)
    return;
  nb::gil_scoped_acquire lock;
  nb::object type = nb::module_::import_("dfa.errors").attr("CompileError");
  nb::object error = type(nb::cast(get()));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

static std::pair<std::string, std::vector<Diagnostic>>
runPasses(const std::string &text, const std::string &pipeline,
          const std::string &source) {
  Diagnostics diagnostics;
  Text result;
  diagnostics.check(dfa_run_passes(text.data(), text.size(), source.c_str(),
                                   pipeline.c_str(), result.out(),
                                   diagnostics));
  return {result.str(), diagnostics.get()};
}

static std::pair<std::string, std::string> findPtxas(const std::string &path) {
  Diagnostics diagnostics;
  Text found, release;
  diagnostics.check(
      dfa_find_ptxas(path.c_str(), found.out(), release.out(), diagnostics));
  return {found.str(), release.str()};
}

static Step parseStep(const std::string &text, const std::string &source) {
  Diagnostics diagnostics;
  dfa_step_t *step = nullptr;
  diagnostics.check(dfa_step_parse(text.data(), text.size(), source.c_str(),
                                   &step, diagnostics));
  return {std::shared_ptr<dfa_step_t>(step, dfa_step_release)};
}

static std::string getFacts(const Step &step) {
  Diagnostics diagnostics;
  Text result;
  diagnostics.check(
      dfa_step_facts(step.handle.get(), result.out(), diagnostics));
  return result.str();
}

static std::string getReport(const Step &step, double bandwidth, double link,
                             int64_t replicate, int64_t shard) {
  Diagnostics diagnostics;
  Text result;
  dfa_report_options_t options = {sizeof(options), bandwidth, link, replicate,
                                  shard};
  diagnostics.check(
      dfa_step_report(step.handle.get(), &options, result.out(), diagnostics));
  return result.str();
}

static dfa_compile_options_t
makeOptions(const std::string &target, const std::string &chip,
            const std::string &format, const std::string &ptxas,
            uint32_t vectorWidth, uint32_t block, uint32_t unroll,
            uint32_t maxRegisters) {
  return {sizeof(dfa_compile_options_t),
          target.c_str(),
          chip.c_str(),
          format.c_str(),
          ptxas.c_str(),
          vectorWidth,
          block,
          unroll,
          maxRegisters};
}

static std::string getKey(const Step &step, const std::string &target,
                          const std::string &chip, const std::string &format,
                          const std::string &ptxas, uint32_t vectorWidth,
                          uint32_t block, uint32_t unroll,
                          uint32_t maxRegisters) {
  Diagnostics diagnostics;
  Text result;
  dfa_compile_options_t options = makeOptions(
      target, chip, format, ptxas, vectorWidth, block, unroll, maxRegisters);
  diagnostics.check(
      dfa_step_key(step.handle.get(), &options, result.out(), diagnostics));
  return result.str();
}

static Artifact own(dfa_artifact_t *artifact) {
  return {std::shared_ptr<dfa_artifact_t>(artifact, dfa_artifact_release)};
}

static Artifact compileStep(const Step &step, const std::string &target,
                            const std::string &chip, const std::string &format,
                            const std::string &ptxas, uint32_t vectorWidth,
                            uint32_t block, uint32_t unroll,
                            uint32_t maxRegisters) {
  Diagnostics diagnostics;
  dfa_artifact_t *artifact = nullptr;
  dfa_compile_options_t options = makeOptions(
      target, chip, format, ptxas, vectorWidth, block, unroll, maxRegisters);
  diagnostics.check(
      dfa_step_compile(step.handle.get(), &options, &artifact, diagnostics));
  return own(artifact);
}

static Artifact compileText(const std::string &text, const std::string &target,
                            const std::string &source, const std::string &chip,
                            const std::string &format, const std::string &ptxas,
                            uint32_t vectorWidth, uint32_t block,
                            uint32_t unroll, uint32_t maxRegisters) {
  return compileStep(parseStep(text, source), target, chip, format, ptxas,
                     vectorWidth, block, unroll, maxRegisters);
}

static Artifact loadArtifact(const std::string &target,
                             const std::string &program, nb::bytes code) {
  Diagnostics diagnostics;
  dfa_artifact_t *artifact = nullptr;
  const char *bytes = code.c_str();
  size_t size = code.size();
  dfa_status_t status = unlocked([&] {
    return dfa_artifact_load(target.c_str(), program.data(), program.size(),
                             bytes, size, &artifact, diagnostics);
  });
  diagnostics.check(status);
  return own(artifact);
}

static nb::dict listKernels(const Artifact &artifact) {
  nb::dict kernels;
  dfa_artifact_t *handle = artifact.handle.get();
  for (size_t i = 0; i < dfa_artifact_kernel_count(handle); ++i) {
    const char *name = dfa_artifact_kernel_name(handle, i);
    kernels[name] = toAddress(dfa_artifact_kernel(handle, name));
  }
  return kernels;
}

static void addDiagnostic(nb::module_ &module) {
  nb::class_<Diagnostic>(module, "Diagnostic")
      .def(
          "__init__",
          [](Diagnostic *self, std::string severity, std::string message,
             std::string file, int32_t line, int32_t column) {
            new (self) Diagnostic{std::move(severity), std::move(message),
                                  std::move(file), line, column};
          },
          "severity"_a, "message"_a, "file"_a = "", "line"_a = 0,
          "column"_a = 0)
      .def_ro("severity", &Diagnostic::severity)
      .def_ro("message", &Diagnostic::message)
      .def_ro("file", &Diagnostic::file)
      .def_ro("line", &Diagnostic::line)
      .def_ro("column", &Diagnostic::column)
      .def("__repr__", [](const Diagnostic &self) {
        return nb::str("Diagnostic({!r}, {!r}, {!r}, {}, {})")
            .format(self.severity, self.message, self.file, self.line,
                    self.column);
      });
}

void dfa::python::addCompiler(nb::module_ &module) {
  addDiagnostic(module);
  module.def("passes", runPasses, "text"_a, "pipeline"_a,
             "source"_a = "<string>", Unlocked());
  module.def("find_ptxas", findPtxas, "ptxas"_a = "", Unlocked());
  nb::class_<Step>(module, "Step")
      .def(
          "__init__",
          [](Step *self, const std::string &text, const std::string &source) {
            new (self) Step(parseStep(text, source));
          },
          "text"_a, "source"_a = "<string>", Unlocked())
      .def_prop_ro("facts", getFacts)
      .def("key", getKey, "target"_a = "cpu", nb::kw_only(), "chip"_a = "",
           "format"_a = "", "ptxas"_a = "", "vector_width"_a = 0, "block"_a = 0,
           "unroll"_a = 0, "max_registers"_a = 0, Unlocked())
      .def("compile", compileStep, "target"_a = "cpu", nb::kw_only(),
           "chip"_a = "", "format"_a = "", "ptxas"_a = "", "vector_width"_a = 0,
           "block"_a = 0, "unroll"_a = 0, "max_registers"_a = 0, Unlocked())
      .def("report", getReport, nb::kw_only(), "bandwidth"_a = 0.0,
           "link"_a = 0.0, "replicate"_a = 0, "shard"_a = 0, Unlocked());
  nb::class_<Artifact>(module, "Artifact")
      .def_prop_ro("target",
                   [](const Artifact &self) {
                     return dfa_artifact_target(self.handle.get());
                   })
      .def_prop_ro("program_text",
                   [](const Artifact &self) {
                     return dfa_artifact_program(self.handle.get());
                   })
      .def_prop_ro("code",
                   [](const Artifact &self) {
                     size_t size = 0;
                     const void *code =
                         dfa_artifact_code(self.handle.get(), &size);
                     return nb::bytes(code, size);
                   })
      .def_prop_ro("kernels", listKernels)
      .def_static("load", loadArtifact, "target"_a, "program_text"_a, "code"_a);
  module.def("compile", compileText, "text"_a, "target"_a = "cpu",
             nb::kw_only(), "source"_a = "<string>", "chip"_a = "",
             "format"_a = "", "ptxas"_a = "", "vector_width"_a = 0,
             "block"_a = 0, "unroll"_a = 0, "max_registers"_a = 0, Unlocked());
}
