// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalar ops of arith and math as instructions.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "step/Import.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace run = ::dfa::run;
using run::Instruction;
using run::Opcode;

/// Ops that are one opcode whatever their attributes.
static std::optional<Opcode> lookUp(StringRef name) {
  static const llvm::StringMap<Opcode> opcodes = {
      {"arith.addf", Opcode::Add},        {"arith.addi", Opcode::Add},
      {"arith.subf", Opcode::Sub},        {"arith.subi", Opcode::Sub},
      {"arith.mulf", Opcode::Mul},        {"arith.muli", Opcode::Mul},
      {"arith.divf", Opcode::Div},        {"arith.divsi", Opcode::Div},
      {"arith.divui", Opcode::Div},       {"arith.negf", Opcode::Neg},
      {"arith.maximumf", Opcode::Max},    {"arith.minimumf", Opcode::Min},
      {"arith.maxnumf", Opcode::MaxNum},  {"arith.minnumf", Opcode::MinNum},
      {"arith.maxsi", Opcode::Max},       {"arith.minsi", Opcode::Min},
      {"arith.select", Opcode::Select},   {"arith.andi", Opcode::And},
      {"arith.ori", Opcode::Or},          {"arith.xori", Opcode::Xor},
      {"arith.extf", Opcode::Copy},       {"arith.extui", Opcode::Copy},
      {"arith.extsi", Opcode::Copy},      {"arith.trunci", Opcode::Copy},
      {"arith.index_cast", Opcode::Copy}, {"arith.fptosi", Opcode::Truncate},
      {"arith.fptoui", Opcode::Truncate}, {"math.fma", Opcode::Fma},
      {"math.sqrt", Opcode::Sqrt},        {"math.rsqrt", Opcode::Rsqrt},
      {"math.cbrt", Opcode::Cbrt},        {"math.exp", Opcode::Exp},
      {"math.exp2", Opcode::Exp2},        {"math.expm1", Opcode::Expm1},
      {"math.log", Opcode::Log},          {"math.log2", Opcode::Log2},
      {"math.log10", Opcode::Log10},      {"math.log1p", Opcode::Log1p},
      {"math.sin", Opcode::Sin},          {"math.cos", Opcode::Cos},
      {"math.tanh", Opcode::Tanh},        {"math.atan", Opcode::Atan},
      {"math.erf", Opcode::Erf},          {"math.powf", Opcode::Pow},
      {"math.fpowi", Opcode::Pow},        {"math.absf", Opcode::Abs},
      {"math.absi", Opcode::Abs},         {"math.copysign", Opcode::CopySign},
      {"math.floor", Opcode::Floor},      {"math.ceil", Opcode::Ceil},
      {"math.trunc", Opcode::Truncate},   {"math.roundeven", Opcode::RoundEven},
      {"dfa.powi", Opcode::Powi},
  };
  llvm::StringMap<Opcode>::const_iterator found = opcodes.find(name);
  if (found == opcodes.end())
    return std::nullopt;
  return found->second;
}

/// A float comparison; false if `predicate` is a constant.
static bool setComparison(arith::CmpFPredicate predicate,
                          Instruction &instruction) {
  using P = arith::CmpFPredicate;
  // U forms are the negations of the opposite ordered ones.
  struct Row {
    P predicate;
    Opcode opcode;
    bool swap, invert;
  };
  static const Row rows[] = {
      {P::OLT, Opcode::Less, false, false},
      {P::OGT, Opcode::Less, true, false},
      {P::OLE, Opcode::LessEqual, false, false},
      {P::OGE, Opcode::LessEqual, true, false},
      {P::OEQ, Opcode::Equal, false, false},
      {P::UNE, Opcode::Equal, false, true},
      {P::UGE, Opcode::Less, false, true},
      {P::ULE, Opcode::Less, true, true},
      {P::UGT, Opcode::LessEqual, false, true},
      {P::ULT, Opcode::LessEqual, true, true},
      {P::ORD, Opcode::Ordered, false, false},
      {P::UNO, Opcode::Unordered, false, false},
  };
  for (const Row &row : rows) {
    if (row.predicate != predicate)
      continue;
    instruction.opcode = row.opcode;
    instruction.invert = row.invert;
    if (row.swap)
      std::swap(instruction.operands[0], instruction.operands[1]);
    return true;
  }
  return false;
}

static bool setComparison(arith::CmpIPredicate predicate,
                          Instruction &instruction) {
  using P = arith::CmpIPredicate;
  bool swap = predicate == P::sgt || predicate == P::sge ||
              predicate == P::ugt || predicate == P::uge;
  switch (predicate) {
  case P::eq:
    instruction.opcode = Opcode::Equal;
    break;
  case P::ne:
    instruction.opcode = Opcode::NotEqual;
    break;
  case P::slt:
  case P::sgt:
  case P::ult:
  case P::ugt:
    instruction.opcode = Opcode::Less;
    break;
  default:
    instruction.opcode = Opcode::LessEqual;
  }
  if (swap)
    std::swap(instruction.operands[0], instruction.operands[1]);
  return true;
}

static InFlightDiagnostic refuse(Operation *op) {
  return op->emitError("'")
         << op->getName() << "' op is none that the float64 reference knows";
}

FailureOr<Instruction> run::importScalarOp(Operation *op) {
  Instruction instruction;
  for (int i = 0, e = std::min(3u, op->getNumOperands()); i < e; ++i)
    instruction.operands[i] = i;
  if (op->getNumResults() != 1 || op->getNumOperands() > 3)
    return refuse(op);
  Type type = op->getResult(0).getType();
  if (!type.isIntOrIndexOrFloat())
    return refuse(op);
  instruction.integer = type.isIntOrIndex();
  instruction.wide = type.isF64();
  if (arith::ConstantOp constant = dyn_cast<arith::ConstantOp>(op)) {
    if (FloatAttr number = dyn_cast<FloatAttr>(constant.getValue()))
      instruction.constant = number.getValueAsDouble();
    else if (BoolAttr word = dyn_cast<BoolAttr>(constant.getValue()))
      instruction.constant = word.getValue();
    else if (IntegerAttr number = dyn_cast<IntegerAttr>(constant.getValue()))
      instruction.constant = static_cast<double>(number.getInt());
    return instruction;
  }
  if (arith::CmpFOp compare = dyn_cast<arith::CmpFOp>(op)) {
    if (setComparison(compare.getPredicate(), instruction))
      return instruction;
    // ONE and UEQ are two comparisons; nobody needs them on single elements.
    return refuse(op);
  }
  if (arith::CmpIOp compare = dyn_cast<arith::CmpIOp>(op)) {
    setComparison(compare.getPredicate(), instruction);
    return instruction;
  }
  bool rounds = isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op);
  if (rounds) {
    instruction.opcode = type.isF64()    ? Opcode::Copy
                         : type.isF32()  ? Opcode::RoundToF32
                         : type.isBF16() ? Opcode::RoundToBF16
                                         : Opcode::RoundToF16;
    return instruction;
  }
  std::optional<Opcode> opcode = lookUp(op->getName().getStringRef());
  if (!opcode)
    return refuse(op);
  instruction.opcode = *opcode;
  return instruction;
}

FailureOr<run::ScalarProgram> run::importRegion(Region &region) {
  ScalarProgram program;
  llvm::DenseMap<Value, int> registers;
  Block &block = region.front();
  for (BlockArgument argument : block.getArguments())
    registers[argument] = program.registers++;
  program.arguments = program.registers;
  for (Operation &op : block.without_terminator()) {
    FailureOr<Instruction> instruction = importScalarOp(&op);
    if (failed(instruction))
      return failure();
    for (int &operand : instruction->operands) {
      if (operand < 0)
        continue;
      llvm::DenseMap<Value, int>::iterator found =
          registers.find(op.getOperand(operand));
      if (found == registers.end())
        return op.emitError("expects operands that its region computes, but "
                            "operand ")
               << operand << " comes from outside";
      operand = found->second;
    }
    instruction->result = program.registers;
    registers[op.getResult(0)] = program.registers++;
    program.instructions.push_back(*instruction);
  }
  for (Value value : block.getTerminator()->getOperands()) {
    llvm::DenseMap<Value, int>::iterator found = registers.find(value);
    if (found == registers.end())
      return block.getTerminator()->emitError(
          "expects values that its region computes");
    program.results.push_back(found->second);
  }
  return program;
}
