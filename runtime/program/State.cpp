// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocation and upload of an optimizer's tables.

#include "program/State.h"

#include <algorithm>
#include <cstring>

namespace dfa::rt {

static constexpr size_t fieldBytes = 64; // of one written control field

static size_t roundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

static dfa_rt_control_t initialControl() {
  dfa_rt_control_t control{};
#define DFA_RT_CONTROL_FIELD(name, ctype, mlir, init, doc) control.name = init;
#include "dfa-rt/control.def"
  return control;
}

State::State(std::shared_ptr<Device> onDevice, const Program &program,
             Tables givenTables, int64_t ranks)
    : device(std::move(onDevice)), program(program),
      tables(std::move(givenTables)), ranks(ranks),
      hostControl(initialControl()),
      hostGroups(tables.groups * program.hyper.size()) {
  for (size_t index = 0; index < program.classes.size(); ++index) {
    const ProgramClass &record = program.classes[index];
    const ClassInfo &info = tables.classes[index];
    ClassState state;
    for (const ProgramArray &array : record.arrays)
      state.arrays.emplace_back(array, info, tables);
    state.rowBytes = roundUp(
        sizeof(dfa_rt_segment_t) + record.arrays.size() * sizeof(uint64_t), 16);
    state.hostRows.resize(state.rowBytes * info.segments.size());
    // Without word from the caller every parameter has a gradient.
    state.hostPresence.assign(info.segments.size(), 1);
    classes.push_back(std::move(state));
  }
}

// Deals the parts out of one block; the first pass only measures.
void State::carve() {
  char *base = static_cast<char *>(memory.get().handle);
  size_t offset = 0;
  bool measuring = base == nullptr;
  // `count` of 0 still gives an address: kernels get no null table.
  const auto take = [&](auto *&pointer, size_t count) {
    using Element = std::remove_reference_t<decltype(*pointer)>;
    if (!measuring)
      pointer = reinterpret_cast<Element *>(base + offset);
    offset += roundUp(std::max<size_t>(1, count * sizeof(Element)), 256);
  };
  take(control, 1);
  take(groups, hostGroups.size());
  take(chunks, tables.chunks.size());
  take(atoms, tables.atoms.size());
  take(full, tables.full.size());
  take(partials, partialStride * program.accumulators);
  take(groupStats, program.groupStats * tables.groups);
  take(atomGroups, program.groupStats ? tables.atoms.size() : 0);
  take(sums,
       (program.accumulators + program.groupStats * tables.groups) * ranks);
  for (size_t index = 0; index < classes.size(); ++index) {
    const ProgramClass &record = program.classes[index];
    ClassState &state = classes[index];
    size_t segments = tables.classes[index].segments.size();
    take(state.rows, state.hostRows.size());
    take(state.state, segments);
    take(state.derived, segments * record.derived);
    take(state.stats, segments * record.stats * ranks);
    take(state.presence, segments);
    take(state.united, segments);
  }
  if (!measuring)
    return;
  measuredBytes = offset;
}

Status State::prepare(Stream stream) {
  partialStride = roundUp(std::max<size_t>(1, tables.atoms.size()), 16);
  carve();
  DFA_RT_TRY(allocate(*device, measuredBytes, memory));
  carve();
  DFA_RT_TRY(device->zero(memory.get().handle, measuredBytes, stream));
  DFA_RT_TRY(allocateHost(*device, sizeof(dfa_rt_control_t), mirrorMemory));
  mirror = static_cast<dfa_rt_control_t *>(mirrorMemory.get().handle);
  *mirror = hostControl;

  size_t largestRows = 0;
  size_t largestPresence = 0;
  for (size_t index = 0; index < classes.size(); ++index) {
    for (ArrayStorage &array : classes[index].arrays)
      DFA_RT_TRY(array.allocateUnbound(*device, stream));
    largestRows = std::max(largestRows, classes[index].hostRows.size());
    largestPresence =
        std::max(largestPresence, classes[index].hostPresence.size() * 4);
    for (size_t row = 0; row < tables.classes[index].segments.size(); ++row)
      refreshRow(index, row);
  }
  DFA_RT_TRY(segmentUploads.prepare(*device, largestRows));
  DFA_RT_TRY(presenceUploads.prepare(*device, largestPresence));
  DFA_RT_TRY(groupUploads.prepare(*device, hostGroups.size() * 8));
  DFA_RT_TRY(fieldUploads.prepare(*device, fieldBytes));
  DFA_RT_TRY(uploadTables(stream));
  rowsDirty = presenceDirty = groupsDirty = true;
  DFA_RT_TRY(uploadSegments(stream));
  DFA_RT_TRY(uploadGroups(stream));
  DFA_RT_TRY(device->synchronize(stream));
  prepared = true;
  return Status();
}

// The group of every atom; empty if no statistic is kept for each group.
static std::vector<uint32_t> groupsOfAtoms(const Program &program,
                                           const Tables &tables) {
  std::vector<uint32_t> groups;
  if (program.groupStats == 0)
    return groups;
  groups.resize(tables.atoms.size());
  for (const ClassInfo &info : tables.classes)
    for (int64_t atom = info.rows.atoms.begin; atom < info.rows.atoms.end;
         ++atom)
      groups[atom] = info.segments[tables.atoms[atom].segment].group;
  return groups;
}

// Tables that never change again are copied from where they are.
Status State::uploadTables(Stream stream) {
  HostMemory staging;
  size_t rows = tables.chunks.size() + tables.atoms.size() + tables.full.size();
  std::vector<uint32_t> groups = groupsOfAtoms(program, tables);
  DFA_RT_TRY(allocateHost(*device,
                          sizeof(hostControl) + rows * sizeof(dfa_rt_chunk_t) +
                              groups.size() * sizeof(uint32_t),
                          staging));
  char *next = static_cast<char *>(staging.get().handle);
  auto copy = [&](void *target, const void *source, size_t bytes) {
    if (bytes == 0)
      return Status();
    std::memcpy(next, source, bytes);
    Status status = device->copy(target, next, bytes, stream);
    next += bytes;
    return status;
  };
  DFA_RT_TRY(copy(chunks, tables.chunks.data(),
                  tables.chunks.size() * sizeof(dfa_rt_chunk_t)));
  DFA_RT_TRY(copy(atoms, tables.atoms.data(),
                  tables.atoms.size() * sizeof(dfa_rt_chunk_t)));
  DFA_RT_TRY(copy(full, tables.full.data(),
                  tables.full.size() * sizeof(dfa_rt_chunk_t)));
  DFA_RT_TRY(copy(control, &hostControl, sizeof(hostControl)));
  DFA_RT_TRY(copy(atomGroups, groups.data(), groups.size() * sizeof(uint32_t)));
  // The staging memory goes when this function returns.
  return device->synchronize(stream);
}

void State::refreshRow(int64_t classIndex, int64_t segment) {
  ClassState &state = classes[classIndex];
  const SegmentInfo &info = tables.classes[classIndex].segments[segment];
  const ProgramClass &record = program.classes[classIndex];
  dfa_rt_segment_t header{info.elements, info.firstAtom, info.atoms, info.group,
                          DFA_RT_SEGMENT_VECTOR};
  char *row = state.hostRows.data() + segment * state.rowBytes;
  for (size_t index = 0; index < state.arrays.size(); ++index) {
    uint64_t base =
        reinterpret_cast<uint64_t>(state.arrays[index].segmentAddress(segment));
    // Chunks cover the local part, which lies inside a full array.
    if (base != 0 && record.arrays[index].full)
      base += info.localOffset * sizeOf(record.arrays[index].element);
    // A vector is four elements, or 16 bytes if that is less.
    uint64_t alignment =
        std::min<uint64_t>(16, 4 * sizeOf(record.arrays[index].element));
    if (base % alignment != 0)
      header.flags &= ~DFA_RT_SEGMENT_VECTOR;
    std::memcpy(row + sizeof(header) + index * sizeof(base), &base,
                sizeof(base));
  }
  std::memcpy(row, &header, sizeof(header));
  rowsDirty = true;
}

Status State::uploadSegments(Stream stream) {
  if (!rowsDirty && !presenceDirty)
    return Status();
  for (size_t index = 0; index < classes.size(); ++index) {
    ClassState &state = classes[index];
    if (rowsDirty)
      DFA_RT_TRY(segmentUploads.upload(state.rows, state.hostRows.data(),
                                       state.hostRows.size(), stream));
    if (!presenceDirty)
      continue;
    DFA_RT_TRY(presenceUploads.upload(state.presence, state.hostPresence.data(),
                                      state.hostPresence.size() * 4, stream));
    DFA_RT_TRY(spreadPresence(index, state.presence, stream));
  }
  rowsDirty = presenceDirty = false;
  return Status();
}

Status State::uploadGroups(Stream stream) {
  if (!groupsDirty)
    return Status();
  DFA_RT_TRY(groupUploads.upload(groups, hostGroups.data(),
                                 hostGroups.size() * 8, stream));
  groupsDirty = false;
  return Status();
}

Status State::spreadPresence(int64_t classIndex, const uint32_t *words,
                             Stream stream) {
  ClassState &state = classes[classIndex];
  if (state.hostPresence.empty())
    return Status();
  return device->copy2D(&state.state->active, sizeof(dfa_rt_segment_state_t),
                        words, 4, 4, state.hostPresence.size(), stream);
}

Status State::readBack(Stream stream) {
  return device->copy(mirror, control, sizeof(*mirror), stream);
}

Status State::write(void *target, const void *source, size_t bytes,
                    Stream stream) {
  return fieldUploads.upload(target, source, bytes, stream);
}

} // namespace dfa::rt
