// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Table strides and array positions of a kernel.

#include "KernelLayout.h"
#include "dfa-rt/abi.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::dfa;

int64_t KernelLayout::getBaseOffset(unsigned i) const {
  return sizeof(dfa_rt_segment_t) + 8 * arrayIndices[i];
}

static int64_t getRowBytes(int64_t arrays) {
  return llvm::alignTo(sizeof(dfa_rt_segment_t) + 8 * arrays, 16);
}

static ArrayRef<Attribute> getArrays(Operation *kernel) {
  if (KernelOp element = dyn_cast<KernelOp>(kernel))
    return element.getArrays().getValue();
  return {};
}

/// The class a kernel works on: the last name of its symbol.
static StringRef getClassName(Operation *kernel) {
  if (KernelOp element = dyn_cast<KernelOp>(kernel))
    return element.getCls().getLeafReference().getValue();
  if (SegmentKernelOp segment = dyn_cast<SegmentKernelOp>(kernel))
    return segment.getCls().getLeafReference().getValue();
  return {};
}

/// Columns that the kernel's own ops name: the layout without a program.
static KernelLayout getOwnLayout(Operation *kernel) {
  KernelLayout layout;
  for (auto [i, array] : llvm::enumerate(getArrays(kernel)))
    layout.arrayIndices.push_back(i);
  layout.segmentRowBytes = getRowBytes(layout.arrayIndices.size());
  auto use = [](int64_t &columns, int64_t column) {
    columns = std::max(columns, column + 1);
  };
  kernel->walk([&](Operation *op) {
    if (LoadHyperOp load = dyn_cast<LoadHyperOp>(op))
      use(layout.hyperColumns, load.getColumn());
    else if (LoadDerivedOp load = dyn_cast<LoadDerivedOp>(op))
      use(layout.derivedColumns, load.getSlot());
    else if (StoreDerivedOp store = dyn_cast<StoreDerivedOp>(op))
      use(layout.derivedColumns, store.getSlot());
    else if (LoadGroupStatOp load = dyn_cast<LoadGroupStatOp>(op))
      use(layout.groupStats, load.getSlot());
  });
  if (ControlKernelOp control = dyn_cast<ControlKernelOp>(kernel))
    layout.groupStats = control.getGroupAccumulators().size();
  return layout;
}

FailureOr<KernelLayout> dfa::getKernelLayout(Operation *kernel) {
  KernelLayout layout = getOwnLayout(kernel);
  ModuleOp module = kernel->getParentOfType<ModuleOp>();
  ProgramOp program;
  for (ProgramOp op : module.getOps<ProgramOp>()) {
    if (program)
      return op.emitOpError("expects one program in a module of kernels"),
             failure();
    program = op;
  }
  if (!program)
    return layout;
  layout.hyperColumns = program.getHyper().size();
  layout.groupStats = program.getGroupStats();
  StringRef name = getClassName(kernel);
  if (name.empty())
    return layout;

  ProgramClassOp cls;
  for (ProgramClassOp op : program.getBody().front().getOps<ProgramClassOp>())
    if (op.getCls() == name)
      cls = op;
  if (!cls) {
    InFlightDiagnostic diag = kernel->emitOpError("expects a class of the "
                                                  "program, but got '")
                              << name << "'";
    diag.attachNote(program.getLoc()) << "the program is here";
    return diag;
  }
  layout.derivedColumns = cls.getDerived();
  layout.segmentRowBytes = getRowBytes(cls.getArrays().size());
  for (auto [i, attr] : llvm::enumerate(getArrays(kernel))) {
    KernelArrayAttr array = cast<KernelArrayAttr>(attr);
    ArrayRef<Attribute> list = cls.getArrays().getValue();
    const Attribute *found = llvm::find(list, array.getName());
    if (found == list.end()) {
      InFlightDiagnostic diag = kernel->emitOpError("expects arrays of class '")
                                << name << "', but got '"
                                << array.getName().getValue() << "'";
      diag.attachNote(cls.getLoc()) << "the class's arrays are listed here";
      return diag;
    }
    layout.arrayIndices[i] = found - list.begin();
  }
  return layout;
}
