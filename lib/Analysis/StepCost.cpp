// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a compiled step costs, read from level C.

#include "dfa/Analysis/StepCost.h"
#include "dfa-rt/abi.h"
#include "dfa/Analysis/LayoutPlan.h"
#include "layout/Tables.h"

using namespace mlir;
using namespace mlir::dfa;
namespace layout = ::dfa::layout;

namespace {

/// Sizes of one class on one rank.
struct ClassSize {
  int64_t elements = 0; // of all parameters
  int64_t local = 0;    // that this rank updates
  int64_t full = 0;     // of a full array, padding included
  int64_t shard = 0;    // of a shard array
  int64_t buckets = 1;
  int64_t segments = 0; // parameters, empty ones too
};

class CostBuilder {
public:
  CostBuilder(ModuleOp module, ProgramOp program, const CostOptions &options)
      : module(module), program(program), options(options) {}

  FailureOr<StepCost> run();

private:
  LogicalResult measureLayout();
  LogicalResult addCommand(Operation *op);
  KernelCost &getKernel(StringRef name);
  void addLaunch(Operation *op, StringRef kernel, StringRef cls);
  void addCollective(CollectiveOp op);
  void addMemory();
  int64_t getRepeats(Operation *op) const;
  double getArrayBytes(StringRef cls, StringRef array);
  bool isShard(CollectiveOp op);
  bool isShardArray(StringRef cls, StringRef array);

  ModuleOp module;
  ProgramOp program;
  const CostOptions &options;
  StepCost cost;
  layout::Mesh mesh;
  llvm::StringMap<ClassSize> sizes;
  /// Arrays that collectives use: whether their shard is what counts by now.
  llvm::StringMap<bool> isScattered;
  int64_t total = 0;
  double wireMs = 0;
};

} // namespace

static double getBytes(Type type) { return type.getIntOrFloatBitWidth() / 8.0; }

LogicalResult CostBuilder::measureLayout() {
  auto op = SymbolTable::lookupNearestSymbolFrom<LayoutOp>(
      module, program.getLayoutAttr());
  if (!op)
    return program.emitOpError("expects a 'dfa.layout' ")
           << program.getLayoutAttr() << ", but found none";
  if (MeshOp meshOp = op.getMeshOp()) {
    if (AxisAttr axis = meshOp.getAxis("replicate"))
      mesh.replicate = axis.getSize();
    if (AxisAttr axis = meshOp.getAxis("shard"))
      mesh.shard = axis.getSize();
  }
  if (options.replicate > 0)
    mesh.replicate = options.replicate;
  if (options.shard > 0)
    mesh.shard = options.shard;
  FailureOr<layout::Plan> plan = planLayout(op, mesh);
  if (failed(plan))
    return failure();
  for (auto [index, spec] : llvm::enumerate(plan->classes())) {
    const layout::ClassLayout &rows = plan->classLayouts()[index];
    ClassSize &size = sizes[spec.name];
    for (int64_t at = rows.sequenceBegin; at < rows.sequenceEnd; ++at)
      size.elements += plan->placements()[plan->sequence()[at]].elements;
    size.full = rows.fullElements;
    size.shard = rows.shardElements;
    size.local = (size.elements + mesh.shard - 1) / mesh.shard;
    size.buckets = rows.bucketEnd - rows.bucketBegin;
    size.segments = rows.sequenceEnd - rows.sequenceBegin;
    total += size.elements;
  }
  if (!plan->params().empty())
    cost.elements = plan->elements();
  return success();
}

KernelCost &CostBuilder::getKernel(StringRef name) {
  for (KernelCost &kernel : cost.kernels)
    if (kernel.name == name)
      return kernel;
  cost.kernels.push_back({});
  cost.kernels.back().name = name.str();
  return cost.kernels.back();
}

/// How often a command runs in a step.
int64_t CostBuilder::getRepeats(Operation *op) const {
  auto buckets = [&](StringRef cls) {
    auto it = sizes.find(cls);
    return it == sizes.end() ? int64_t(1) : it->second.buckets;
  };
  if (auto loop = op->getParentOfType<ForEachBucketOp>())
    return buckets(loop.getCls());
  // The reduce entry runs once for each bucket of the class.
  if (op->getParentOfType<EntryOp>().getKind() != Entry::Reduce)
    return 1;
  if (auto launch = dyn_cast<LaunchElementsOp>(op))
    return buckets(launch.getCls());
  return 1;
}

void CostBuilder::addLaunch(Operation *op, StringRef name, StringRef cls) {
  int64_t repeats = getRepeats(op);
  cost.launches += repeats;
  KernelCost &kernel = getKernel(name);
  bool known = kernel.launches > 0;
  kernel.launches += repeats;
  auto elementKernel = module.lookupSymbol<KernelOp>(name);
  if (!elementKernel || known)
    return;
  for (auto array : elementKernel.getArrays().getAsRange<KernelArrayAttr>()) {
    ArrayCost entry{array.getName().str(), getBytes(array.getType())};
    if (array.isRead())
      kernel.reads.push_back(entry);
    if (array.isWritten())
      kernel.writes.push_back(entry);
    kernel.bytesPerElement +=
        entry.bytesPerElement * (array.isRead() + array.isWritten());
  }
  kernel.localElements = sizes.lookup(cls).local;
}

double CostBuilder::getArrayBytes(StringRef cls, StringRef array) {
  for (auto op : program.getBody().getOps<ProgramClassOp>()) {
    if (op.getCls() != cls)
      continue;
    for (auto [name, type] : llvm::zip(op.getArrays(), op.getTypes()))
      if (cast<StringAttr>(name).getValue() == array)
        return getBytes(cast<TypeAttr>(type).getValue());
  }
  return 0;
}

/// Whether a reduction or broadcast is of what an earlier collective, or the
/// kernels of an array of shards, left: this rank's shard.
bool CostBuilder::isShard(CollectiveOp op) {
  std::string key = (*op.getCls() + "/" + op.getSource()).str();
  auto it = isScattered.find(key);
  if (it == isScattered.end())
    it =
        isScattered.try_emplace(key, isShardArray(*op.getCls(), op.getSource()))
            .first;
  bool before = it->second;
  if (op.getKind() == Collective::ReduceScatter)
    it->second = true;
  if (op.getKind() == Collective::AllGather)
    it->second = false;
  // A scatter is from, and a gather to, the full array.
  return before && op.getKind() != Collective::ReduceScatter &&
         op.getKind() != Collective::AllGather;
}

bool CostBuilder::isShardArray(StringRef cls, StringRef array) {
  for (auto op : program.getBody().getOps<ProgramClassOp>()) {
    if (op.getCls() != cls)
      continue;
    for (auto [name, part] : llvm::zip(op.getArrays(), op.getParts()))
      if (cast<StringAttr>(name).getValue() == array)
        return cast<PartAttr>(part).getValue() == Part::Shard;
  }
  return false;
}

/// Bytes that one rank sends in a ring, the least for large messages.
void CostBuilder::addCollective(CollectiveOp op) {
  CollectiveCost entry;
  entry.kind = stringifyCollective(op.getKind()).str();
  entry.axis = op.getAxis().str();
  entry.ranks = op.getAxis() == "shard"       ? mesh.shard
                : op.getAxis() == "replicate" ? mesh.replicate
                                              : 1;
  double bytes = 8.0 * op.getAccs() * entry.ranks;
  if (op.getSource() == "stats") {
    bytes *= static_cast<double>(sizes.lookup(*op.getCls()).segments);
  } else if (op.getSource() == "presence") {
    bytes = 0; // a word a parameter of every class
    for (const auto &size : sizes)
      bytes += 4.0 * static_cast<double>(size.second.segments);
  } else if (op.getCls()) {
    ClassSize size = sizes.lookup(*op.getCls());
    bytes = getArrayBytes(*op.getCls(), op.getSource()) *
            (isShard(op) ? size.shard : size.full);
  }
  double part = (entry.ranks - 1.0) / entry.ranks;
  if (op.getKind() == Collective::AllReduce)
    part *= 2;
  if (op.getKind() == Collective::Broadcast)
    part = entry.ranks > 1 ? 1 : 0;
  entry.bytesOnWirePerRank = bytes * part;
  wireMs += entry.bytesOnWirePerRank / options.link / 1e6;
  cost.collectives.push_back(entry);
}

LogicalResult CostBuilder::addCommand(Operation *op) {
  if (auto launch = dyn_cast<LaunchElementsOp>(op))
    addLaunch(op, launch.getKernel(), launch.getCls());
  if (auto launch = dyn_cast<LaunchSegmentsOp>(op))
    addLaunch(op, launch.getKernel(), launch.getCls());
  if (auto launch = dyn_cast<LaunchControlOp>(op))
    addLaunch(op, launch.getKernel(), "");
  if (auto collective = dyn_cast<CollectiveOp>(op))
    addCollective(collective);
  if (auto memset = dyn_cast<MemsetOp>(op)) {
    // Counted with the kernels: it moves bytes as they do.
    KernelCost &kernel = getKernel("memset");
    double bytes = getArrayBytes(memset.getCls(), memset.getArray());
    kernel.launches += 1;
    kernel.writes.push_back({memset.getArray().str(), bytes});
    kernel.bytesPerElement += bytes;
    kernel.localElements += sizes.lookup(memset.getCls()).local;
    cost.launches += 1;
  }
  return success();
}

/// Arrays as the runtime would allocate them all, and the tables.
void CostBuilder::addMemory() {
  double stateBytes = 0;
  for (auto cls : program.getBody().getOps<ProgramClassOp>()) {
    ClassSize size = sizes.lookup(cls.getCls());
    for (auto [name, type, part] :
         llvm::zip(cls.getArrays(), cls.getTypes(), cls.getParts())) {
      double bytes = getBytes(cast<TypeAttr>(type).getValue());
      bool isFull = cast<PartAttr>(part).getValue() == Part::Full;
      StringRef array = cast<StringAttr>(name).getValue();
      cost.peakBytesPerRank += bytes * (isFull ? size.full : size.shard);
      if (array != "grad" && array != "param")
        stateBytes +=
            bytes * (total ? static_cast<double>(size.elements) / total : 1.0);
    }
    double rows = 8.0 * program.getAccumulators() + sizeof(dfa_rt_chunk_t);
    cost.peakBytesPerRank += rows * size.local / DFA_RT_ATOM_ELEMENTS;
  }
  cost.stateBytesPerParameter = stateBytes;
}

FailureOr<StepCost> CostBuilder::run() {
  if (failed(measureLayout()))
    return failure();
  for (auto entry : program.getBody().getOps<EntryOp>())
    if (entry.getKind() != Entry::ZeroGrad && entry.getKind() != Entry::Fill)
      entry.walk([&](Operation *op) { (void)addCommand(op); });
  addMemory();
  double bytes = 0, elementBytes = 0;
  int64_t withClasses = 0;
  for (const KernelCost &kernel : cost.kernels) {
    bytes += kernel.bytesPerElement * kernel.localElements;
    elementBytes += kernel.bytesPerElement;
    withClasses += kernel.localElements;
  }
  int64_t local = 0;
  for (auto &entry : sizes)
    local += entry.second.local;
  cost.bytesPerElement =
      withClasses && local ? bytes / static_cast<double>(local) : elementBytes;
  double memoryMs = bytes / options.bandwidth / 1e6;
  cost.floorMs = std::max(memoryMs, wireMs);
  return cost;
}

FailureOr<StepCost> mlir::dfa::computeStepCost(ModuleOp module,
                                               const CostOptions &options) {
  auto programs = module.getOps<ProgramOp>();
  if (programs.empty())
    return emitError(module.getLoc(), "expects a step or a 'dfa.program' to "
                                      "report on");
  return CostBuilder(module, *programs.begin(), options).run();
}
