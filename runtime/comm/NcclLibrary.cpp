// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding one NCCL, not two: a second copy in a process has its own state and
// has cost people days.

#include "comm/NcclLibrary.h"

#include <dlfcn.h>

namespace dfa::rt {

namespace {

constexpr const char *kName = "libnccl.so.2";

Status openLibrary(const Environment &env, void *&handle, bool &reused) {
  const char *given = env("DFA_NCCL");
  if (given && *given) {
    reused = ::dlopen(given, RTLD_NOW | RTLD_NOLOAD) != nullptr;
    handle = ::dlopen(given, RTLD_NOW | RTLD_LOCAL);
    if (handle)
      return Status();
    return DFA_RT_ERROR(NotFound, "DFA_NCCL: cannot load '%s': %s", given,
                        ::dlerror());
  }
  handle = ::dlopen(kName, RTLD_NOW | RTLD_NOLOAD);
  reused = handle != nullptr;
  if (!handle)
    handle = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (handle)
    return Status();
  return DFA_RT_ERROR(NotFound,
                      "NCCL cannot be loaded: %s; name a copy with DFA_NCCL",
                      ::dlerror());
}

template <typename Function>
bool resolve(void *handle, const char *name, Function &function,
             std::string &missing) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (!function && missing.empty())
    missing = name;
  return function != nullptr;
}

} // namespace

Status NcclLibrary::load(const Environment &env,
                         std::shared_ptr<const NcclLibrary> &library) {
  std::shared_ptr<NcclLibrary> made = std::make_shared<NcclLibrary>();
  void *handle = nullptr;
  DFA_RT_TRY(openLibrary(env, handle, made->reused));

  std::string missing;
  if (resolve(handle, "ncclGetVersion", made->getVersion, missing)) {
    Dl_info info = {};
    if (::dladdr(reinterpret_cast<void *>(made->getVersion), &info) &&
        info.dli_fname)
      made->path = info.dli_fname;
    if (made->getVersion(&made->version) != 0)
      made->version = 0;
  }
  // Before the other symbols: an old library lacks some of them.
  if (missing.empty() && made->version < kMinimumVersion)
    return DFA_RT_ERROR(Unsupported,
                        "NCCL: expected version %s or later, "
                        "found %s in %s",
                        ncclVersionName(kMinimumVersion).c_str(),
                        ncclVersionName(made->version).c_str(),
                        made->path.c_str());
  resolve(handle, "ncclGetUniqueId", made->getUniqueId, missing);
  resolve(handle, "ncclCommInitRank", made->commInitRank, missing);
  resolve(handle, "ncclCommSplit", made->commSplit, missing);
  resolve(handle, "ncclCommDestroy", made->commDestroy, missing);
  resolve(handle, "ncclCommAbort", made->commAbort, missing);
  resolve(handle, "ncclCommGetAsyncError", made->commGetAsyncError, missing);
  resolve(handle, "ncclGetErrorString", made->getErrorString, missing);
  resolve(handle, "ncclGetLastError", made->getLastError, missing);
  resolve(handle, "ncclAllReduce", made->allReduce, missing);
  resolve(handle, "ncclReduceScatter", made->reduceScatter, missing);
  resolve(handle, "ncclAllGather", made->allGather, missing);
  resolve(handle, "ncclBroadcast", made->broadcast, missing);
  if (!missing.empty())
    return DFA_RT_ERROR(
        NotFound, "NCCL: expected the symbol %s in %s", missing.c_str(),
        made->path.empty() ? "the library" : made->path.c_str());
  std::string absent; // nobody asks which
  resolve(handle, "ncclCommInitRankConfig", made->commInitRankConfig, absent);
  resolve(handle, "ncclMemAlloc", made->memAlloc, absent);
  resolve(handle, "ncclMemFree", made->memFree, absent);
  resolve(handle, "ncclCommWindowRegister", made->windowRegister, absent);
  // Its layout has the fields of this version.
  if (made->version < 22700)
    made->commInitRankConfig = nullptr;
  library = std::move(made);
  return Status();
}

std::string NcclLibrary::str() const {
  return ncclVersionName(version) + " (" + path +
         (reused ? ", already loaded)" : ")");
}

std::string ncclVersionName(int version) {
  return format("%d.%d.%d", version / 10000, version / 100 % 100,
                version % 100);
}

void ncclMovement(DataType type, int &ncclType, size_t &factor) {
  // Bits are bits: every type moves as an integer of its width.
  switch (sizeOf(type)) {
  case 8:
    ncclType = nccl::Uint64;
    factor = 1;
    return;
  case 4:
    ncclType = nccl::Uint32;
    factor = 1;
    return;
  case 2:
    ncclType = nccl::Float16;
    factor = 1;
    return;
  default:
    ncclType = nccl::Uint8;
    factor = sizeOf(type);
    return;
  }
}

Status ncclReduction(DataType type, ReduceOp op, int &ncclType, int &ncclOp) {
  ncclOp = op == ReduceOp::Sum ? nccl::Sum : nccl::Max;
  switch (type) {
  case DataType::F64:
    ncclType = nccl::Float64;
    break;
  case DataType::F32:
    ncclType = nccl::Float32;
    break;
  case DataType::F16:
    ncclType = nccl::Float16;
    break;
  case DataType::BF16:
    ncclType = nccl::Bfloat16;
    break;
  case DataType::I64:
    ncclType = nccl::Int64;
    break;
  case DataType::I32:
    ncclType = nccl::Int32;
    break;
  case DataType::I8:
    ncclType = nccl::Int8;
    break;
  case DataType::U32:
    ncclType = nccl::Uint32;
    break;
  default:
    return DFA_RT_ERROR(Unsupported, "NCCL cannot reduce elements of type %s",
                        name(type));
  }
  return Status();
}

} // namespace dfa::rt
