// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level A ops: verification and look-up.

#include "DfaAsm.h"
#include "dfa/IR/Dfa.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::dfa;

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

AxisAttr MeshOp::getAxis(StringRef name) {
  for (AxisAttr axis : getAxes().getAsRange<AxisAttr>())
    if (axis.getName().getValue() == name)
      return axis;
  return {};
}

int64_t MeshOp::getRanks() {
  int64_t ranks = 1;
  for (AxisAttr axis : getAxes().getAsRange<AxisAttr>())
    ranks *= axis.getSize();
  return ranks;
}

LogicalResult MeshOp::verify() {
  if (getAxes().empty())
    return emitOpError("expects at least one axis");
  llvm::StringSet<> names;
  int64_t ranks = 1;
  for (AxisAttr axis : getAxes().getAsRange<AxisAttr>()) {
    StringRef name = axis.getName().getValue();
    if (name.empty())
      return emitOpError("expects axis names that are not empty");
    if (!names.insert(name).second)
      return emitOpError("expects axis names that differ, but '")
             << name << "' occurs twice";
    if (axis.getSize() < 1)
      return emitOpError("expects axis '")
             << name << "' to have at least 1 rank, but got " << axis.getSize();
    if (axis.getSize() > (int64_t(1) << 31) / ranks)
      return emitOpError("expects at most 2^31 ranks");
    ranks *= axis.getSize();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// LayoutOp
//===----------------------------------------------------------------------===//

ClassOp LayoutOp::getClass(StringRef name) {
  for (ClassOp cls : getBody().getOps<ClassOp>())
    if (cls.getSymName() == name)
      return cls;
  return {};
}

MeshOp LayoutOp::getMeshOp() {
  Operation *scope = getOperation()->getParentOp();
  if (!getMeshAttr() || !scope)
    return {};
  return ::mlir::SymbolTable::lookupNearestSymbolFrom<MeshOp>(scope,
                                                              getMeshAttr());
}

LogicalResult LayoutOp::verify() {
  if (getBucketBytes() && static_cast<int64_t>(*getBucketBytes()) < 1)
    return emitOpError("expects 'bucket_bytes' of at least 1, but got ")
           << static_cast<int64_t>(*getBucketBytes());
  return success();
}

LogicalResult LayoutOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!getMeshAttr())
    return success();
  Operation *scope = getOperation()->getParentOp();
  if (!tables.lookupNearestSymbolFrom<MeshOp>(scope, getMeshAttr()))
    return emitOpError("expects ")
           << getMeshAttr() << " to be a 'dfa.mesh', but found none";
  return success();
}

LogicalResult LayoutOp::verifyRegions() {
  llvm::StringMap<ParamOp> params;
  llvm::SmallDenseMap<int64_t, GroupOp> groups;
  for (Operation &op : getBody().front()) {
    if (!isa<ClassOp, GroupOp, ParamOp>(op))
      return op.emitOpError("is not allowed in a 'dfa.layout'; expects ")
             << "'dfa.class', 'dfa.group' or 'dfa.param'";
    if (auto group = dyn_cast<GroupOp>(op)) {
      auto [it, isNew] = groups.try_emplace(group.getIndex(), group);
      if (isNew)
        continue;
      InFlightDiagnostic diag = group.emitOpError("defines group ")
                                << group.getIndex() << " twice";
      diag.attachNote(it->second.getLoc()) << "first defined here";
      return diag;
    }
    auto param = dyn_cast<ParamOp>(op);
    if (!param)
      continue;
    auto [it, isNew] = params.try_emplace(param.getName(), param);
    if (!isNew) {
      InFlightDiagnostic diag = param.emitOpError("defines parameter '")
                                << param.getName() << "' twice";
      diag.attachNote(it->second.getLoc()) << "first defined here";
      return diag;
    }
  }
  for (ParamOp param : getBody().getOps<ParamOp>()) {
    ClassOp cls = getClass(param.getCls());
    if (!cls)
      return param.emitOpError("expects a 'dfa.class' ")
             << param.getClsAttr() << " in this layout, but found none";
    Type stored = getStoredTypes(cls.getParam(), getContext()).front();
    Type element = cast<ShapedType>(param.getType()).getElementType();
    if (element == stored)
      continue;
    InFlightDiagnostic diag = param.emitOpError("expects elements of type ")
                              << stored << ", the class's parameter format, "
                              << "but got " << element;
    diag.attachNote(cls.getLoc()) << "class defined here";
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ClassOp
//===----------------------------------------------------------------------===//

LogicalResult ClassOp::verify() {
  if (getParam() == Format::None || getParam() == Format::Remainder)
    return emitOpError("expects a parameter format with one element, but got '")
           << stringifyFormat(getParam()) << "'";
  if (getGrad() == Format::None || getGrad() == Format::Remainder)
    return emitOpError("expects a gradient format with one element, but got '")
           << stringifyFormat(getGrad()) << "'";
  if (getMaster() == Format::Remainder && getParam() != Format::BF16)
    return emitOpError("expects bf16 parameters with a remainder master, ")
           << "but got '" << stringifyFormat(getParam()) << "'";
  llvm::StringSet<> names{"grad", "param", "master", "remainder", "control"};
  for (StateAttr state : getStates().getAsRange<StateAttr>()) {
    if (state.getName().empty())
      return emitOpError("expects state names that are not empty");
    if (!names.insert(state.getName().getValue()).second)
      return emitOpError("expects state names that differ from each other and "
                         "from 'grad', 'param', 'master', 'remainder' and "
                         "'control', but got '")
             << state.getName().getValue() << "'";
    if (state.getFormat() == Format::None ||
        state.getFormat() == Format::Remainder)
      return emitOpError("expects state '")
             << state.getName().getValue()
             << "' in a format with one element, but got '"
             << stringifyFormat(state.getFormat()) << "'";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// GroupOp
//===----------------------------------------------------------------------===//

/// Groups are rows of one table on the device, from the first to the last.
static constexpr int64_t kMaxGroups = 1 << 20;

LogicalResult GroupOp::verify() {
  if (static_cast<int64_t>(getIndex()) < 0)
    return emitOpError("expects an index of at least 0, but got ")
           << static_cast<int64_t>(getIndex());
  if (static_cast<int64_t>(getIndex()) >= kMaxGroups)
    return emitOpError("expects an index below ")
           << kMaxGroups << ", but got " << static_cast<int64_t>(getIndex());
  for (NamedAttribute entry : getHyper()) {
    auto value = dyn_cast<FloatAttr>(entry.getValue());
    StringRef name = entry.getName().getValue();
    if (!value || !value.getType().isF64())
      return emitOpError("expects hyper-parameter '")
             << name << "' to be an f64, but got " << entry.getValue();
    double number = value.getValueAsDouble();
    if (!value.getValue().isFinite())
      return emitOpError("expects hyper-parameter '")
             << name << "' to be finite, but got " << entry.getValue();
    if (number < 0)
      return emitOpError("expects hyper-parameter '")
             << name << "' to be at least 0, but got " << entry.getValue();
    if ((name.starts_with("beta") || name == "alpha") && number >= 1)
      return emitOpError("expects hyper-parameter '")
             << name << "' to be below 1, but got " << entry.getValue();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ParamOp
//===----------------------------------------------------------------------===//

LogicalResult ParamOp::verify() {
  if (getName().empty())
    return emitOpError("expects a name that is not empty");
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("expects a ranked tensor type of static shape, but got ")
           << getType();
  if (type.getEncoding())
    return emitOpError("expects a tensor type without encoding, but got ")
           << getType();
  int64_t elements = 1;
  for (int64_t dim : type.getShape()) {
    // A dim of 0 makes the product 0, but the rest must not overflow either.
    dim = std::max<int64_t>(dim, 1);
    if (elements > std::numeric_limits<int64_t>::max() / 16 / dim)
      return emitOpError("expects fewer than 2^59 elements, but got ")
             << getType();
    elements *= dim;
  }
  if (static_cast<int64_t>(getGroup()) < 0)
    return emitOpError("expects a group of at least 0, but got ")
           << static_cast<int64_t>(getGroup());
  if (static_cast<int64_t>(getGroup()) >= kMaxGroups)
    return emitOpError("expects a group below ")
           << kMaxGroups << ", but got " << static_cast<int64_t>(getGroup());
  if (!getOrder())
    return success();
  ArrayRef<int64_t> order = *getOrder();
  if (static_cast<int64_t>(order.size()) != type.getRank())
    return emitOpError("expects an order of ")
           << type.getRank() << " dims, but got " << order.size();
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t dim : order) {
    if (dim < 0 || dim >= type.getRank())
      return emitOpError("expects dims from 0 to ")
             << type.getRank() - 1 << " in its order, but got " << dim;
    if (!seen.insert(dim).second)
      return emitOpError("expects each dim once in its order, but got ")
             << dim << " twice";
  }
  return success();
}
