// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generic update and what all named rules share. Each rule's expression
// tree is in a file of its own under Rules/.

#include "DfaAsm.h"
#include "Rules/Rules.h"
#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::dfa;

//===----------------------------------------------------------------------===//
// PowiOp
//===----------------------------------------------------------------------===//

OpFoldResult PowiOp::fold(FoldAdaptor adaptor) {
  auto base = dyn_cast_or_null<FloatAttr>(adaptor.getBase());
  auto exponent = dyn_cast_or_null<IntegerAttr>(adaptor.getExponent());
  if (!base || !exponent)
    return {};
  double square = base.getValueAsDouble(), result = 1.0;
  for (int64_t bits = exponent.getInt(); bits > 0; bits >>= 1) {
    if (bits & 1)
      result *= square;
    square *= square;
  }
  return FloatAttr::get(base.getType(), result);
}

//===----------------------------------------------------------------------===//
// UpdateOp
//===----------------------------------------------------------------------===//

/// The type a scalar operand has inside `derive`.
static Type getScalarType(Type type) {
  if (auto per = dyn_cast<PerType>(type))
    return per.getElementType();
  return type;
}

LogicalResult UpdateOp::verify() {
  if (getResults().size() < getOuts().size())
    return emitOpError("expects a result for each of ")
           << getOuts().size() << " destinations, but got "
           << getResults().size() << " results";
  if (getResults().empty())
    return emitOpError("expects at least one result");
  for (auto [index, out] : llvm::enumerate(getOuts().getTypes()))
    if (getResults()[index].getType() != out)
      return emitOpError("expects result #")
             << index << " of its destination's type " << out << ", but got "
             << getResults()[index].getType();
  for (auto [index, name] : llvm::enumerate(getHyper().getValue()))
    if (llvm::is_contained(getHyper().getValue().take_front(index), name))
      return emitOpError("expects hyper-parameters that differ, but got ")
             << name << " twice";
  auto first = cast<FlatType>(getResults().front().getType());
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(getInputs().getTypes()),
                                SmallVector<Type>(getResults().getTypes()))) {
    auto flat = cast<FlatType>(type);
    if (flat.withElementType(first.getElementType()) != first)
      return emitOpError("expects values that cover the elements of ")
             << first << ", but got " << flat;
  }
  return success();
}

/// Only these can be lowered alike for every target.
static LogicalResult verifyScalarRegion(UpdateOp update, Region &region,
                                        StringRef name) {
  for (Operation &op : region.front().without_terminator()) {
    bool known = isa<PowiOp>(op) ||
                 isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
                     op.getDialect());
    bool scalar = llvm::all_of(op.getResultTypes(), [](Type type) {
      return type.isIntOrIndexOrFloat();
    });
    if (known && scalar)
      continue;
    InFlightDiagnostic diag =
        op.emitOpError("is not allowed in '")
        << name << "' of 'dfa.update'; expects 'arith' and 'math' ops on "
        << "scalars and 'dfa.powi'";
    diag.attachNote(update.getLoc()) << "in this update";
    return diag;
  }
  return success();
}

static LogicalResult verifyTypes(Operation *op, StringRef what,
                                 TypeRange expected, TypeRange got) {
  if (expected == got)
    return success();
  return op->emitOpError("expects ")
         << what << " of types (" << expected << "), but got (" << got << ")";
}

LogicalResult UpdateOp::verifyRegions() {
  if (failed(verifyScalarRegion(*this, getDerive(), "derive")) ||
      failed(verifyScalarRegion(*this, getApply(), "apply")))
    return failure();
  Builder builder(getContext());
  SmallVector<Type> expected = {builder.getI64Type()};
  expected.append(getHyper().size(), builder.getF64Type());
  for (Type type : getScalars().getTypes())
    expected.push_back(getScalarType(type));
  if (failed(verifyTypes(*this, "arguments of 'derive'", expected,
                         getDerive().getArgumentTypes())))
    return failure();
  TypeRange derived = getDerive().front().getTerminator()->getOperandTypes();
  for (Type type : derived)
    if (!type.isF32())
      return getDerive().front().getTerminator()->emitOpError(
                 "expects derived values of type f32, but got ")
             << type;
  expected.clear();
  for (Type type : getInputs().getTypes())
    expected.push_back(cast<FlatType>(type).getElementType());
  for (Type type : getOuts().getTypes())
    expected.push_back(cast<FlatType>(type).getElementType());
  llvm::append_range(expected, derived);
  if (failed(verifyTypes(*this, "arguments of 'apply'", expected,
                         getApply().getArgumentTypes())))
    return failure();
  expected.clear();
  for (Type type : getResults().getTypes())
    expected.push_back(cast<FlatType>(type).getElementType());
  return verifyTypes(getApply().front().getTerminator(), "values", expected,
                     getApply().front().getTerminator()->getOperandTypes());
}

//===----------------------------------------------------------------------===//
// Named rules
//===----------------------------------------------------------------------===//

LogicalResult rules::verify(Operation *op, FlatType grad, TypeRange outs,
                            TypeRange results, ArrayRef<StringRef> names) {
  if (outs.size() != names.size())
    return op->emitOpError("expects destinations (")
           << llvm::join(names, ", ") << "), but got " << outs.size();
  if (outs != results)
    return op->emitOpError("expects results of types (")
           << outs << "), but got (" << results << ")";
  if (!grad.getElementType().isF32())
    return op->emitOpError("expects a gradient of element type 'f32', but "
                           "got ")
           << grad.getElementType();
  for (auto [name, type] : llvm::zip(names, outs)) {
    auto flat = cast<FlatType>(type);
    if (!flat.getElementType().isF32())
      return op->emitOpError("expects '")
             << name << "' of element type 'f32', but got "
             << flat.getElementType();
    if (flat != grad)
      return op->emitOpError("expects '")
             << name << "' to cover the elements of the gradient " << grad
             << ", but got " << flat;
  }
  return success();
}

UpdateOp rules::create(OpBuilder &builder, Location loc, const Generic &rule) {
  SmallVector<Attribute> hyper;
  for (StringRef name : rule.hyper)
    hyper.push_back(builder.getStringAttr(name));
  SmallVector<Type> results(rule.outs.getTypes());
  llvm::append_range(results, rule.extraResults);
  auto update = UpdateOp::create(builder, loc, results, rule.inputs, rule.outs,
                                 rule.control, rule.foundInf, rule.scalars,
                                 builder.getArrayAttr(hyper));
  OpBuilder::InsertionGuard guard(builder);

  SmallVector<Type> types = {builder.getI64Type()};
  types.append(rule.hyper.size(), builder.getF64Type());
  for (Type type : rule.scalars.getTypes())
    types.push_back(getScalarType(type));
  Block *derive = builder.createBlock(&update.getDerive(), {}, types,
                                      SmallVector<Location>(types.size(), loc));
  Scalars derivedValues =
      rule.derive(ScalarBuilder(builder, loc), derive->getArguments());
  YieldOp::create(builder, loc, derivedValues);

  types.clear();
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(rule.inputs.getTypes()),
                                SmallVector<Type>(rule.outs.getTypes())))
    types.push_back(cast<FlatType>(type).getElementType());
  types.append(derivedValues.size(), builder.getF32Type());
  Block *apply = builder.createBlock(&update.getApply(), {}, types,
                                     SmallVector<Location>(types.size(), loc));
  size_t elements = rule.inputs.size() + rule.outs.size();
  Scalars values = rule.apply(ScalarBuilder(builder, loc),
                              apply->getArguments().take_front(elements),
                              apply->getArguments().drop_front(elements));
  YieldOp::create(builder, loc, values);
  return update;
}
