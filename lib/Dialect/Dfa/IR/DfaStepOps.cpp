// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level B ops: verification, folders and canonicalisation. What an
// elementwise op computes is in DfaElementwise.cpp.

#include "DfaAsm.h"
#include "dfa/IR/Dfa.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::dfa;

//===----------------------------------------------------------------------===//
// Shared checks
//===----------------------------------------------------------------------===//

/// Both cover the same elements: layout, class and part agree.
static LogicalResult verifySameElements(Operation *op, FlatType expected,
                                        FlatType got, StringRef what) {
  if (got.withElementType(expected.getElementType()) == expected)
    return success();
  return op->emitOpError("expects ") << what << " to cover the elements of "
                                     << expected << ", but got " << got;
}

static LogicalResult verifyComputeType(Operation *op, FlatType type,
                                       StringRef what) {
  if (type.getElementType().isF32())
    return success();
  return op->emitOpError("expects ")
         << what << " of element type 'f32', but got " << type.getElementType();
}

/// Follows symbols from `op` to the mesh of the value's layout. Succeeds with
/// null where there is no layout in scope (a fragment in a test).
static MeshOp findMesh(Operation *op, FlatType type) {
  LayoutOp layout =
      SymbolTable::lookupNearestSymbolFrom<LayoutOp>(op, type.getLayout());
  return layout ? layout.getMeshOp() : MeshOp();
}

/// The axis exists on the mesh of the value's layout, if there is one.
static LogicalResult verifyAxis(Operation *op, FlatType type, StringRef axis) {
  LayoutOp layout =
      SymbolTable::lookupNearestSymbolFrom<LayoutOp>(op, type.getLayout());
  if (!layout)
    return success();
  MeshOp mesh = findMesh(op, type);
  if (!mesh)
    return op->emitOpError("expects layout ")
           << type.getLayout() << " to be on a mesh";
  if (mesh.getAxis(axis))
    return success();
  InFlightDiagnostic diag = op->emitOpError("expects an axis of mesh '@")
                            << mesh.getSymName() << "', but got '" << axis
                            << "'";
  diag.attachNote(mesh.getLoc()) << "mesh defined here";
  return diag;
}

//===----------------------------------------------------------------------===//
// UnscaleOp
//===----------------------------------------------------------------------===//

LogicalResult UnscaleOp::verify() {
  if (!isa<FloatType>(getInput().getType().getElementType()))
    return emitOpError("expects float elements, but got ")
           << getInput().getType().getElementType();
  if (failed(verifyComputeType(*this, getResult().getType(), "a result")))
    return failure();
  return verifySameElements(*this, getInput().getType(), getResult().getType(),
                            "the result");
}

/// Multiplying by exactly one changes nothing.
OpFoldResult UnscaleOp::fold(FoldAdaptor adaptor) {
  auto factor = dyn_cast_or_null<FloatAttr>(adaptor.getFactor());
  if (factor && factor.getValue().isExactlyValue(1.0) &&
      getInput().getType() == getResult().getType())
    return getInput();
  return {};
}

namespace {

/// Two scalar factors are one: their product in f64, rounded once.
struct MergeUnscale : OpRewritePattern<UnscaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(UnscaleOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<UnscaleOp>();
    if (!inner || !isa<FloatType>(inner.getFactor().getType()) ||
        !isa<FloatType>(op.getFactor().getType()))
      return failure();
    Type f64 = rewriter.getF64Type();
    auto widen = [&](Value factor) -> Value {
      if (factor.getType() == f64)
        return factor;
      return arith::ExtFOp::create(rewriter, op.getLoc(), f64, factor);
    };
    Value first = widen(inner.getFactor());
    Value second = widen(op.getFactor());
    Value product = arith::MulFOp::create(rewriter, op.getLoc(), first, second);
    rewriter.replaceOpWithNewOp<UnscaleOp>(op, op.getType(), inner.getInput(),
                                           product);
    return success();
  }
};

/// Whether an element is finite does not depend on a finite factor, and the
/// check is of the element as it came (a factor never hides an overflow).
struct CheckBeforeUnscale : OpRewritePattern<NonFiniteOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(NonFiniteOp op,
                                PatternRewriter &rewriter) const override {
    auto unscale = op.getInput().getDefiningOp<UnscaleOp>();
    if (!unscale)
      return failure();
    rewriter.modifyOpInPlace(
        op, [&] { op.getInputMutable().assign(unscale.getInput()); });
    return success();
  }
};

} // namespace

void UnscaleOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<MergeUnscale>(context);
}

//===----------------------------------------------------------------------===//
// ClipOp, ClipValueOp
//===----------------------------------------------------------------------===//

LogicalResult ClipOp::verify() {
  return verifyComputeType(*this, getInput().getType(), "an input");
}

LogicalResult ClipValueOp::verify() {
  return verifyComputeType(*this, getInput().getType(), "an input");
}

//===----------------------------------------------------------------------===//
// EncodeOp, DecodeOp, AccumulateOp
//===----------------------------------------------------------------------===//

/// `stored` has the element types of `format`, over the elements of `wide`.
static LogicalResult verifyStored(Operation *op, Format format,
                                  TypeRange stored, FlatType wide,
                                  StringRef what) {
  if (failed(verifyComputeType(op, wide, "a decoded value")))
    return failure();
  auto storage = FormatAttr::get(op->getContext(), format);
  SmallVector<Type> types = storage.getStoredElementTypes();
  // Side data stand behind the stored values.
  for (const SideData &side : storage.getSideData())
    types.push_back(side.type);
  if (types.empty())
    return op->emitOpError("expects a format with elements, but got '")
           << stringifyFormat(format) << "'";
  if (stored.size() != types.size())
    return op->emitOpError("expects ")
           << types.size() << " " << what << " for format '"
           << stringifyFormat(format) << "', but got " << stored.size();
  for (auto [index, pair] : llvm::enumerate(llvm::zip(stored, types))) {
    auto flat = cast<FlatType>(std::get<0>(pair));
    if (flat.getElementType() != std::get<1>(pair))
      return op->emitOpError("expects stored value #")
             << index << " of element type " << std::get<1>(pair)
             << ", but got " << flat.getElementType();
    if (failed(verifySameElements(op, wide, flat, "a stored value")))
      return failure();
  }
  return success();
}

LogicalResult EncodeOp::verify() {
  return verifyStored(*this, getFormat(), getStored().getTypes(),
                      getInput().getType(), "results");
}

LogicalResult DecodeOp::verify() {
  return verifyStored(*this, getFormat(), getStored().getTypes(),
                      getResult().getType(), "operands");
}

/// Encoding what was decoded gives the stored elements back, where decoding is
/// exact (an f64 is not). The name of f32 is that of the identity.
LogicalResult EncodeOp::fold(FoldAdaptor,
                             SmallVectorImpl<OpFoldResult> &results) {
  if (getFormat() == Format::F32) {
    results.push_back(getInput());
    return success();
  }
  auto decode = getInput().getDefiningOp<DecodeOp>();
  if (!decode || decode.getFormat() != getFormat() ||
      getFormat() == Format::F64)
    return failure();
  llvm::append_range(results, decode.getStored());
  return success();
}

OpFoldResult DecodeOp::fold(FoldAdaptor) {
  if (getFormat() == Format::F32)
    return getStored().front();
  // Only formats that hold an f32 exactly give back what was encoded.
  auto encode = getStored().front().getDefiningOp<EncodeOp>();
  if (encode && encode.getFormat() == getFormat() &&
      (getFormat() == Format::Remainder || getFormat() == Format::F64) &&
      llvm::equal(encode.getStored(), getStored()))
    return encode.getInput();
  return {};
}

LogicalResult AccumulateOp::verify() {
  for (Value value : {getInput(), getBucket()})
    if (!isa<FloatType>(cast<FlatType>(value.getType()).getElementType()))
      return emitOpError("expects float elements, but got ") << value.getType();
  return verifySameElements(*this, getBucket().getType(), getInput().getType(),
                            "the input");
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

LogicalResult NormPartialOp::verify() {
  if (getResult().getType().getKind() == Accumulation::Flag)
    return emitOpError("expects a norm to accumulate, but got 'flag'");
  if (!isa<FloatType>(getInput().getType().getElementType()))
    return emitOpError("expects float elements, but got ")
           << getInput().getType();
  return success();
}

LogicalResult NonFiniteOp::verify() {
  if (getResult().getType().getKind() != Accumulation::Flag)
    return emitOpError("expects a result of type '!dfa.partial<flag, whole>', "
                       "but got ")
           << getResult().getType();
  if (!isa<FloatType>(getInput().getType().getElementType()))
    return emitOpError("expects float elements, but got ")
           << getInput().getType();
  return success();
}

void NonFiniteOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<CheckBeforeUnscale>(context);
}

LogicalResult CombineOp::verify() {
  if (!getAxes())
    return success();
  if (getAxes()->empty())
    return emitOpError("expects at least one axis after 'over'");
  for (auto [index, axis] : llvm::enumerate(getAxes()->getValue()))
    if (llvm::is_contained(getAxes()->getValue().take_front(index), axis))
      return emitOpError("expects axes that differ, but got ")
             << axis << " twice";
  return success();
}

OpFoldResult CombineOp::fold(FoldAdaptor) {
  if (!getAxes() && getPartials().size() == 1)
    return getPartials().front();
  return {};
}

LogicalResult NormFinishOp::verify() {
  PartialType partial = getPartial().getType();
  if (partial.getKind() == Accumulation::Flag)
    return emitOpError("expects partials of a norm, but got a flag; use "
                       "'dfa.flag_finish'");
  Type f64 = Float64Type::get(getContext());
  Type expected = partial.getScope() == Scope::Whole
                      ? f64
                      : PerType::get(getContext(), partial.getScope(), f64);
  if (getResult().getType() != expected)
    return emitOpError("expects a result of type ")
           << expected << ", but got " << getResult().getType();
  return success();
}

LogicalResult FlagFinishOp::verify() {
  if (getPartial().getType().getKind() != Accumulation::Flag)
    return emitOpError("expects partials of a flag, but got ")
           << getPartial().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

static LogicalResult verifyField(Operation *op, StringRef name, Type type,
                                 bool flagAllowed) {
  Type expected = getControlFieldType(name, op->getContext());
  if (!expected)
    return op->emitOpError("has no control field '")
           << name << "'; fields are " << listControlFields();
  if (type == expected ||
      (flagAllowed && expected.isInteger(32) && type.isInteger(1)))
    return success();
  return op->emitOpError("expects type ")
         << expected << " for control field '" << name << "', but got " << type;
}

LogicalResult ReadOp::verify() {
  return verifyField(*this, getField(), getResult().getType(), false);
}

LogicalResult WriteOp::verify() {
  return verifyField(*this, getField(), getValue().getType(), true);
}

LogicalResult ZeroGradOp::verify() {
  if (getMode() == ZeroMode::Generation && !getGrads().empty())
    return emitOpError("expects no gradients in mode 'generation', which moves "
                       "no bytes, but got ")
           << getGrads().size();
  if (getMode() == ZeroMode::Memset && getGrads().empty())
    return emitOpError("expects the gradients to clear in mode 'memset'");
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Layouts are cut along this axis.
static constexpr StringLiteral shardAxis = "shard";

static LogicalResult verifyReduced(Operation *op, FlatType type) {
  if (isa<FloatType>(type.getElementType()))
    return success();
  return op->emitOpError("expects float elements, but got ") << type;
}

/// Ranks along the axis hold the same elements, or there is nothing to reduce
/// or to copy between them.
static LogicalResult verifyAlike(Operation *op, FlatType type, StringRef axis) {
  if (type.getPart() == Part::Full || axis != shardAxis)
    return success();
  return op->emitOpError("expects an axis on which ranks hold the same "
                         "elements, but ")
         << type << " differs along '" << axis << "'";
}

static LogicalResult verifyCut(Operation *op, StringRef axis) {
  if (axis == shardAxis)
    return success();
  return op->emitOpError("expects axis 'shard', along which layouts are cut, "
                         "but got '")
         << axis << "'";
}

/// One collective's value goes from part `from` to part `to`.
static LogicalResult verifyParts(Operation *op, FlatType input, Part from,
                                 FlatType result, Part to) {
  if (input.getPart() != from)
    return op->emitOpError("expects an input of part '")
           << stringifyPart(from) << "', but got " << input;
  if (result != input.withPart(to))
    return op->emitOpError("expects a result of type ")
           << input.withPart(to) << ", but got " << result;
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyReduced(*this, getInput().getType())) ||
      failed(verifyCut(*this, getAxis())))
    return failure();
  if (failed(verifyParts(*this, getInput().getType(), Part::Full,
                         getResult().getType(), Part::Shard)))
    return failure();
  return verifyAxis(*this, getInput().getType(), getAxis());
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyReduced(*this, getInput().getType())) ||
      failed(verifyAlike(*this, getInput().getType(), getAxis())))
    return failure();
  return verifyAxis(*this, getInput().getType(), getAxis());
}

LogicalResult AllGatherOp::verify() {
  if (failed(verifyCut(*this, getAxis())))
    return failure();
  if (failed(verifyParts(*this, getInput().getType(), Part::Shard,
                         getResult().getType(), Part::Full)))
    return failure();
  return verifyAxis(*this, getInput().getType(), getAxis());
}

LogicalResult BroadcastOp::verify() {
  if (failed(verifyAlike(*this, getInput().getType(), getAxis())))
    return failure();
  if (failed(verifyAxis(*this, getInput().getType(), getAxis())))
    return failure();
  int64_t root = getRoot();
  if (root < 0)
    return emitOpError("expects a root of at least 0, but got ") << root;
  MeshOp mesh = findMesh(*this, getInput().getType());
  if (mesh && root >= mesh.getAxis(getAxis()).getSize())
    return emitOpError("expects a root below ")
           << mesh.getAxis(getAxis()).getSize() << ", the size of axis '"
           << getAxis() << "', but got " << root;
  return success();
}
