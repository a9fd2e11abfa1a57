/* Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C interface of the compiler: pass pipelines on text, steps to machine
 * code and programs. Running what comes out is in dfa-rt/dfa_rt.h. Handles are
 * opaque and no type of MLIR appears. Compiles as C11 and as C++17.
 *
 * Threads: every function may be called from any thread; calls on one handle
 * must not overlap in time.
 */
#ifndef DFA_C_DFA_H
#define DFA_C_DFA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DFA_C_API __attribute__((visibility("default")))
#else
#define DFA_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function or struct below changes. Structs are only appended
 * to, and carry their size, so older callers keep working. */
#define DFA_C_API_VERSION 1

typedef enum dfa_status {
  DFA_OK = 0,
  DFA_FAILED = 1 /* the diagnostics say why */
} dfa_status_t;

typedef struct dfa_diagnostics dfa_diagnostics_t;
typedef struct dfa_text dfa_text_t;
typedef struct dfa_step dfa_step_t;
typedef struct dfa_artifact dfa_artifact_t;

/* === Versions ============================================================ */

/* The project's version, such as "0.1.0". */
DFA_C_API const char *dfa_version(void);
/* The version of LLVM that is linked, such as "22.1.8". */
DFA_C_API const char *dfa_llvm_version(void);

/* === Diagnostics ========================================================= */

typedef enum dfa_severity {
  DFA_SEVERITY_NOTE = 0,
  DFA_SEVERITY_WARNING = 1,
  DFA_SEVERITY_ERROR = 2,
  DFA_SEVERITY_REMARK = 3
} dfa_severity_t;

/* Line and column count from 1; 0 and an empty file: no place is known.
 * Strings are valid until the list is released or appended to. */
typedef struct dfa_diagnostic {
  dfa_severity_t severity;
  const char *message;
  const char *file;
  int32_t line;
  int32_t column;
} dfa_diagnostic_t;

/* A list, to which the functions below append. */
DFA_C_API dfa_diagnostics_t *dfa_diagnostics_create(void);
DFA_C_API void dfa_diagnostics_release(dfa_diagnostics_t *diagnostics);
DFA_C_API size_t dfa_diagnostics_count(const dfa_diagnostics_t *diagnostics);
/* The entry at `index`, which must be less than the count. */
DFA_C_API dfa_diagnostic_t
dfa_diagnostics_get(const dfa_diagnostics_t *diagnostics, size_t index);

/* === Texts =============================================================== */

/* Bytes that a function returned; null-terminated behind the last one. */
DFA_C_API const char *dfa_text_data(const dfa_text_t *text);
DFA_C_API size_t dfa_text_size(const dfa_text_t *text);
DFA_C_API void dfa_text_release(dfa_text_t *text);

/* === Pass pipelines ====================================================== */

/* Parses a module, runs a pipeline in MLIR's textual form (with or without
 * "builtin.module(...)" around it), and prints the module. `source` names the
 * text in diagnostics. */
DFA_C_API dfa_status_t dfa_run_passes(const char *text, size_t length,
                                      const char *source, const char *pipeline,
                                      dfa_text_t **result,
                                      dfa_diagnostics_t *diagnostics);

/* The CUDA assembler that would be used: path and release. `override` may be
 * null. */
DFA_C_API dfa_status_t dfa_find_ptxas(const char *override_path,
                                      dfa_text_t **path, dfa_text_t **release,
                                      dfa_diagnostics_t *diagnostics);

/* === Steps =============================================================== */

/* Parses and verifies a module with a layout and a function @step (levels A
 * and B). */
DFA_C_API dfa_status_t dfa_step_parse(const char *text, size_t length,
                                      const char *source, dfa_step_t **step,
                                      dfa_diagnostics_t *diagnostics);
DFA_C_API void dfa_step_release(dfa_step_t *step);

/* Layout, bindings and initial control values, as JSON:
 *   {"layout": NAME, "bucket_bytes": N, "mesh": [{"name", "size"}],
 *    "classes": [{"name", "rule", "param", "grad", "master",
 *                 "arrays": [{"name", "format"}]}],
 *    "groups": [{"index", "hyper": {NAME: VALUE}}],
 *    "params": [{"name", "shape", "strides", "format", "class", "group"}],
 *    "arguments": [{"role", "class", "part", "format"}], "results": [...],
 *    "control": {FIELD: VALUE}}
 * Strides are in elements; classes and groups are given by position; class -1
 * is the control block; a bucket_bytes of 0 is the default. */
DFA_C_API dfa_status_t dfa_step_facts(dfa_step_t *step, dfa_text_t **json,
                                      dfa_diagnostics_t *diagnostics);

/* Null strings and zeros mean the defaults. */
typedef struct dfa_compile_options {
  size_t struct_size; /* sizeof(dfa_compile_options_t) */
  const char *target; /* "cpu" or "cuda" */
  const char *chip;   /* CUDA: such as "sm_90" */
  const char *format; /* CUDA: "ptx", "cubin" or "fatbin" */
  const char *ptxas;  /* CUDA: path of the assembler */
  uint32_t vector_width;
  uint32_t block;         /* CUDA: threads of a block */
  uint32_t unroll;        /* CUDA: loads in flight where elements are reduced */
  uint32_t max_registers; /* CUDA */
} dfa_compile_options_t;

/* A text that is equal for two steps and sets of options if compiling gives
 * the same code and program: the module without parameters, groups and source
 * places, the options with their defaults filled in, the host's CPU or the
 * chip and the assembler's release, and the versions of all parts. */
DFA_C_API dfa_status_t dfa_step_key(dfa_step_t *step,
                                    const dfa_compile_options_t *options,
                                    dfa_text_t **key,
                                    dfa_diagnostics_t *diagnostics);

typedef struct dfa_report_options {
  size_t struct_size; /* sizeof(dfa_report_options_t) */
  double bandwidth;   /* of device memory, GB/s */
  double link;        /* of a rank, GB/s */
  int64_t replicate;  /* mesh to assume; 0: as the mesh says */
  int64_t shard;
} dfa_report_options_t;

/* What the step costs, as JSON. `options` may be null. */
DFA_C_API dfa_status_t dfa_step_report(dfa_step_t *step,
                                       const dfa_report_options_t *options,
                                       dfa_text_t **json,
                                       dfa_diagnostics_t *diagnostics);

/* === Artifacts =========================================================== */

/* Compiles a step, which stays as it is. */
DFA_C_API dfa_status_t dfa_step_compile(dfa_step_t *step,
                                        const dfa_compile_options_t *options,
                                        dfa_artifact_t **artifact,
                                        dfa_diagnostics_t *diagnostics);
/* The artifact of which these are program and code, without compiling. The
 * code must come from dfa_artifact_code on a machine of the same kind. */
DFA_C_API dfa_status_t dfa_artifact_load(const char *target,
                                         const char *program,
                                         size_t program_length,
                                         const void *code, size_t code_size,
                                         dfa_artifact_t **artifact,
                                         dfa_diagnostics_t *diagnostics);
/* Functions of the artifact's kernels end with it. */
DFA_C_API void dfa_artifact_release(dfa_artifact_t *artifact);

/* "cpu" or "cuda"; this and the next are valid as long as the handle. */
DFA_C_API const char *dfa_artifact_target(const dfa_artifact_t *artifact);
/* The program as text (dfa-rt/program.def). */
DFA_C_API const char *dfa_artifact_program(const dfa_artifact_t *artifact);
/* CUDA: the image. CPU: an object file. */
DFA_C_API const void *dfa_artifact_code(const dfa_artifact_t *artifact,
                                        size_t *size);

/* The host's kernels, in no order; none for CUDA. `index` must be less than
 * the count. */
DFA_C_API size_t dfa_artifact_kernel_count(const dfa_artifact_t *artifact);
DFA_C_API const char *dfa_artifact_kernel_name(const dfa_artifact_t *artifact,
                                               size_t index);
/* The function of a kernel; null if there is none of that name. */
DFA_C_API void *dfa_artifact_kernel(const dfa_artifact_t *artifact,
                                    const char *name);

#ifdef __cplusplus
}
#endif

#endif /* DFA_C_DFA_H */
