// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect in C++: its types, attributes, interfaces and ops, as generated
// from dialects/dfa/IR. Passes over them are in dfa/Transforms.

#ifndef DFA_IR_DFA_H
#define DFA_IR_DFA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dfa/IR/DfaDialect.h.inc"
#include "dfa/IR/DfaEnums.h.inc"

namespace mlir::dfa {

/// What a storage format needs besides its elements, one value for each
/// `scope`: a block of `block` elements (0: no blocks), or a parameter.
struct SideData {
  StringRef name; // "scale"
  Type type;
  Scope scope = Scope::Param;
  int64_t block = 0;
};

} // namespace mlir::dfa

#include "dfa/IR/DfaFormatInterface.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dfa/IR/DfaAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dfa/IR/DfaTypes.h.inc"

namespace mlir::dfa {

/// Fields of the control block at one point of a step, while scalar code is
/// emitted: what was written before is what is read.
class ControlFields {
public:
  virtual ~ControlFields() = default;
  virtual Value read(OpBuilder &builder, Location loc, StringRef field) = 0;
  virtual void write(StringRef field, Value value) = 0;
};

} // namespace mlir::dfa

#include "dfa/IR/DfaInterfaces.h.inc"

namespace mlir::dfa {

/// The tables that control-level ops load and store: control block, segment
/// state, derived rows. One resource, since they are written in one place.
struct ControlMemory : SideEffects::Resource::Base<ControlMemory> {
  StringRef getName() final { return "<DfaControl>"; }
};

} // namespace mlir::dfa

#define GET_OP_CLASSES
#include "dfa/IR/DfaOps.h.inc"

namespace mlir::dfa {

/// The stored element types of a format, in order: none has none, remainder
/// has bf16 and i16, every other format one. See StorageFormatInterface.
SmallVector<Type> getStoredTypes(Format format, MLIRContext *context);

/// Whether an array of the runtime may have elements of this type.
bool isStoredType(Type type);

/// MLIR type of a field of the control block, or null if there is no such
/// field. Fields are those of dfa-rt/control.def.
Type getControlFieldType(StringRef field, MLIRContext *context);

/// Byte offset of a field of the control block; the field must exist.
int64_t getControlFieldOffset(StringRef field);

/// Names of all fields, for diagnostics.
std::string listControlFields();

/// Attribute with which a step function names the role of an argument or
/// result ("grad", "master", "exp_avg", ..., "control").
inline constexpr StringLiteral kRoleAttr = "dfa.role";

/// Attribute of a step function with initial control fields.
inline constexpr StringLiteral kControlAttr = "dfa.control";

/// Attribute of a step function with the mesh axes over which ranks agree on
/// which parameters have a gradient.
inline constexpr StringLiteral kPresenceAttr = "dfa.presence";

} // namespace mlir::dfa

#endif // DFA_IR_DFA_H
