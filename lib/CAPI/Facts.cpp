// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-c/dfa.h: what a step says of its layout and bindings, as JSON.

#include "Handles.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::dfa;
using namespace mlir::dfa::capi;
namespace json = llvm::json;

static std::optional<double> getNumber(Attribute attribute) {
  if (FloatAttr value = dyn_cast<FloatAttr>(attribute))
    return value.getValueAsDouble();
  if (IntegerAttr value = dyn_cast<IntegerAttr>(attribute))
    return static_cast<double>(value.getInt());
  return std::nullopt;
}

/// Numbers of a dictionary. JSON has no inf and nan, so those are strings.
static json::Object writeNumbers(DictionaryAttr dictionary) {
  json::Object object;
  for (NamedAttribute entry : dictionary) {
    std::optional<double> number = getNumber(entry.getValue());
    if (!number)
      continue;
    if (std::isfinite(*number))
      object[entry.getName().getValue()] = *number;
    else
      object[entry.getName().getValue()] = std::isnan(*number) ? "nan"
                                           : *number > 0       ? "inf"
                                                               : "-inf";
  }
  return object;
}

static json::Object writeArray(StringRef name, Format format) {
  return json::Object{{"name", name}, {"format", stringifyFormat(format)}};
}

static json::Object writeClass(ClassOp cls) {
  json::Array arrays;
  arrays.push_back(writeArray("param", cls.getParam()));
  arrays.push_back(writeArray("grad", cls.getGrad()));
  if (cls.getMaster() == Format::Remainder)
    arrays.push_back(writeArray("remainder", Format::Remainder));
  else if (cls.getMaster() != Format::None)
    arrays.push_back(writeArray("master", cls.getMaster()));
  for (auto state : cls.getStates().getAsRange<StateAttr>())
    arrays.push_back(writeArray(state.getName().getValue(), state.getFormat()));
  return json::Object{{"name", cls.getSymName()},
                      {"rule", stringifyRule(cls.getRule())},
                      {"param", stringifyFormat(cls.getParam())},
                      {"grad", stringifyFormat(cls.getGrad())},
                      {"master", stringifyFormat(cls.getMaster())},
                      {"arrays", std::move(arrays)}};
}

/// Strides of a dense array whose dims lie in `order`, slowest first.
static json::Array writeStrides(ArrayRef<int64_t> shape,
                                std::optional<ArrayRef<int64_t>> order) {
  SmallVector<int64_t> strides(shape.size());
  int64_t next = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    size_t dim = order ? static_cast<size_t>((*order)[i]) : i;
    strides[dim] = next;
    next *= std::max<int64_t>(1, shape[dim]);
  }
  return json::Array(strides);
}

static json::Object writeParam(ParamOp param,
                               const llvm::StringMap<int64_t> &classes,
                               const llvm::DenseMap<int64_t, int64_t> &groups,
                               ClassOp cls) {
  ArrayRef<int64_t> shape = cast<ShapedType>(param.getType()).getShape();
  return json::Object{
      {"name", param.getName()},
      {"shape", json::Array(shape)},
      {"strides", writeStrides(shape, param.getOrder())},
      {"format", stringifyFormat(cls.getParam())},
      {"class", classes.lookup(param.getCls())},
      {"group", groups.lookup(static_cast<int64_t>(param.getGroup()))}};
}

/// Arrays of a class by name, as roles of arguments and results.
static bool hasRole(ClassOp cls, StringRef role) {
  if (role == "grad" || role == "param")
    return true;
  if (role == "remainder")
    return cls.getMaster() == Format::Remainder;
  if (role == "master")
    return cls.getMaster() != Format::None &&
           cls.getMaster() != Format::Remainder;
  return llvm::any_of(
      cls.getStates().getAsRange<StateAttr>(),
      [&](StateAttr state) { return state.getName().getValue() == role; });
}

static FailureOr<json::Object>
writeBinding(func::FuncOp function, Type type, DictionaryAttr attributes,
             const Twine &which, LayoutOp layout,
             const llvm::StringMap<int64_t> &classes) {
  StringAttr role;
  if (attributes)
    role = attributes.getAs<StringAttr>(kRoleAttr);
  if (!role) {
    function.emitError("expects a '")
        << kRoleAttr << "' attribute on " << which << " of @" << kStepName;
    return failure();
  }
  FlatType flat = dyn_cast<FlatType>(type);
  if (!flat)
    return json::Object{{"role", role.getValue()}, {"class", -1}};
  ClassOp cls = layout.getClass(flat.getCls().getValue());
  if (cls && !hasRole(cls, role.getValue())) {
    function.emitError("expects the role of ")
        << which << " to be an array of class @" << cls.getSymName()
        << ", but got " << role;
    return failure();
  }
  std::string element;
  llvm::raw_string_ostream stream(element);
  flat.getElementType().print(stream);
  return json::Object{{"role", role.getValue()},
                      {"class", classes.lookup(flat.getCls().getValue())},
                      {"part", stringifyPart(flat.getPart())},
                      {"format", element}};
}

static LogicalResult writeBindings(func::FuncOp function, LayoutOp layout,
                                   json::Object &facts,
                                   const llvm::StringMap<int64_t> &classes) {
  json::Array arguments, results;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    FailureOr<json::Object> binding =
        writeBinding(function, type, function.getArgAttrDict(index),
                     "argument " + Twine(index), layout, classes);
    if (failed(binding))
      return failure();
    arguments.push_back(std::move(*binding));
  }
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    FailureOr<json::Object> binding =
        writeBinding(function, type, function.getResultAttrDict(index),
                     "result " + Twine(index), layout, classes);
    if (failed(binding))
      return failure();
    results.push_back(std::move(*binding));
  }
  facts["arguments"] = std::move(arguments);
  facts["results"] = std::move(results);
  DictionaryAttr control =
      function->getAttrOfType<DictionaryAttr>(kControlAttr);
  facts["control"] = control ? writeNumbers(control) : json::Object();
  return success();
}

dfa_status_t dfa_step_facts(dfa_step_t *step, dfa_text_t **result,
                            dfa_diagnostics_t *diagnostics) {
  DiagnosticCollector collector(step->context.get(), diagnostics);
  LayoutOp layout = step->layout;
  json::Array mesh, classes, groups, params;
  if (MeshOp op = layout.getMeshOp())
    for (AxisAttr axis : op.getAxes().getAsRange<AxisAttr>())
      mesh.push_back(json::Object{{"name", axis.getName().getValue()},
                                  {"size", axis.getSize()}});
  llvm::StringMap<int64_t> classNumbers;
  for (ClassOp cls : layout.getBody().getOps<ClassOp>()) {
    classNumbers[cls.getSymName()] = static_cast<int64_t>(classes.size());
    classes.push_back(writeClass(cls));
  }
  llvm::DenseMap<int64_t, int64_t> groupNumbers;
  for (GroupOp group : layout.getBody().getOps<GroupOp>()) {
    int64_t index = static_cast<int64_t>(group.getIndex());
    groupNumbers[index] = static_cast<int64_t>(groups.size());
    groups.push_back(json::Object{{"index", index},
                                  {"hyper", writeNumbers(group.getHyper())}});
  }
  for (ParamOp param : layout.getBody().getOps<ParamOp>())
    params.push_back(writeParam(param, classNumbers, groupNumbers,
                                layout.getClass(param.getCls())));
  json::Object facts{{"layout", layout.getSymName()},
                     {"bucket_bytes", static_cast<int64_t>(
                                          layout.getBucketBytes().value_or(0))},
                     {"mesh", std::move(mesh)},
                     {"classes", std::move(classes)},
                     {"groups", std::move(groups)},
                     {"params", std::move(params)}};
  if (failed(writeBindings(step->function, layout, facts, classNumbers)))
    return DFA_FAILED;
  return store(llvm::formatv("{0}", json::Value(std::move(facts))).str(),
               result);
}
