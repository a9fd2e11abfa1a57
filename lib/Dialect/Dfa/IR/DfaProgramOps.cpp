// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level C programs: verification and recordability.

#include "DfaAsm.h"
#include "dfa/IR/Dfa.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::dfa;

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  llvm::StringSet<> names;
  for (auto name : getHyper().getAsRange<StringAttr>())
    if (!names.insert(name.getValue()).second)
      return emitOpError("expects hyper-parameters that differ, but got ")
             << name << " twice";
  return success();
}

/// The class of a command and the array in it are in the program's tables.
static LogicalResult verifyArray(Operation *op,
                                 const llvm::StringMap<ProgramClassOp> &classes,
                                 FlatSymbolRefAttr cls, StringRef array = {}) {
  auto it = classes.find(cls.getValue());
  if (it == classes.end())
    return op->emitOpError("expects ")
           << cls << " to be a 'dfa.program_class' of the program";
  ProgramClassOp tables = it->second;
  // Tables of the runtime that collectives work on, beside the arrays.
  if (array.empty() || array == "stats" || array == "presence" ||
      llvm::is_contained(tables.getArrays().getAsValueRange<StringAttr>(),
                         array))
    return success();
  InFlightDiagnostic diag = op->emitOpError("expects an array of class ")
                            << cls << ", but got '" << array << "'";
  diag.attachNote(tables.getLoc()) << "class defined here";
  return diag;
}

static LogicalResult
verifyCommand(Operation *op, const llvm::StringMap<ProgramClassOp> &classes) {
  if (auto launch = dyn_cast<LaunchElementsOp>(op))
    return verifyArray(op, classes, launch.getClsAttr());
  if (auto launch = dyn_cast<LaunchSegmentsOp>(op))
    return verifyArray(op, classes, launch.getClsAttr());
  if (auto loop = dyn_cast<ForEachBucketOp>(op))
    return verifyArray(op, classes, loop.getClsAttr());
  if (auto memset = dyn_cast<MemsetOp>(op))
    return verifyArray(op, classes, memset.getClsAttr(), memset.getArray());
  auto collective = dyn_cast<CollectiveOp>(op);
  if (!collective || !collective.getClsAttr())
    return success();
  if (failed(verifyArray(op, classes, collective.getClsAttr(),
                         collective.getSource())))
    return failure();
  return verifyArray(op, classes, collective.getClsAttr(),
                     collective.getTarget());
}

/// The kernel is of the kind that the command launches, and its accumulators
/// are among the program's. A kernel that is compiled already is not looked
/// into.
template <typename KernelT, typename LaunchT>
static LogicalResult verifyKernel(ProgramOp program, LaunchT launch,
                                  SymbolTableCollection &tables) {
  Operation *found =
      tables.lookupNearestSymbolFrom(program, launch.getKernelAttr());
  if (!isa_and_nonnull<KernelOp, ControlKernelOp, SegmentKernelOp>(found))
    return success();
  auto kernel = dyn_cast<KernelT>(found);
  if (!kernel) {
    InFlightDiagnostic diag = launch.emitOpError("expects ")
                              << launch.getKernelAttr() << " to be a '"
                              << KernelT::getOperationName() << "'";
    diag.attachNote(found->getLoc()) << "kernel defined here";
    return diag;
  }
  uint64_t rows = kernel.getAccumulators().size();
  if (launch.getAcc() <= program.getAccumulators() &&
      rows <= program.getAccumulators() - launch.getAcc())
    return success();
  InFlightDiagnostic diag = launch.emitOpError("expects its ")
                            << rows << " accumulators from row "
                            << launch.getAcc() << " to be among the program's "
                            << program.getAccumulators();
  diag.attachNote(kernel.getLoc()) << "kernel defined here";
  return diag;
}

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &tables) {
  WalkResult result = walk([&](Operation *op) -> WalkResult {
    if (auto launch = dyn_cast<LaunchElementsOp>(op))
      return verifyKernel<KernelOp>(*this, launch, tables);
    if (auto launch = dyn_cast<LaunchControlOp>(op))
      return verifyKernel<ControlKernelOp>(*this, launch, tables);
    if (auto launch = dyn_cast<LaunchSegmentsOp>(op))
      return verifyKernel<SegmentKernelOp>(*this, launch, tables);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ProgramOp::verifyRegions() {
  llvm::SmallDenseSet<Entry> entries;
  llvm::StringMap<ProgramClassOp> classes;
  for (Operation &op : getBody().front()) {
    if (auto entry = dyn_cast<EntryOp>(op)) {
      if (!entries.insert(entry.getKind()).second)
        return entry.emitOpError("defines entry '")
               << stringifyEntry(entry.getKind()) << "' twice";
      continue;
    }
    auto cls = dyn_cast<ProgramClassOp>(op);
    if (!cls)
      return op.emitOpError("is not allowed in a 'dfa.program'; expects "
                            "'dfa.program_class' or 'dfa.entry'");
    if (!classes.try_emplace(cls.getCls(), cls).second)
      return cls.emitOpError("defines class ") << cls.getClsAttr() << " twice";
  }
  WalkResult result = walk(
      [&](Operation *op) -> WalkResult { return verifyCommand(op, classes); });
  return failure(result.wasInterrupted());
}

LogicalResult ProgramClassOp::verify() {
  if (getArrays().size() != getTypes().size() ||
      getArrays().size() != getParts().size())
    return emitOpError("expects one type and one part for each of ")
           << getArrays().size() << " arrays, but got " << getTypes().size()
           << " and " << getParts().size();
  llvm::StringSet<> names;
  for (auto name : getArrays().getAsRange<StringAttr>())
    if (!names.insert(name.getValue()).second)
      return emitOpError("expects arrays that differ, but got ")
             << name << " twice";
  for (Type type : getTypes().getAsValueRange<TypeAttr>())
    if (!isStoredType(type))
      return emitOpError("expects arrays of type f64, f32, f16, bf16, i16 or "
                         "i8, but got ")
             << type;
  return success();
}

LogicalResult CollectiveOp::verify() {
  bool isSums = getSource() == "sums";
  if (isSums != (getTarget() == "sums"))
    return emitOpError("expects 'sums' to be both source and target");
  if (isSums && getCls())
    return emitOpError("expects no class for 'sums', but got ") << getClsAttr();
  bool isPresence = getSource() == "presence";
  if (!isSums && !isPresence && !getCls())
    return emitOpError("expects a class for array '") << getSource() << "'";
  if (isSums && static_cast<int64_t>(getAccs()) < 1)
    return emitOpError("expects at least one accumulator for 'sums'");
  if (isPresence != (getTarget() == "presence"))
    return emitOpError("expects 'presence' to be both source and target");
  if (isPresence && getKind() != Collective::AllReduce)
    return emitOpError("expects an all_reduce of 'presence', but got ")
           << stringifyCollective(getKind());
  bool isStats = getSource() == "stats";
  if (isStats != (getTarget() == "stats"))
    return emitOpError("expects 'stats' to be both source and target");
  if (isStats && getKind() != Collective::AllGather)
    return emitOpError("expects an all_gather of 'stats', but got ")
           << stringifyCollective(getKind());
  if (isStats && static_cast<int64_t>(getAccs()) < 1)
    return emitOpError("expects at least one accumulator for 'stats'");
  if (getGroupAccs() > getAccs() || (getGroupAccs() > 0 && !isSums))
    return emitOpError("expects accumulators of groups among those of 'sums', "
                       "but got ")
           << getGroupAccs();
  return success();
}

LogicalResult FetchOp::verify() {
  Type expected = getControlFieldType(getField(), getContext());
  if (!expected)
    return emitOpError("has no control field '")
           << getField() << "'; fields are " << listControlFields();
  if (getResult().getType() != expected)
    return emitOpError("expects type ")
           << expected << ", but got " << getResult().getType();
  return success();
}

LogicalResult UploadOp::verify() {
  StringRef table = getTable();
  if (table == "segments" || table == "groups" || table == "chunks")
    return success();
  return emitOpError("expects table 'segments', 'groups' or 'chunks', but "
                     "got '")
         << table << "'";
}

//===----------------------------------------------------------------------===//
// Recordability
//===----------------------------------------------------------------------===//

std::string LaunchElementsOp::whyNotRecordable() {
  if (getArgs().empty())
    return {};
  return "a host scalar argument may change between steps; pass it through "
         "device memory";
}
std::string LaunchControlOp::whyNotRecordable() { return {}; }
std::string LaunchSegmentsOp::whyNotRecordable() { return {}; }
std::string CollectiveOp::whyNotRecordable() { return {}; }
std::string ForEachBucketOp::whyNotRecordable() { return {}; }
std::string RecordOp::whyNotRecordable() { return {}; }
std::string WaitOp::whyNotRecordable() { return {}; }
std::string MemsetOp::whyNotRecordable() { return {}; }
std::string UploadOp::whyNotRecordable() { return {}; }
std::string ReadBackOp::whyNotRecordable() { return {}; }
std::string BarrierOp::whyNotRecordable() { return {}; }
std::string FetchOp::whyNotRecordable() {
  return "reads a device value back and waits for it";
}
std::string LoadModuleOp::whyNotRecordable() {
  return "loads a module; do it before the capture";
}
std::string CreateCommunicatorOp::whyNotRecordable() {
  return "creates a communicator; do it before the capture";
}
/// Knowing the rank is harmless; branching on it is reported at the branch.
std::string RankOp::whyNotRecordable() { return {}; }
