// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes that are more than one enumeration value.

#include "dfa/IR/Dfa.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dfa;

#define GET_ATTRDEF_CLASSES
#include "dfa/IR/DfaAttrs.cpp.inc"

LogicalResult
KernelArrayAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        StringAttr name, Type type, Access) {
  if (name.empty())
    return emitError() << "expects the name of an array, but got \"\"";
  if (!isStoredType(type))
    return emitError() << "expects elements of type f64, f32, f16, bf16, i16 "
                          "or i8, but got "
                       << type;
  return success();
}

void DfaDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dfa/IR/DfaAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Storage formats
//===----------------------------------------------------------------------===//

SmallVector<Type> FormatAttr::getStoredElementTypes() const {
  MLIRContext *context = getContext();
  switch (getValue()) {
  case Format::None:
    return {};
  case Format::F64:
    return {Float64Type::get(context)};
  case Format::F32:
    return {Float32Type::get(context)};
  case Format::F16:
    return {Float16Type::get(context)};
  case Format::BF16:
    return {BFloat16Type::get(context)};
  case Format::Remainder:
    return {BFloat16Type::get(context), IntegerType::get(context, 16)};
  }
  return {};
}

/// Every format so far is read element by element. One with a scale says so
/// here, and its ops carry the scale behind the stored values.
SmallVector<SideData> FormatAttr::getSideData() const { return {}; }

SmallVector<Type> dfa::getStoredTypes(Format format, MLIRContext *context) {
  return FormatAttr::get(context, format).getStoredElementTypes();
}
