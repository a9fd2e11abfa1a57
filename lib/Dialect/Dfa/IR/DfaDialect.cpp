// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect: registration, constants, and the attributes it puts on
// functions of other dialects.

#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::dfa;

#include "dfa/IR/DfaDialect.cpp.inc"
#include "dfa/IR/DfaEnums.cpp.inc"
#include "dfa/IR/DfaFormatInterface.cpp.inc"
#include "dfa/IR/DfaInterfaces.cpp.inc"

void DfaDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dfa/IR/DfaOps.cpp.inc"
      >();
}

Operation *DfaDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                           Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

/// What the runtime and the scaler's arithmetic need of an initial value.
static StringRef getFieldBound(StringRef name, double value) {
  if (name == "scale" || name == "growth_factor" || name == "backoff_factor" ||
      name == "average" || name == "growth_interval")
    return value > 0 ? "" : "above 0";
  // Counts down past zero while overflows last.
  if (name == "hysteresis_tracker")
    return "";
  return value >= 0 ? "" : "at least 0";
}

/// Checks one entry of the `dfa.control` dictionary.
static LogicalResult verifyControlField(Operation *op, NamedAttribute entry) {
  Type type = getControlFieldType(entry.getName(), op->getContext());
  if (!type)
    return op->emitOpError("has no control field '")
           << entry.getName().getValue() << "'; fields are "
           << listControlFields();
  if (isa<FloatType>(type)) {
    auto value = dyn_cast<FloatAttr>(entry.getValue());
    if (!value)
      return op->emitOpError("expects control field '")
             << entry.getName().getValue() << "' to be a float, but got "
             << entry.getValue();
    double number = value.getValueAsDouble();
    if (type.isF32())
      number = static_cast<float>(number);
    if (!std::isfinite(number))
      return op->emitOpError("expects control field '")
             << entry.getName().getValue() << "' to be finite as " << type
             << ", but got " << value;
    StringRef bound = getFieldBound(entry.getName(), number);
    if (!bound.empty())
      return op->emitOpError("expects control field '")
             << entry.getName().getValue() << "' to be " << bound
             << ", but got " << value;
    return success();
  }
  auto value = dyn_cast<IntegerAttr>(entry.getValue());
  if (!value)
    return op->emitOpError("expects control field '")
           << entry.getName().getValue() << "' to be an integer, but got "
           << entry.getValue();
  if (!value.getValue().isSignedIntN(type.getIntOrFloatBitWidth()))
    return op->emitOpError("expects control field '")
           << entry.getName().getValue() << "' to fit " << type << ", but got "
           << value;
  StringRef bound = getFieldBound(
      entry.getName(), static_cast<double>(value.getValue().getSExtValue()));
  if (!bound.empty())
    return op->emitOpError("expects control field '")
           << entry.getName().getValue() << "' to be " << bound << ", but got "
           << value;
  return success();
}

LogicalResult DfaDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name != kControlAttr && name != kPresenceAttr)
    return op->emitOpError("has no attribute '")
           << name << "' in dialect 'dfa'";
  if (!isa<FunctionOpInterface>(op))
    return op->emitOpError("expects '") << name << "' on a function only";
  if (name == kPresenceAttr) {
    auto axes = dyn_cast<ArrayAttr>(attribute.getValue());
    if (axes && llvm::all_of(axes, llvm::IsaPred<StringAttr>))
      return success();
    return op->emitOpError("expects '")
           << kPresenceAttr << "' to be a list of mesh axes, but got "
           << attribute.getValue();
  }
  auto values = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!values)
    return op->emitOpError("expects '")
           << kControlAttr << "' to be a dictionary of control fields, but got "
           << attribute.getValue();
  for (NamedAttribute entry : values)
    if (failed(verifyControlField(op, entry)))
      return failure();
  return success();
}

/// Checks `dfa.role` on the argument or result `index` of `op`.
static LogicalResult verifyRole(Operation *op, Type type, StringRef what,
                                unsigned index, NamedAttribute attribute) {
  if (attribute.getName() != kRoleAttr)
    return op->emitOpError("has no attribute '")
           << attribute.getName().getValue() << "' in dialect 'dfa'";
  auto role = dyn_cast<StringAttr>(attribute.getValue());
  if (!role || role.empty())
    return op->emitOpError("expects '")
           << kRoleAttr << "' of " << what << " #" << index
           << " to be a non-empty string, but got " << attribute.getValue();
  if (isa<ControlType>(type) != (role == "control"))
    return op->emitOpError("expects role 'control' on values of type ")
           << "'!dfa.control' and on no other, but " << what << " #" << index
           << " of type " << type << " has role '" << role.getValue() << "'";
  return success();
}

LogicalResult DfaDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned argument,
                                                   NamedAttribute attribute) {
  // Called by the function interface's own verifier only.
  auto function = cast<FunctionOpInterface>(op);
  return verifyRole(op, function.getArgumentTypes()[argument], "argument",
                    argument, attribute);
}

LogicalResult DfaDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  auto function = cast<FunctionOpInterface>(op);
  return verifyRole(op, function.getResultTypes()[result], "result", result,
                    attribute);
}

#include "DfaAsm.h"

#define GET_OP_CLASSES
#include "dfa/IR/DfaOps.cpp.inc"
