// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of step values: verification and spelling.

#include "dfa/IR/Dfa.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::dfa;

#define GET_TYPEDEF_CLASSES
#include "dfa/IR/DfaTypes.cpp.inc"

void DfaDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dfa/IR/DfaTypes.cpp.inc"
      >();
}

bool dfa::isStoredType(Type type) {
  return type.isF64() || type.isF32() || type.isF16() || type.isBF16() ||
         type.isInteger(16) || type.isInteger(8);
}

LogicalResult FlatType::verify(function_ref<InFlightDiagnostic()> emitError,
                               FlatSymbolRefAttr, FlatSymbolRefAttr, Part,
                               Type elementType) {
  if (isStoredType(elementType))
    return success();
  return emitError() << "expects elements of type f64, f32, f16, bf16, i16 or "
                        "i8, but got "
                     << elementType;
}

LogicalResult PartialType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  Accumulation kind, Scope scope,
                                  FloatAttr order) {
  if ((kind == Accumulation::Lp) != static_cast<bool>(order))
    return emitError() << (order ? "expects an order for lp norms only"
                                 : "expects the order of an lp norm, as in "
                                   "'!dfa.partial<lp, whole, 3.0>'");
  // A power of any other order has no exactly rounded form without libm.
  double value = order ? order.getValueAsDouble() : 1.0;
  if (!(value >= 1.0 && value <= 64.0 && value == std::floor(value)))
    return emitError() << "expects the order of an lp norm to be an integer "
                          "from 1 to 64, but got "
                       << value;
  if (kind == Accumulation::Flag && scope != Scope::Whole)
    return emitError() << "expects scope 'whole' for a flag, but got '"
                       << stringifyScope(scope) << "'";
  return success();
}

Type PartialType::parse(AsmParser &parser) {
  FailureOr<Accumulation> kind;
  FailureOr<Scope> scope;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      failed(kind = FieldParser<Accumulation>::parse(parser)) ||
      parser.parseComma() || failed(scope = FieldParser<Scope>::parse(parser)))
    return {};
  FloatAttr order;
  if (succeeded(parser.parseOptionalComma())) {
    double value = 0;
    if (parser.parseFloat(value))
      return {};
    order = parser.getBuilder().getF64FloatAttr(value);
  }
  if (parser.parseGreater())
    return {};
  return PartialType::getChecked([&] { return parser.emitError(loc); },
                                 parser.getContext(), *kind, *scope, order);
}

void PartialType::print(AsmPrinter &printer) const {
  printer << "<" << stringifyAccumulation(getKind()) << ", "
          << stringifyScope(getScope());
  if (getOrder()) {
    printer << ", ";
    printer.printAttributeWithoutType(getOrder());
  }
  printer << ">";
}

LogicalResult PerType::verify(function_ref<InFlightDiagnostic()> emitError,
                              Scope scope, Type elementType) {
  if (scope == Scope::Whole)
    return emitError() << "expects scope 'group' or 'param', but got 'whole'; "
                          "use the element type itself";
  if (!elementType.isF32() && !elementType.isF64())
    return emitError() << "expects element type f32 or f64, but got "
                       << elementType;
  return success();
}
