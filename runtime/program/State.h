// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything an optimizer keeps on its device, and the host mirrors of it. No
// command is executed here.

#ifndef DFA_PROGRAM_STATE_H
#define DFA_PROGRAM_STATE_H

#include "base/Owned.h"
#include "program/Arrays.h"
#include "program/Program.h"
#include "program/Tables.h"
#include "program/Uploader.h"

#include <vector>

namespace dfa::rt {

/// The rows of one class.
struct ClassState {
  std::vector<ArrayStorage> arrays;
  size_t rowBytes = 0;
  std::vector<char> hostRows; // of the segment table
  std::vector<uint32_t> hostPresence;
  char *rows = nullptr; // device memory from here on
  dfa_rt_segment_state_t *state = nullptr;
  float *derived = nullptr;
  double *stats = nullptr;
  uint32_t *presence = nullptr; // what this rank saw
  uint32_t *united = nullptr;   // OR-ed over ranks
};

class State {
public:
  State(std::shared_ptr<Device> device, const Program &program, Tables tables,
        int64_t ranks);

  /// Allocates, and puts the initial values in place.
  Status prepare(Stream stream);

  /// Uploads tables that changed since the last call.
  Status uploadSegments(Stream stream);
  Status uploadGroups(Stream stream);
  /// Copies presence words to the `active` words of the segments.
  Status spreadPresence(int64_t classIndex, const uint32_t *words,
                        Stream stream);
  /// Copies the control block to its mirror, without waiting.
  Status readBack(Stream stream);
  /// Writes a few bytes of device memory in stream order.
  Status write(void *target, const void *source, size_t bytes, Stream stream);

  /// Recomputes the addresses in a segment's row after a bind.
  void refreshRow(int64_t classIndex, int64_t segment);

  std::shared_ptr<Device> device;
  const Program &program;
  Tables tables;
  int64_t ranks; // of the whole mesh

  std::vector<ClassState> classes;
  dfa_rt_control_t hostControl; // initial values, until prepare
  std::vector<double> hostGroups;
  bool rowsDirty = true;
  bool presenceDirty = true;
  bool groupsDirty = true;

  // Device memory.
  dfa_rt_control_t *control = nullptr;
  double *groups = nullptr;
  dfa_rt_chunk_t *chunks = nullptr;
  dfa_rt_chunk_t *atoms = nullptr;
  dfa_rt_chunk_t *full = nullptr;
  double *partials = nullptr;
  int64_t partialStride = 0;
  double *groupStats = nullptr;
  uint32_t *atomGroups = nullptr; // of every atom, if there are group stats
  double *sums = nullptr; // one block of `ranks` rows for each accumulator

  dfa_rt_control_t *mirror = nullptr; // pinned
  bool prepared = false;

private:
  void carve();
  Status uploadTables(Stream stream);

  DeviceMemory memory; // of all tables
  size_t measuredBytes = 0;
  HostMemory mirrorMemory;
  Uploader segmentUploads;
  Uploader presenceUploads;
  Uploader groupUploads;
  Uploader fieldUploads;
};

} // namespace dfa::rt

#endif // DFA_PROGRAM_STATE_H
