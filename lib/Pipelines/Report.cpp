// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-report: the cost of a compiled step, for people and for programs.

#include "dfa/Analysis/StepCost.h"
#include "dfa/Pipelines/Frontend.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::dfa;

static llvm::json::Array toJson(ArrayRef<ArrayCost> arrays) {
  llvm::json::Array list;
  for (const ArrayCost &array : arrays)
    list.push_back(llvm::json::Object{
        {"name", array.name}, {"bytes_per_element", array.bytesPerElement}});
  return list;
}

void mlir::dfa::printCostAsJson(const StepCost &cost, raw_ostream &os) {
  llvm::json::Array kernels, collectives;
  for (const KernelCost &kernel : cost.kernels)
    kernels.push_back(
        llvm::json::Object{{"name", kernel.name},
                           {"launches", kernel.launches},
                           {"bytes_per_element", kernel.bytesPerElement},
                           {"reads", toJson(kernel.reads)},
                           {"writes", toJson(kernel.writes)}});
  for (const CollectiveCost &collective : cost.collectives)
    collectives.push_back(llvm::json::Object{
        {"kind", collective.kind},
        {"axis", collective.axis},
        {"ranks", collective.ranks},
        {"bytes_on_wire_per_rank", collective.bytesOnWirePerRank}});
  llvm::json::Object report{
      {"version", 1},
      {"elements", cost.elements ? llvm::json::Value(*cost.elements)
                                 : llvm::json::Value(nullptr)},
      {"launches", cost.launches},
      {"bytes_per_element", cost.bytesPerElement},
      {"state_bytes_per_parameter", cost.stateBytesPerParameter},
      {"kernels", std::move(kernels)},
      {"collectives", std::move(collectives)},
      {"peak_bytes_per_rank", cost.peakBytesPerRank},
      {"floor_ms", cost.floorMs}};
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report)));
}

static void printText(const StepCost &cost, raw_ostream &os) {
  os << "step: ";
  if (cost.elements)
    os << *cost.elements << " elements, ";
  os << cost.launches << " launches, "
     << llvm::format("%g", cost.bytesPerElement) << " B/element, state "
     << llvm::format("%g", cost.stateBytesPerParameter) << " B/parameter\n";
  os << "  kernel               launches  B/element  arrays\n";
  for (const KernelCost &kernel : cost.kernels) {
    os << llvm::format("  %-20s %8lld  %9g ", kernel.name.c_str(),
                       static_cast<long long>(kernel.launches),
                       kernel.bytesPerElement);
    for (const ArrayCost &array : kernel.reads)
      os << " r:" << array.name;
    for (const ArrayCost &array : kernel.writes)
      os << " w:" << array.name;
    os << "\n";
  }
  for (const CollectiveCost &collective : cost.collectives)
    os << llvm::format("  %s over %s (%lld ranks): %.0f bytes sent by a rank\n",
                       collective.kind.c_str(), collective.axis.c_str(),
                       static_cast<long long>(collective.ranks),
                       collective.bytesOnWirePerRank);
  os << llvm::format("  memory %.0f bytes a rank, floor %g ms\n",
                     cost.peakBytesPerRank, cost.floorMs);
}

namespace {

struct Report : PassWrapper<Report, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Report)

  Report() = default;
  Report(const Report &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "dfa-report"; }
  StringRef getDescription() const final {
    return "Print what the compiled step costs, on stdout";
  }

  /// What the pipeline on the copy makes.
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, math::MathDialect>();
  }

  /// A step is compiled first, on a copy; the module stays as it is.
  void runOnOperation() override {
    if (format != "text" && format != "json") {
      emitError(getOperation().getLoc(), "expects format 'text' or 'json' for "
                                         "dfa-report, but got '")
          << format << "'";
      return signalPassFailure();
    }
    if (!(bandwidth > 0) || !(link > 0) || replicate < 0 || shard < 0) {
      emitError(getOperation().getLoc(),
                "expects a positive bandwidth and link, and no negative number "
                "of ranks, for dfa-report");
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    auto step = copy->lookupSymbol<func::FuncOp>("step");
    if (step) {
      PassManager pm(&getContext());
      buildToKernelsPipeline(pm);
      if (failed(pm.run(*copy)))
        return signalPassFailure();
    }
    CostOptions options;
    options.bandwidth = bandwidth;
    options.link = link;
    options.replicate = replicate;
    options.shard = shard;
    FailureOr<StepCost> cost = computeStepCost(*copy, options);
    if (failed(cost))
      return signalPassFailure();
    if (format == "json")
      printCostAsJson(*cost, llvm::outs());
    else
      printText(*cost, llvm::outs());
    llvm::outs().flush();
    markAllAnalysesPreserved();
  }

  Option<std::string> format{*this, "format", llvm::cl::desc("text or json"),
                             llvm::cl::init("text")};
  Option<double> bandwidth{
      *this, "bandwidth",
      llvm::cl::desc("Device memory, read plus write, GB/s"),
      llvm::cl::init(4200)};
  Option<double> link{*this, "link",
                      llvm::cl::desc("Link of a rank, each way, GB/s"),
                      llvm::cl::init(200)};
  Option<int64_t> replicate{
      *this, "replicate",
      llvm::cl::desc("Ranks of that axis; 0: as the mesh says"),
      llvm::cl::init(0)};
  Option<int64_t> shard{
      *this, "shard", llvm::cl::desc("Ranks of that axis; 0: as the mesh says"),
      llvm::cl::init(0)};
};

} // namespace

void mlir::dfa::registerDfaReportPass() { PassRegistration<Report>(); }
