// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spelling of lists in op syntax, where an array attribute would read badly.

#include "DfaAsm.h"

using namespace mlir;
using namespace mlir::dfa;

/// Parses a bare word of an enumeration; says which words there are.
template <typename Enum>
static FailureOr<Enum> parseWord(OpAsmParser &parser,
                                 std::optional<Enum> (*symbolize)(StringRef),
                                 StringRef what) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  if (std::optional<Enum> value = symbolize(word))
    return *value;
  parser.emitError(loc) << "expects " << what << ", but got '" << word << "'";
  return failure();
}

ParseResult dfa::parseAxes(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> list;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    int64_t size = 0;
    Transport transport = Transport::Any;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("via"))) {
      FailureOr<Transport> word = parseWord<Transport>(
          parser, symbolizeTransport, "transport any, library or peer");
      if (failed(word))
        return failure();
      transport = *word;
    }
    list.push_back(AxisAttr::get(parser.getContext(),
                                 parser.getBuilder().getStringAttr(name), size,
                                 transport));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseAxis))
    return failure();
  axes = parser.getBuilder().getArrayAttr(list);
  return success();
}

void dfa::printAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printer << "(";
  llvm::interleaveComma(
      axes.getAsRange<AxisAttr>(), printer, [&](AxisAttr axis) {
        printer.printKeywordOrString(axis.getName());
        printer << " = " << axis.getSize();
        if (axis.getTransport() != Transport::Any)
          printer << " via " << stringifyTransport(axis.getTransport());
      });
  printer << ")";
}

ParseResult dfa::parseStates(OpAsmParser &parser, ArrayAttr &states) {
  SmallVector<Attribute> list;
  auto parseState = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseColon())
      return failure();
    FailureOr<Format> format = parseWord<Format>(
        parser, symbolizeFormat,
        "storage format none, f64, f32, f16, bf16 or remainder");
    if (failed(format))
      return failure();
    list.push_back(StateAttr::get(
        parser.getContext(), parser.getBuilder().getStringAttr(name), *format));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseState))
    return failure();
  states = parser.getBuilder().getArrayAttr(list);
  return success();
}

void dfa::printStates(OpAsmPrinter &printer, Operation *, ArrayAttr states) {
  printer << "[";
  llvm::interleaveComma(
      states.getAsRange<StateAttr>(), printer, [&](StateAttr state) {
        printer.printKeywordOrString(state.getName());
        printer << " : " << stringifyFormat(state.getFormat());
      });
  printer << "]";
}

ParseResult dfa::parseCombines(OpAsmParser &parser, ArrayAttr &combines) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<Combine> kind = parseWord<Combine>(parser, symbolizeCombine,
                                                 "accumulator kind sum or max");
    if (failed(kind))
      return failure();
    list.push_back(CombineAttr::get(parser.getContext(), *kind));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  combines = parser.getBuilder().getArrayAttr(list);
  return success();
}

void dfa::printCombines(OpAsmPrinter &printer, Operation *,
                        ArrayAttr combines) {
  printer << "[";
  llvm::interleaveComma(
      combines.getAsRange<CombineAttr>(), printer,
      [&](CombineAttr kind) { printer << stringifyCombine(kind.getValue()); });
  printer << "]";
}

ParseResult dfa::parseGroupCombines(OpAsmParser &parser, ArrayAttr &combines) {
  if (failed(parser.parseOptionalKeyword("groups"))) {
    combines = parser.getBuilder().getArrayAttr({});
    return success();
  }
  return parseCombines(parser, combines);
}

void dfa::printGroupCombines(OpAsmPrinter &printer, Operation *op,
                             ArrayAttr combines) {
  if (combines.empty())
    return;
  printer << "groups ";
  printCombines(printer, op, combines);
}

ParseResult dfa::parseParts(OpAsmParser &parser, ArrayAttr &parts) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<Part> part =
        parseWord<Part>(parser, symbolizePart, "part full or shard");
    if (failed(part))
      return failure();
    list.push_back(PartAttr::get(parser.getContext(), *part));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  parts = parser.getBuilder().getArrayAttr(list);
  return success();
}

void dfa::printParts(OpAsmPrinter &printer, Operation *, ArrayAttr parts) {
  printer << "[";
  llvm::interleaveComma(
      parts.getAsRange<PartAttr>(), printer,
      [&](PartAttr part) { printer << stringifyPart(part.getValue()); });
  printer << "]";
}
