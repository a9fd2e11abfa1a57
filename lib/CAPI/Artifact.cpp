// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-c/dfa.h: machine code and program of a step.

#include "Handles.h"
#include "dfa/Pipelines/Frontend.h"
#include "dfa/Target/ProgramExport.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::capi;

static FailureOr<std::string> writeProgram(ModuleOp module,
                                           const Target &target) {
  ProgramExportOptions options;
  options.library = target.cuda ? "nccl" : "gloo";
  options.block = target.cudaOptions.block;
  options.vectorWidth = target.cudaOptions.vectorWidth;
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (failed(exportProgram(module, stream, options)))
    return failure();
  return text;
}

static void listKernels(dfa_artifact &artifact) {
  for (const auto &function : artifact.host->getFunctions())
    artifact.names.push_back(function.first().str());
}

dfa_status_t dfa_step_compile(dfa_step_t *step,
                              const dfa_compile_options_t *options,
                              dfa_artifact_t **artifact,
                              dfa_diagnostics_t *diagnostics) {
  DiagnosticCollector collector(step->context.get(), diagnostics);
  FailureOr<Target> target = readTarget(options, diagnostics);
  if (failed(target))
    return DFA_FAILED;
  OwningOpRef<ModuleOp> module = step->module->clone();
  PassManager pm(step->context.get());
  buildToKernelsPipeline(pm);
  if (failed(pm.run(*module)))
    return DFA_FAILED;
  FailureOr<std::string> program = writeProgram(*module, *target);
  if (failed(program))
    return DFA_FAILED;
  auto made = std::make_unique<dfa_artifact>();
  made->cuda = target->cuda;
  made->program = std::move(*program);
  if (target->cuda) {
    FailureOr<CudaImage> image = compileToCuda(*module, target->cudaOptions);
    if (failed(image))
      return DFA_FAILED;
    made->code = std::move(image->bytes);
  } else {
    FailureOr<std::unique_ptr<HostKernels>> host =
        compileForHost(*module, target->hostOptions);
    if (failed(host))
      return DFA_FAILED;
    made->host = std::move(*host);
    listKernels(*made);
  }
  *artifact = made.release();
  return DFA_OK;
}

/// Names of the kernels that a program lists.
static std::vector<std::string> readKernelNames(StringRef program) {
  std::vector<std::string> names;
  while (!program.empty()) {
    auto [line, rest] = program.split('\n');
    program = rest;
    if (line.consume_front("kernel "))
      names.push_back(line.ltrim().split(' ').first.str());
  }
  return names;
}

dfa_status_t dfa_artifact_load(const char *target, const char *program,
                               size_t program_length, const void *code,
                               size_t code_size, dfa_artifact_t **artifact,
                               dfa_diagnostics_t *diagnostics) {
  StringRef word(target);
  if (word != "cpu" && word != "cuda")
    return fail(diagnostics,
                "expects target 'cpu' or 'cuda', but got '" + word + "'");
  auto made = std::make_unique<dfa_artifact>();
  made->cuda = word == "cuda";
  made->program.assign(program, program_length);
  StringRef bytes(static_cast<const char *>(code), code_size);
  if (made->cuda) {
    made->code = bytes.str();
  } else {
    llvm::Expected<std::unique_ptr<HostKernels>> host =
        loadHostKernels(bytes, readKernelNames(made->program));
    if (!host)
      return fail(diagnostics, "could not load an object file: " +
                                   llvm::toString(host.takeError()));
    made->host = std::move(*host);
    listKernels(*made);
  }
  *artifact = made.release();
  return DFA_OK;
}

void dfa_artifact_release(dfa_artifact_t *artifact) { delete artifact; }

const char *dfa_artifact_target(const dfa_artifact_t *artifact) {
  return artifact->cuda ? "cuda" : "cpu";
}

const char *dfa_artifact_program(const dfa_artifact_t *artifact) {
  return artifact->program.c_str();
}

const void *dfa_artifact_code(const dfa_artifact_t *artifact, size_t *size) {
  StringRef code =
      artifact->host ? artifact->host->getObject() : StringRef(artifact->code);
  if (size)
    *size = code.size();
  return code.data();
}

size_t dfa_artifact_kernel_count(const dfa_artifact_t *artifact) {
  return artifact->names.size();
}

const char *dfa_artifact_kernel_name(const dfa_artifact_t *artifact,
                                     size_t index) {
  return index < artifact->names.size() ? artifact->names[index].c_str() : "";
}

void *dfa_artifact_kernel(const dfa_artifact_t *artifact, const char *name) {
  return artifact->host ? artifact->host->lookup(name) : nullptr;
}
