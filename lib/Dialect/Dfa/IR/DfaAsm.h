// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Custom directives of the assembly formats; used by the generated parsers.

#ifndef DFA_LIB_DIALECT_DFA_IR_DFAASM_H
#define DFA_LIB_DIALECT_DFA_IR_DFAASM_H

#include "dfa/IR/Dfa.h"
#include "mlir/IR/DialectImplementation.h"

namespace mlir::dfa {

/// One bare word of an enumeration; a wrong one is answered with the list.
template <typename EnumAttrT>
ParseResult parseEnumWord(OpAsmParser &parser, EnumAttrT &attr) {
  using Enum = decltype(attr.getValue());
  FailureOr<Enum> value = FieldParser<Enum>::parse(parser);
  if (failed(value))
    return failure();
  attr = EnumAttrT::get(parser.getContext(), *value);
  return success();
}
template <typename EnumAttrT>
void printEnumWord(OpAsmPrinter &printer, Operation *, EnumAttrT attr) {
  printer << stringifyEnum(attr.getValue());
}

/// `(replicate = 2, shard = 8 via peer)`
ParseResult parseAxes(OpAsmParser &parser, ArrayAttr &axes);
void printAxes(OpAsmPrinter &printer, Operation *op, ArrayAttr axes);

/// `[exp_avg : f32, exp_avg_sq : f32]`
ParseResult parseStates(OpAsmParser &parser, ArrayAttr &states);
void printStates(OpAsmPrinter &printer, Operation *op, ArrayAttr states);

/// `[sum, max]`
ParseResult parseCombines(OpAsmParser &parser, ArrayAttr &combines);
void printCombines(OpAsmPrinter &printer, Operation *op, ArrayAttr combines);

/// `groups [sum]`, or nothing
ParseResult parseGroupCombines(OpAsmParser &parser, ArrayAttr &combines);
void printGroupCombines(OpAsmPrinter &printer, Operation *op,
                        ArrayAttr combines);

/// `[full, shard]`
ParseResult parseParts(OpAsmParser &parser, ArrayAttr &parts);
void printParts(OpAsmPrinter &printer, Operation *op, ArrayAttr parts);

} // namespace mlir::dfa

#endif // DFA_LIB_DIALECT_DFA_IR_DFAASM_H
