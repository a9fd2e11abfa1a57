// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State of the import of a step function; internal to ImportStep.cpp and
// ImportRules.cpp.
#ifndef DFA_TOOLS_DFA_RUN_STEP_STEPIMPORTER_H
#define DFA_TOOLS_DFA_RUN_STEP_STEPIMPORTER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "step/Import.h"

namespace dfa::run {

class StepImporter {
public:
  explicit StepImporter(StepGraph &graph) : graph(graph) {}

  /// Appends nodes for all ops of the step function.
  mlir::LogicalResult addFunction(mlir::func::FuncOp function);

private:
  using Operation = mlir::Operation;
  using Value = mlir::Value;

  // Values and nodes.
  int addInternal(const ValueInfo &info);
  mlir::FailureOr<int> addValue(Value value, Operation *user);
  int findClass(llvm::StringRef name) const;
  mlir::FailureOr<Node> makeNode(Operation *op, NodeKind kind,
                                 mlir::ValueRange operands);
  mlir::LogicalResult add(mlir::FailureOr<Node> node);

  // Ops.
  mlir::LogicalResult addOp(Operation *op);
  mlir::LogicalResult addSimple(Operation *op, NodeKind kind);
  mlir::LogicalResult addEncode(Operation *op, NodeKind kind,
                                mlir::dfa::Format format);
  mlir::LogicalResult addReduce(Operation *op, llvm::StringRef axis,
                                mlir::dfa::Reduction reduction);
  mlir::LogicalResult addField(Operation *op, NodeKind kind,
                               llvm::StringRef field);
  mlir::LogicalResult addFlagged(Operation *op, NodeKind kind, Value control,
                                 Value flag);
  mlir::LogicalResult addScalar(Operation *op);
  mlir::LogicalResult addUpdate(mlir::dfa::UpdateOp op);
  template <typename Op> mlir::LogicalResult addRule(Op op);
  mlir::LogicalResult addLamb(mlir::dfa::LambOp op);

  // The function.
  mlir::LogicalResult addArguments(mlir::func::FuncOp function);
  mlir::LogicalResult addControlFields(mlir::func::FuncOp function);
  mlir::LogicalResult addBinding(Operation *function, Value value,
                                 mlir::DictionaryAttr attributes,
                                 const llvm::Twine &which,
                                 std::vector<Binding> &bindings);

  // Hyper-parameters.
  void addDefaults(Operation *op, int cls,
                   llvm::ArrayRef<llvm::StringRef> names);
  mlir::LogicalResult checkHyper(mlir::dfa::UpdateOp op, int cls);

  StepGraph &graph;
  llvm::DenseMap<Value, int> numbers;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_STEP_STEPIMPORTER_H
