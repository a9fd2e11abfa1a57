// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-assign-layout: where each parameter lies, as attributes.

#include "dfa/Analysis/LayoutPlan.h"
#include "dfa/Transforms/Passes.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFAASSIGNLAYOUT
#include "dfa/Transforms/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;
namespace layout = ::dfa::layout;

static void annotate(LayoutOp op, const layout::Plan &plan) {
  Builder builder(op.getContext());
  size_t index = 0;
  for (ParamOp param : op.getBody().getOps<ParamOp>()) {
    const layout::Placement &place = plan.placements()[index++];
    param->setAttr("bucket", builder.getI64IntegerAttr(place.bucket));
    param->setAttr("start", builder.getI64IntegerAttr(place.start));
  }
  index = 0;
  for (ClassOp cls : op.getBody().getOps<ClassOp>()) {
    const layout::ClassLayout &rows = plan.classLayouts()[index++];
    int64_t elements = 0;
    for (int64_t at = rows.sequenceBegin; at < rows.sequenceEnd; ++at)
      elements += plan.placements()[plan.sequence()[at]].elements;
    cls->setAttr("buckets",
                 builder.getI64IntegerAttr(rows.bucketEnd - rows.bucketBegin));
    cls->setAttr("elements", builder.getI64IntegerAttr(elements));
    cls->setAttr("padded", builder.getI64IntegerAttr(rows.fullElements));
    cls->setAttr("shard", builder.getI64IntegerAttr(rows.shardElements));
  }
}

namespace {

struct AssignLayout : mlir::dfa::impl::DfaAssignLayoutBase<AssignLayout> {
  void runOnOperation() override {
    for (LayoutOp op : getOperation().getOps<LayoutOp>()) {
      FailureOr<layout::Plan> plan = planLayout(op);
      if (failed(plan))
        return signalPassFailure();
      annotate(op, *plan);
    }
  }
};

} // namespace
