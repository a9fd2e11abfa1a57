/* Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a compiled kernel and the runtime agree on: the rows of the tables in
 * device memory, the kernel signatures, and the versions. The compiler knows
 * these offsets by including this header; it links nothing of the runtime.
 * No function is declared here (see dfa_rt.h). Compiles as C11 and as C++17.
 */
#ifndef DFA_RT_ABI_H
#define DFA_RT_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Raised whenever a row, a kernel signature or a constant below changes. */
#define DFA_RT_ABI_VERSION 2

/* Raised whenever program.def or the meaning of a command changes. */
#define DFA_RT_PROGRAM_VERSION 1

/* Bytes to which every segment start and shard cut is aligned. */
#define DFA_RT_ALIGN_BYTES 128

/* Reductions: a parameter is cut into atoms of this many elements, counted
 * from its first element. An atom is a matrix of DFA_RT_ATOM_COLUMNS columns in
 * row-major order: a column is summed top to bottom, then columns are added in
 * a tree of adjacent pairs (0+1, 2+3, ...; then pairs of pairs). Absent
 * elements count as the identity. Any vector width or thread count that holds
 * aligned runs of columns reproduces these bits. */
#define DFA_RT_ATOM_ELEMENTS 8192
#define DFA_RT_ATOM_COLUMNS 256

/* Atom partials are combined the same way, as a matrix with this many columns:
 * partial i is in column i mod DFA_RT_COMBINE_COLUMNS. One parameter's atoms
 * (scope "param") are combined as such a matrix of their own, whose partial 0
 * is the parameter's first local atom. Segment statistics of a group (scope
 * "group") are added in segment order. */
#define DFA_RT_COMBINE_COLUMNS 1024
#define DFA_RT_SEGMENT_COMBINE_COLUMNS 32

#ifdef __cplusplus
extern "C" {
#endif

/* The unit of elementwise work, and of reduction (then it is one atom or the
 * local part of one): `length` elements of local segment `segment`, starting
 * `offset` elements behind the segment's base addresses. */
typedef struct dfa_rt_chunk {
  int64_t offset;
  uint32_t length;
  uint32_t segment;
} dfa_rt_chunk_t;

/* Every base address in the row is a multiple of 16 bytes (for arrays of
 * 16-bit elements: of 8), so the vector body may run on it. Chunk and atom
 * offsets are multiples of 8 elements, tails apart. */
#define DFA_RT_SEGMENT_VECTOR 1u

/* One parameter, or the part of it that this rank owns. The host writes rows;
 * kernels only read them. The row continues with one base address (uint64_t)
 * for each array of the class, in the order of the program's class record;
 * the row stride is the sum rounded up to a multiple of 16 bytes. */
typedef struct dfa_rt_segment {
  int64_t elements;
  int64_t first_atom; /* index of its first atom; the atom table is one for
                         all classes, in class and bucket order */
  int64_t atoms;      /* number of its local atoms */
  uint32_t group;     /* row of the group table */
  uint32_t flags;     /* DFA_RT_SEGMENT_* */
  /* uint64_t base[arrays]; */
} dfa_rt_segment_t;

/* What the device changes of a segment. */
typedef struct dfa_rt_segment_state {
  int64_t step;        /* updates applied to this parameter */
  uint32_t active;     /* non-zero: has a gradient in this step */
  uint32_t generation; /* equals control.generation: holds a gradient already,
                          so a further contribution adds */
} dfa_rt_segment_state_t;

/* The control block of an optimizer: one row, all fields by name, updated by
 * kernels in place. See control.def for the meaning of each field. */
#define DFA_RT_CONTROL_SCRATCH 32
typedef struct dfa_rt_control {
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc) ctype name;
#include "dfa-rt/control.def"
  /* 8-byte slots through which a control kernel leaves scalars to the kernels
   * after it. The compiler assigns them; meaningless between steps. */
  double scratch[DFA_RT_CONTROL_SCRATCH];
} dfa_rt_control_t;

/* Kernel signatures. All pointers are device memory (CPU: host memory).
 * A null table is legal where a kernel does not use it.
 *
 * element kernels (one launch for any number of segments):
 *   void k(dfa_rt_control_t *control, const void *segments,
 *          dfa_rt_segment_state_t *state, const float *derived,
 *          const dfa_rt_chunk_t *chunks, int64_t chunk_begin,
 *          int64_t chunk_end, uint32_t parts_per_chunk_log2,
 *          double *partials, int64_t partial_stride)
 *   CPU: handles chunks [chunk_begin, chunk_end), serially; called from
 *   several threads with disjoint ranges.
 *   CUDA, no accumulators: warp w of the grid handles part w mod 2^l of chunk
 *   chunk_begin + w / 2^l; a part is DFA_RT_PART_LANES x vector width elements
 *   and a chunk holds at most 2^l parts;
 *   grid = ceil(((chunk_end - chunk_begin) << l) / warps per block).
 *   CUDA, with accumulators: `chunks` is the atom table and a warp handles
 *   one atom; grid = ceil((chunk_end - chunk_begin) / warps per block).
 *   Accumulator a of atom i goes to partials[a * partial_stride + i].
 *
 * control kernels (one block of DFA_RT_CONTROL_BLOCK threads; CPU: one call):
 *   void k(dfa_rt_control_t *control, const double *partials,
 *          int64_t partial_stride, int64_t atoms, const double *groups,
 *          double *group_stats, int64_t group_count, double *local_sums,
 *          const double *gathered, int64_t ranks,
 *          const uint32_t *atom_groups)
 *   local_sums not null: combines the accumulators over all atoms, writes one
 *   f64 per accumulator to local_sums, and returns. Else gathered not null:
 *   combines the sums of all ranks (rank-major) in rank order and runs its
 *   scalar code once. Else combines over all atoms and runs its scalar code.
 *   Group accumulators come behind the others; for group g they are combined
 *   over the atoms with atom_groups[atom] == g (the others count as absent)
 *   and go to group_stats[g * group accumulators + i].
 *
 * segment kernels (CUDA: one thread a segment, or with accumulators one warp;
 * CPU: a range):
 *   void k(dfa_rt_control_t *control, const double *groups,
 *          const void *segments, dfa_rt_segment_state_t *state,
 *          float *derived, int64_t segment_begin, int64_t segment_end,
 *          const double *partials, int64_t partial_stride,
 *          double *segment_stats, int64_t segment_stats_stride,
 *          const double *group_stats)
 *   With accumulators: row s of segment_stats, segment_stats_stride f64 apart,
 *   gets those of segment s. derived null: nothing else is done. partials null:
 *   they are combined from those of partial_stride ranks in rank order instead;
 *   rank r's begin r * segment_stats_stride f64 behind segment_stats, an f64 an
 *   accumulator and segment, and nothing is written there.
 */
#define DFA_RT_PART_LANES 32
#define DFA_RT_CONTROL_BLOCK 1024
#define DFA_RT_SEGMENT_BLOCK 128

#ifdef __cplusplus
}
static_assert(sizeof(dfa_rt_chunk_t) == 16, "table row");
static_assert(sizeof(dfa_rt_segment_t) == 32, "table row header");
static_assert(sizeof(dfa_rt_segment_state_t) == 16, "table row");
#endif

#endif /* DFA_RT_ABI_H */
