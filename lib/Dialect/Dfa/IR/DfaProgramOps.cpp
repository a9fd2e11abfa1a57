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
  if (static_cast<int64_t>(getAccumulators()) < 0 ||
      static_cast<int64_t>(getGroupStats()) < 0)
    return emitOpError("expects counts of at least 0");
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  llvm::SmallDenseSet<Entry> entries;
  llvm::StringSet<> classes;
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
    if (!classes.insert(cls.getCls()).second)
      return cls.emitOpError("defines class ")
             << cls.getClsAttr() << " twice";
  }
  return success();
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
  if (static_cast<int64_t>(getDerived()) < 0)
    return emitOpError("expects at least 0 derived values, but got ")
           << static_cast<int64_t>(getDerived());
  return success();
}

LogicalResult CollectiveOp::verify() {
  bool isSums = getSource() == "sums";
  if (isSums != (getTarget() == "sums"))
    return emitOpError("expects 'sums' to be both source and target");
  if (isSums && getCls())
    return emitOpError("expects no class for 'sums', but got ")
           << getClsAttr();
  if (!isSums && !getCls())
    return emitOpError("expects a class for array '") << getSource() << "'";
  if (isSums && static_cast<int64_t>(getAccs()) < 1)
    return emitOpError("expects at least one accumulator for 'sums'");
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
