/* Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C interface of the runtime: devices, programs, layouts, optimizers.
 * Handles are opaque. Functions return a status; nothing throws or exits. What
 * kernels and the runtime share is in abi.h. Compiles as C11 and as C++17.
 *
 * Threads: every function may be called from any thread. Calls on one handle
 * are serialised by the library. A handle may be released while others that
 * were made from it live on; they keep what they need.
 */
#ifndef DFA_RT_DFA_RT_H
#define DFA_RT_DFA_RT_H

#include "dfa-rt/abi.h"

#include <stdbool.h>

#if defined(__GNUC__)
#define DFA_RT_API __attribute__((visibility("default")))
#else
#define DFA_RT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function or struct below changes. Structs are only appended
 * to, and carry their size, so older callers keep working. */
#define DFA_RT_API_VERSION 1

typedef enum dfa_rt_status {
  DFA_RT_OK = 0,
  DFA_RT_INVALID_ARGUMENT = 1,
  DFA_RT_PARSE_ERROR = 2,
  DFA_RT_NOT_FOUND = 3,
  DFA_RT_UNSUPPORTED = 4,
  DFA_RT_OUT_OF_MEMORY = 5,
  DFA_RT_FAILED_PRECONDITION = 6, /* a call in the wrong state or order */
  DFA_RT_DEVICE_ERROR = 7,
  DFA_RT_COLLECTIVE_ERROR = 8, /* a peer died, is late, or disagrees */
  DFA_RT_INTERNAL = 9
} dfa_rt_status_t;

typedef struct dfa_rt_device dfa_rt_device_t;
typedef struct dfa_rt_program dfa_rt_program_t;
typedef struct dfa_rt_layout dfa_rt_layout_t;
typedef struct dfa_rt_group dfa_rt_group_t;
typedef struct dfa_rt_communicator dfa_rt_communicator_t;
typedef struct dfa_rt_optimizer dfa_rt_optimizer_t;

/* A stream: a CUstream (null is the legacy default stream), or a stream of
 * dfa_rt_stream_create; null on a CPU device runs work at once. */
typedef void *dfa_rt_stream_t;

/* === Versions, errors, log =============================================== */

/* DFA_RT_API_VERSION, DFA_RT_ABI_VERSION and DFA_RT_PROGRAM_VERSION of the
 * library that is loaded. */
DFA_RT_API uint32_t dfa_rt_api_version(void);
DFA_RT_API uint32_t dfa_rt_abi_version(void);
DFA_RT_API uint32_t dfa_rt_program_version(void);

/* A word or two for a status, such as "invalid argument". */
DFA_RT_API const char *dfa_rt_status_name(dfa_rt_status_t status);

/* Message and place of the last failure on the calling thread; valid until
 * the thread's next call. Empty if there was none. */
DFA_RT_API const char *dfa_rt_last_error(void);

/* 0 off, 1 error, 2 warn, 3 info, 4 debug; overrides DFA_LOG. */
DFA_RT_API dfa_rt_status_t dfa_rt_set_log_level(int32_t level);

/* === Devices ============================================================= */

/* A CPU device with `threads` threads; 0: DFA_NUM_THREADS, or all cores. */
DFA_RT_API dfa_rt_status_t dfa_rt_device_create_cpu(int32_t threads,
                                                    dfa_rt_device_t **device);
/* A CUDA device by ordinal, in its primary context. */
DFA_RT_API dfa_rt_status_t dfa_rt_device_create_cuda(int32_t ordinal,
                                                     dfa_rt_device_t **device);
DFA_RT_API void dfa_rt_device_release(dfa_rt_device_t *device);

/* The number of CUDA devices; 0 without a driver. */
DFA_RT_API int32_t dfa_rt_cuda_device_count(void);

/* What a person calls the device; valid as long as the handle. */
DFA_RT_API const char *dfa_rt_device_name(const dfa_rt_device_t *device);

/* Takes device memory from the caller, e.g. from a framework's caching
 * allocator. Set it before anything is allocated. `free` may be called from
 * another thread, after the optimizer is gone, when a recording ends. */
typedef struct dfa_rt_allocator {
  void *(*allocate)(void *context, size_t bytes, dfa_rt_stream_t stream);
  void (*free)(void *context, void *memory, size_t bytes);
  void *context;
} dfa_rt_allocator_t;
DFA_RT_API dfa_rt_status_t dfa_rt_device_set_allocator(
    dfa_rt_device_t *device, const dfa_rt_allocator_t *allocator);

/* What the device was asked for so far. After prepare, a step changes
 * `launches` alone. */
typedef struct dfa_rt_device_counters {
  int64_t allocations;
  int64_t module_loads;
  int64_t graphs_instantiated;
  int64_t launches;
} dfa_rt_device_counters_t;
DFA_RT_API dfa_rt_status_t dfa_rt_device_get_counters(
    const dfa_rt_device_t *device, dfa_rt_device_counters_t *counters);

/* Device memory and copies, for tools that have no framework. Copies may go
 * in any direction; they do not wait. */
DFA_RT_API dfa_rt_status_t dfa_rt_device_allocate(dfa_rt_device_t *device,
                                                  size_t bytes, void **memory);
DFA_RT_API void dfa_rt_device_free(dfa_rt_device_t *device, void *memory,
                                   size_t bytes);
DFA_RT_API dfa_rt_status_t dfa_rt_device_copy(dfa_rt_device_t *device,
                                              void *target, const void *source,
                                              size_t bytes,
                                              dfa_rt_stream_t stream);
DFA_RT_API dfa_rt_status_t dfa_rt_device_zero(dfa_rt_device_t *device,
                                              void *target, size_t bytes,
                                              dfa_rt_stream_t stream);
DFA_RT_API dfa_rt_status_t dfa_rt_stream_create(dfa_rt_device_t *device,
                                                dfa_rt_stream_t *stream);
DFA_RT_API void dfa_rt_stream_destroy(dfa_rt_device_t *device,
                                      dfa_rt_stream_t stream);
/* Waits for everything queued on the stream. */
DFA_RT_API dfa_rt_status_t dfa_rt_stream_synchronize(dfa_rt_device_t *device,
                                                     dfa_rt_stream_t stream);

/* Times on a device: an event keeps when it was last reached in a stream. */
typedef struct dfa_rt_timer dfa_rt_timer_t;
DFA_RT_API dfa_rt_status_t dfa_rt_timer_create(dfa_rt_device_t *device,
                                               dfa_rt_timer_t **timer);
DFA_RT_API void dfa_rt_timer_release(dfa_rt_timer_t *timer);
DFA_RT_API dfa_rt_status_t dfa_rt_timer_record(dfa_rt_timer_t *timer,
                                               dfa_rt_stream_t stream);
/* Milliseconds from one timer to another of the same device; waits. */
DFA_RT_API dfa_rt_status_t dfa_rt_timer_elapsed(const dfa_rt_timer_t *begin,
                                                const dfa_rt_timer_t *end,
                                                double *milliseconds);

/* === Programs ============================================================ */

/* Reads the text form (program.def). `source` names it in messages. */
DFA_RT_API dfa_rt_status_t dfa_rt_program_parse(const char *text, size_t length,
                                                const char *source,
                                                dfa_rt_program_t **program);
DFA_RT_API void dfa_rt_program_release(dfa_rt_program_t *program);
/* The text form; valid as long as the handle. */
DFA_RT_API const char *dfa_rt_program_text(const dfa_rt_program_t *program);

/* Indices by name; -1 if there is none. */
DFA_RT_API int64_t dfa_rt_program_entry(const dfa_rt_program_t *program,
                                        const char *name);
DFA_RT_API int64_t dfa_rt_program_class(const dfa_rt_program_t *program,
                                        const char *name);
DFA_RT_API int64_t dfa_rt_program_array(const dfa_rt_program_t *program,
                                        int64_t class_index, const char *name);
DFA_RT_API int64_t dfa_rt_program_hyper(const dfa_rt_program_t *program,
                                        const char *name);

/* === Layouts ============================================================= */

typedef struct dfa_rt_layout_options {
  size_t struct_size; /* sizeof(dfa_rt_layout_options_t) */
  int64_t replicate;  /* sizes of the mesh axes */
  int64_t shard;
  int64_t bucket_bytes; /* 0: the default */
  int32_t fill_order;   /* 0 reverse, 1 forward, 2 explicit */
  const int64_t *explicit_order;
  int64_t explicit_count;
} dfa_rt_layout_options_t;

/* Starts a layout; classes and parameters are added, then it is planned. */
DFA_RT_API dfa_rt_status_t dfa_rt_layout_create(
    const dfa_rt_layout_options_t *options, dfa_rt_layout_t **layout);
DFA_RT_API void dfa_rt_layout_release(dfa_rt_layout_t *layout);

/* Adds a class; `sync_format` is that of gradients on the wire, `block` the
 * elements that share a statistic (1 if none). Indices count from 0. */
DFA_RT_API dfa_rt_status_t dfa_rt_layout_add_class(dfa_rt_layout_t *layout,
                                                   const char *name,
                                                   const char *sync_format,
                                                   int64_t block);
/* Adds an array to the last class. */
DFA_RT_API dfa_rt_status_t dfa_rt_layout_add_array(dfa_rt_layout_t *layout,
                                                   const char *name,
                                                   const char *format);

typedef struct dfa_rt_param {
  size_t struct_size;
  const char *name;
  int32_t dims;
  const int64_t *shape;
  const int64_t *strides; /* in elements; null: row-major */
  int32_t class_index;
  int32_t group;
  uint32_t flags;      /* 1: frozen */
  int64_t shared_with; /* an earlier parameter, or -1 */
  int32_t unit;        /* parameters that share a bucket, or -1 */
  int32_t epoch;
} dfa_rt_param_t;
DFA_RT_API dfa_rt_status_t dfa_rt_layout_add_param(dfa_rt_layout_t *layout,
                                                   const dfa_rt_param_t *param);
/* Lays out what was added; nothing can be added afterwards. */
DFA_RT_API dfa_rt_status_t dfa_rt_layout_plan(dfa_rt_layout_t *layout);

/* Where a parameter is. */
typedef struct dfa_rt_placement {
  int64_t elements;
  int64_t storage; /* the parameter that holds the elements */
  int64_t bucket;  /* -1: frozen */
  int64_t start;   /* first element, counted from the bucket's start */
  int64_t segment; /* row in its class's tables, -1 as for bucket */
} dfa_rt_placement_t;
DFA_RT_API dfa_rt_status_t
dfa_rt_layout_placement(const dfa_rt_layout_t *layout, int64_t param,
                        dfa_rt_placement_t *placement);

typedef struct dfa_rt_bucket {
  int32_t class_index;
  int32_t unit;
  int64_t used; /* end of its last parameter */
  int64_t shard_elements;
  int64_t full_elements; /* with padding */
  int64_t shard_base;    /* where it starts in the class's arrays */
  int64_t full_base;
} dfa_rt_bucket_t;
DFA_RT_API int64_t dfa_rt_layout_bucket_count(const dfa_rt_layout_t *layout);
DFA_RT_API dfa_rt_status_t dfa_rt_layout_bucket(const dfa_rt_layout_t *layout,
                                                int64_t bucket,
                                                dfa_rt_bucket_t *info);
/* The plan as text, equal on all ranks; valid as long as the handle. */
DFA_RT_API const char *dfa_rt_layout_text(const dfa_rt_layout_t *layout);
/* The bucket that starts its collectives as number `position`; -1 if none. */
DFA_RT_API int64_t dfa_rt_layout_bucket_at(const dfa_rt_layout_t *layout,
                                           int64_t position);

/* === Groups and communicators ============================================ */

/* A key-value store of the caller. Functions return 0, or anything else for a
 * failure. `get` waits up to `timeout_ms` (usually 0) for the key and returns 1
 * if it is absent; it sets `bytes` to the value's length and copies as much as
 * fits into `capacity`. `add` adds to a counter, 0 if absent. Calls come from
 * several threads, one at a time. */
typedef struct dfa_rt_store {
  int (*set)(void *context, const char *key, const void *data, size_t bytes);
  int (*get)(void *context, const char *key, void *data, size_t capacity,
             size_t *bytes, int64_t timeout_ms);
  int (*add)(void *context, const char *key, int64_t delta, int64_t *sum);
  void *context;
} dfa_rt_store_t;

typedef struct dfa_rt_group_options {
  size_t struct_size; /* sizeof(dfa_rt_group_options_t) */
  dfa_rt_device_t *device;
  const char *transport;         /* "gloo" or "nccl" */
  const char *const *axis_names; /* slowest first */
  const int32_t *axis_sizes;
  int32_t axis_count;
  const int32_t *ranks; /* world ranks of the mesh; null: all */
  int32_t rank_count;
  int32_t rank; /* -1: this and the next three from the environment */
  int32_t world_size;
  int32_t local_rank;
  int32_t local_world_size;
  const char *run_id;          /* null: from the environment */
  int32_t instance;            /* tells apart several groups of one run */
  double timeout_s;            /* 0: DFA_TIMEOUT_S, or 300 */
  const dfa_rt_store_t *store; /* null: DFA_STORE; copied */
} dfa_rt_group_options_t;

/* This process among all of a run, as the launcher's environment says: RANK,
 * WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, else SLURM's; one process if
 * neither is set. An error names the variable that is malformed or missing. */
typedef struct dfa_rt_launch {
  size_t struct_size; /* sizeof(dfa_rt_launch_t) */
  int32_t rank;
  int32_t world_size;
  int32_t local_rank;
  int32_t local_world_size;
  char source[64]; /* who said so, for messages */
} dfa_rt_launch_t;
DFA_RT_API dfa_rt_status_t dfa_rt_launch_read(dfa_rt_launch_t *launch);

/* Connects all ranks of a mesh; each of them calls it. */
DFA_RT_API dfa_rt_status_t dfa_rt_group_create(
    const dfa_rt_group_options_t *options, dfa_rt_group_t **group);
DFA_RT_API void dfa_rt_group_release(dfa_rt_group_t *group);
/* Releases the transport; fails while recordings that use it live. */
DFA_RT_API dfa_rt_status_t dfa_rt_group_close(dfa_rt_group_t *group);

/* The communicator along an axis. */
DFA_RT_API dfa_rt_status_t
dfa_rt_group_axis(dfa_rt_group_t *group, const char *name,
                  dfa_rt_communicator_t **communicator);
/* Compares a text over all ranks, collectively: a difference is an error on
 * all of them that shows the first differing line. */
DFA_RT_API dfa_rt_status_t dfa_rt_group_agree(dfa_rt_group_t *group,
                                              const char *text);
/* Copies device memory of the rank at place `root` of the mesh to that of all
 * others, collectively and ordered in the stream: for data around the steps,
 * such as results. */
DFA_RT_API dfa_rt_status_t dfa_rt_group_broadcast(dfa_rt_group_t *group,
                                                  void *memory, int64_t bytes,
                                                  int32_t root,
                                                  dfa_rt_stream_t stream);
/* Tells all ranks that this one cannot go on. */
DFA_RT_API void dfa_rt_group_report(dfa_rt_group_t *group, const char *reason);
/* Lines about transport, interface and groups; valid as long as the handle. */
DFA_RT_API const char *dfa_rt_group_describe(dfa_rt_group_t *group);

/* The failure found by the watchdog. Strings are valid as long as the group. */
typedef struct dfa_rt_failure {
  int32_t rank; /* the culprit, or -1 if no rank is to blame */
  int64_t bucket;
  const char *collective;
  const char *reason;
} dfa_rt_failure_t;
/* False if all is well so far. */
DFA_RT_API bool dfa_rt_group_failure(dfa_rt_group_t *group,
                                     dfa_rt_failure_t *failure);

/* A communicator keeps its group's transport alive. */
DFA_RT_API void
dfa_rt_communicator_release(dfa_rt_communicator_t *communicator);
DFA_RT_API int32_t
dfa_rt_communicator_rank(const dfa_rt_communicator_t *communicator);
DFA_RT_API int32_t
dfa_rt_communicator_size(const dfa_rt_communicator_t *communicator);
DFA_RT_API const char *
dfa_rt_communicator_name(const dfa_rt_communicator_t *communicator);

/* === Optimizers ========================================================== */

/* Finds a CPU kernel by name. */
typedef void *(*dfa_rt_resolve_t)(void *context, const char *name);

typedef struct dfa_rt_optimizer_options {
  size_t struct_size; /* sizeof(dfa_rt_optimizer_options_t) */
  dfa_rt_device_t *device;
  const dfa_rt_program_t *program;
  const dfa_rt_layout_t *layout;
  int64_t rank;          /* in the layout's mesh */
  int64_t tile_elements; /* 0: what a warp of the kernels takes */
  const void *image;     /* CUDA: cubin, fatbin or PTX; copied by prepare */
  size_t image_bytes;
  dfa_rt_resolve_t resolve; /* CPU; called by prepare */
  void *resolve_context;
  /* One for each axis of the program; null: one rank. */
  dfa_rt_communicator_t *const *communicators;
  int64_t communicator_count;
  bool replay; /* record each entry once, then replay it */
} dfa_rt_optimizer_options_t;

DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_create(
    const dfa_rt_optimizer_options_t *options, dfa_rt_optimizer_t **optimizer);
/* Waits for the work it started. Recordings of others that contain its work
 * keep its memory until they go. */
DFA_RT_API void dfa_rt_optimizer_release(dfa_rt_optimizer_t *optimizer);

/* Puts one segment of an array at `address`. After prepare the next upload
 * makes it known to the device. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_bind_segment(
    dfa_rt_optimizer_t *optimizer, int64_t class_index, int64_t array,
    int64_t segment, void *address);
/* The same for many segments at once: one address each, from segment 0 on;
 * null entries stay as they are. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_bind_segments(
    dfa_rt_optimizer_t *optimizer, int64_t class_index, int64_t array,
    void *const *addresses, int64_t count);
/* Puts one bucket (counted within the class) at `address`; before prepare. */
DFA_RT_API dfa_rt_status_t
dfa_rt_optimizer_bind_bucket(dfa_rt_optimizer_t *optimizer, int64_t class_index,
                             int64_t array, int64_t bucket, void *address);
/* Where a segment lies; null if it has no elements on this rank. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_segment_address(
    dfa_rt_optimizer_t *optimizer, int64_t class_index, int64_t array,
    int64_t segment, void **address);

/* Hyper-parameters: a row a group, a column for each name of the program. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_set_hyper(
    dfa_rt_optimizer_t *optimizer, int64_t group, int64_t column, double value);
DFA_RT_API dfa_rt_status_t
dfa_rt_optimizer_get_hyper(dfa_rt_optimizer_t *optimizer, int64_t group,
                           int64_t column, double *value);
/* Says whether a parameter has a gradient in the coming step. */
DFA_RT_API dfa_rt_status_t
dfa_rt_optimizer_set_present(dfa_rt_optimizer_t *optimizer, int64_t class_index,
                             int64_t segment, bool present);
/* Uploads what changed on the host, in stream order; needed only before the
 * replay of a recording of somebody else. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_push(dfa_rt_optimizer_t *optimizer,
                                                 dfa_rt_stream_t stream);

/* Allocates, loads kernels, records; waits until the device is ready. */
DFA_RT_API dfa_rt_status_t
dfa_rt_optimizer_prepare(dfa_rt_optimizer_t *optimizer, dfa_rt_stream_t stream);
/* Runs an entry on the stream, without waiting; during a capture of that
 * stream it is recorded. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_run(dfa_rt_optimizer_t *optimizer,
                                                int64_t entry,
                                                dfa_rt_stream_t stream);
/* Runs an entry for one bucket (counted within the class), without joining the
 * communication stream: the next dfa_rt_optimizer_run does. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_run_bucket(
    dfa_rt_optimizer_t *optimizer, int64_t entry, int64_t class_index,
    int64_t bucket, dfa_rt_stream_t stream);
/* Joins those buckets: later work of the stream comes after them. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_join(dfa_rt_optimizer_t *optimizer,
                                                 dfa_rt_stream_t stream);

/* One command of a profiled run: inside of for_each_bucket, once a bucket.
 * Strings are valid during the callback. */
typedef struct dfa_rt_command_time {
  int64_t command;  /* its index in the entry */
  const char *kind; /* its word in program.def */
  const char *name; /* kernel, kind of collective, event, array, table, axis */
  int64_t class_index; /* -1: none */
  int64_t bucket;      /* counted within the class; -1: all */
  int32_t stream;      /* 0 compute, 1 comm */
  int64_t launches;    /* kernels that it launched */
  double milliseconds;
} dfa_rt_command_time_t;
typedef void (*dfa_rt_profile_t)(void *context,
                                 const dfa_rt_command_time_t *time);
/* Runs an entry once without replay, with timers around every command, waits,
 * and reports the times in the order of issue. The timers make such a run
 * slower than others, by a few microseconds a command. Refused during a
 * capture. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_profile(
    dfa_rt_optimizer_t *optimizer, int64_t entry, dfa_rt_stream_t stream,
    dfa_rt_profile_t report, void *context);

/* Control fields (control.def) by name; integers up to 2^53 are exact. `set`
 * acts in stream order. `mirror` reads what the last finished read-back
 * brought and never waits; `fetch` reads the device and waits. */
DFA_RT_API dfa_rt_status_t
dfa_rt_optimizer_set_control(dfa_rt_optimizer_t *optimizer, const char *field,
                             double value, dfa_rt_stream_t stream);
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_mirror_control(
    dfa_rt_optimizer_t *optimizer, const char *field, double *value);
DFA_RT_API dfa_rt_status_t
dfa_rt_optimizer_fetch_control(dfa_rt_optimizer_t *optimizer, const char *field,
                               double *value, dfa_rt_stream_t stream);

/* Where a control field, a hyper-parameter or a step count lies in device
 * memory, after prepare. Writes of the caller's own, in stream order, reach the
 * next run; an upload of hyper-parameters that changed on the host overwrites
 * the whole group table. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_control_address(
    dfa_rt_optimizer_t *optimizer, const char *field, void **address);
DFA_RT_API dfa_rt_status_t
dfa_rt_optimizer_hyper_address(dfa_rt_optimizer_t *optimizer, int64_t group,
                               int64_t column, void **address);
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_step_address(
    dfa_rt_optimizer_t *optimizer, int64_t class_index, int64_t segment,
    void **address);

/* Step counts of segments; both wait. */
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_fetch_step(
    dfa_rt_optimizer_t *optimizer, int64_t class_index, int64_t segment,
    int64_t *step, dfa_rt_stream_t stream);
DFA_RT_API dfa_rt_status_t dfa_rt_optimizer_set_step(
    dfa_rt_optimizer_t *optimizer, int64_t class_index, int64_t segment,
    int64_t step, dfa_rt_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* DFA_RT_DFA_RT_H */
