// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A `dfa.layout` op as a plan of the runtime's layout library.

#include "dfa/Analysis/LayoutPlan.h"

using namespace mlir;
using namespace mlir::dfa;
namespace layout = ::dfa::layout;

layout::Format mlir::dfa::getLayoutFormat(Format format) {
  switch (format) {
  case Format::F64:
    return layout::Format::F64;
  case Format::F16:
    return layout::Format::F16;
  case Format::BF16:
    return layout::Format::BF16;
  case Format::Remainder:
    return layout::Format::Remainder;
  case Format::F32:
  case Format::None:
    break;
  }
  return layout::Format::F32;
}

static layout::ClassSpec makeClass(ClassOp cls) {
  layout::ClassSpec spec;
  spec.name = cls.getSymName().str();
  spec.syncFormat = getLayoutFormat(cls.getGrad());
  spec.arrays.push_back({"param", getLayoutFormat(cls.getParam())});
  spec.arrays.push_back({"grad", getLayoutFormat(cls.getGrad())});
  if (cls.getMaster() == Format::Remainder)
    spec.arrays.push_back({"remainder", layout::Format::Remainder});
  else if (cls.getMaster() != Format::None)
    spec.arrays.push_back({"master", getLayoutFormat(cls.getMaster())});
  for (auto state : cls.getStates().getAsRange<StateAttr>())
    spec.arrays.push_back(
        {state.getName().str(), getLayoutFormat(state.getFormat())});
  return spec;
}

static FailureOr<layout::Mesh> getMesh(LayoutOp op) {
  layout::Mesh sizes;
  MeshOp mesh = op.getMeshOp();
  if (!mesh)
    return sizes;
  for (AxisAttr axis : mesh.getAxes().getAsRange<AxisAttr>()) {
    StringRef name = axis.getName().getValue();
    if (name == "replicate")
      sizes.replicate = axis.getSize();
    else if (name == "shard")
      sizes.shard = axis.getSize();
    else if (axis.getSize() != 1)
      return mesh.emitError("expects axes 'replicate' and 'shard' under a "
                            "layout, but got '")
             << name << "' of size " << axis.getSize();
  }
  return sizes;
}

FailureOr<layout::Plan> mlir::dfa::planLayout(LayoutOp op) {
  FailureOr<layout::Mesh> mesh = getMesh(op);
  if (failed(mesh))
    return failure();
  return planLayout(op, *mesh);
}

FailureOr<layout::Plan> mlir::dfa::planLayout(LayoutOp op,
                                              const layout::Mesh &mesh) {
  layout::PlanInput input;
  input.mesh = mesh;
  if (op.getBucketBytes())
    input.options.bucketBytes = *op.getBucketBytes();
  llvm::StringMap<int32_t> classes;
  for (ClassOp cls : op.getBody().getOps<ClassOp>()) {
    classes[cls.getSymName()] = static_cast<int32_t>(input.classes.size());
    input.classes.push_back(makeClass(cls));
  }
  for (ParamOp param : op.getBody().getOps<ParamOp>()) {
    layout::ParamSpec spec;
    spec.name = param.getName().str();
    llvm::append_range(spec.shape,
                       cast<ShapedType>(param.getType()).getShape());
    if (param.getOrder())
      spec.order.assign(param.getOrder()->begin(), param.getOrder()->end());
    spec.cls = classes.lookup(param.getCls());
    spec.group = static_cast<int32_t>(param.getGroup());
    input.params.push_back(std::move(spec));
  }
  layout::Expected<layout::Plan> plan = layout::Plan::create(std::move(input));
  if (!plan)
    return op.emitError() << plan.message();
  return std::move(*plan);
}
