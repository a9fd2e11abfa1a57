// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of NCCL's C ABI that we call, declared here so that no nccl.h is
// needed to build, and the library found at run time. Values are NCCL's and
// have not changed since 2.10; what is newer is guarded by the minimum version.

#ifndef DFA_COMM_NCCLLIBRARY_H
#define DFA_COMM_NCCLLIBRARY_H

#include "base/DataType.h"
#include "base/Status.h"
#include "comm/Bootstrap.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace dfa::rt {

namespace nccl {

using Comm = struct OpaqueComm *;
using Result = int; // 0: success
constexpr Result kInProgress = 7;

struct UniqueId {
  char bytes[128];
};

enum Type : int {
  Int8 = 0,
  Uint8 = 1,
  Int32 = 2,
  Uint32 = 3,
  Int64 = 4,
  Uint64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9,
};

enum Op : int { Sum = 0, Max = 2 };

/// ncclConfig_t as of 2.27; later versions read as much as `size` says.
struct Config {
  static constexpr int unset = INT32_MIN;
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22700;
  int blocking = 1;
  int clusterSize = unset;
  int minBlocks = unset;
  int maxBlocks = unset;
  const char *netName = nullptr;
  int splitShare = unset;
  int trafficClass = unset;
  const char *name = nullptr;
  int collnet = unset;
  int policy = unset;
  int shrinkShare = unset;
  int nvlsBlocks = unset;
};

/// Use no block of the device where a copy engine does.
constexpr int kPolicyZero = 2;
/// All ranks use the same offsets in a window.
constexpr int kWindowSymmetric = 1;

} // namespace nccl

/// A loaded NCCL with all symbols resolved.
struct NcclLibrary {
  /// 2.18 brought ncclCommSplit, from which the axes come.
  static constexpr int kMinimumVersion = 21800;

  nccl::Result (*getVersion)(int *version);
  nccl::Result (*getUniqueId)(nccl::UniqueId *id);
  nccl::Result (*commInitRank)(nccl::Comm *comm, int ranks, nccl::UniqueId id,
                               int rank);
  nccl::Result (*commSplit)(nccl::Comm comm, int color, int key,
                            nccl::Comm *made, void *config);
  nccl::Result (*commDestroy)(nccl::Comm comm);
  nccl::Result (*commAbort)(nccl::Comm comm);
  nccl::Result (*commGetAsyncError)(nccl::Comm comm, nccl::Result *error);
  const char *(*getErrorString)(nccl::Result result);
  const char *(*getLastError)(nccl::Comm comm);
  nccl::Result (*allReduce)(const void *send, void *recv, size_t count,
                            int type, int op, nccl::Comm comm, void *stream);
  nccl::Result (*reduceScatter)(const void *send, void *recv, size_t count,
                                int type, int op, nccl::Comm comm,
                                void *stream);
  nccl::Result (*allGather)(const void *send, void *recv, size_t count,
                            int type, nccl::Comm comm, void *stream);
  nccl::Result (*broadcast)(const void *send, void *recv, size_t count,
                            int type, int root, nccl::Comm comm, void *stream);

  // Newer than the minimum; null if the library lacks them.
  nccl::Result (*commInitRankConfig)(nccl::Comm *comm, int ranks,
                                     nccl::UniqueId id, int rank,
                                     nccl::Config *config);
  nccl::Result (*memAlloc)(void **memory, size_t bytes);
  nccl::Result (*memFree)(void *memory);
  nccl::Result (*windowRegister)(nccl::Comm comm, void *memory, size_t bytes,
                                 void **window, int flags);

  int version = 0;     ///< as 21803 for 2.18.3
  std::string path;    ///< of the file it came from
  bool reused = false; ///< somebody had loaded it before

  /// "2.28.9 (/usr/lib/libnccl.so.2, already loaded)".
  std::string str() const;

  /// Loads the copy that DFA_NCCL names, else the one already in the process,
  /// else libnccl.so.2; resolves every symbol and checks the version. The
  /// library is never unloaded.
  static Status load(const Environment &env,
                     std::shared_ptr<const NcclLibrary> &library);
};

/// NCCL's number for a reduction. NCCL has no `or`: words that are 0 or 1, as
/// presence bits and flags are, give the same with a maximum.
Status ncclReduction(DataType type, ReduceOp op, int &ncclType, int &ncclOp);

/// How elements are moved: type and elements of it for each of ours.
void ncclMovement(DataType type, int &ncclType, size_t &factor);

/// "2.18.3".
std::string ncclVersionName(int version);

} // namespace dfa::rt

#endif // DFA_COMM_NCCLLIBRARY_H
