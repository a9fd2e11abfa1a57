// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler's pipelines, and the bytes that their kernels move.
#include "execution/Compile.h"

#include "dfa/IR/Dfa.h"
#include "dfa/Pipelines/Frontend.h"
#include "dfa/Target/Cuda.h"
#include "dfa/Target/ProgramExport.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/DynamicLibrary.h"

using namespace mlir;
using namespace mlir::dfa;
namespace run = ::dfa::run;

LogicalResult run::lowerToKernels(ModuleOp module) {
  PassManager pm(module.getContext());
  buildToKernelsPipeline(pm);
  return pm.run(module);
}

FailureOr<std::string> run::programText(ModuleOp module, bool cuda) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  ProgramExportOptions options;
  CudaOptions shape;
  options.library = cuda ? "nccl" : "gloo";
  options.block = shape.block;
  options.vectorWidth = shape.vectorWidth;
  if (failed(exportProgram(module, stream, options)))
    return failure();
  return text;
}

/// Elements of each class, by name.
static llvm::StringMap<double> countElements(ModuleOp module) {
  llvm::StringMap<double> elements;
  module.walk([&](ParamOp param) {
    elements[param.getCls()] +=
        static_cast<double>(cast<ShapedType>(param.getType()).getNumElements());
  });
  return elements;
}

/// What element kernels read and write in a step, each as often as it is
/// launched. Of the elements of a class a rank has its shard.
static std::vector<run::KernelTraffic> countTraffic(ModuleOp module) {
  llvm::StringMap<double> elements = countElements(module);
  double shards = 1;
  module.walk([&](MeshOp mesh) {
    if (AxisAttr axis = mesh.getAxis("shard"))
      shards = static_cast<double>(axis.getSize());
  });
  std::vector<run::KernelTraffic> traffic;
  module.walk([&](LaunchElementsOp launch) {
    Entry entry = launch->getParentOfType<EntryOp>().getKind();
    KernelOp kernel = module.lookupSymbol<KernelOp>(launch.getKernel());
    if (!kernel || (entry != Entry::Reduce && entry != Entry::Finish))
      return;
    double perElement = 0;
    for (KernelArrayAttr array :
         kernel.getArrays().getAsRange<KernelArrayAttr>())
      perElement += (array.isRead() + array.isWritten()) *
                    array.getType().getIntOrFloatBitWidth() / 8.0;
    double bytes = perElement * elements.lookup(launch.getCls()) / shards;
    std::string name = launch.getKernel().str();
    for (run::KernelTraffic &row : traffic)
      if (row.name == name) {
        row.bytes += bytes;
        return;
      }
    traffic.push_back({name, perElement, bytes});
  });
  return traffic;
}

FailureOr<run::CompiledStep> run::compileKernels(ModuleOp module,
                                                 StringRef chip) {
  CompiledStep step;
  FailureOr<std::string> text = programText(module, !chip.empty());
  if (failed(text))
    return failure();
  step.code.program = std::move(*text);
  step.traffic = countTraffic(module);
  if (!chip.empty()) {
    CudaOptions options;
    options.chip = chip.str();
    FailureOr<CudaImage> image = compileToCuda(module, options);
    if (failed(image))
      return failure();
    step.code.image = std::move(image->bytes);
    return step;
  }
  FailureOr<std::unique_ptr<HostKernels>> host = compileForHost(module);
  if (failed(host))
    return failure();
  step.host = std::move(*host);
  HostKernels *kernels = step.host.get();
  step.code.kernel = [kernels](const char *name) {
    return kernels->lookup(name);
  };
  return step;
}

run::Status run::findChip(std::string &chip) {
  std::string message;
  llvm::sys::DynamicLibrary driver =
      llvm::sys::DynamicLibrary::getPermanentLibrary("libcuda.so.1", &message);
  if (!driver.isValid())
    return Status::failure("expects a GPU, but found no driver: " + message);
  // The two attributes are the major and minor compute capability.
  using Init = int (*)(unsigned);
  using Attribute = int (*)(int *, int, int);
  Init init = reinterpret_cast<Init>(driver.getAddressOfSymbol("cuInit"));
  Attribute attribute = reinterpret_cast<Attribute>(
      driver.getAddressOfSymbol("cuDeviceGetAttribute"));
  int major = 0, minor = 0;
  if (!init || !attribute || init(0) != 0 || attribute(&major, 75, 0) != 0 ||
      attribute(&minor, 76, 0) != 0)
    return Status::failure("expects a GPU, but the driver reports none");
  chip = "sm_" + std::to_string(10 * major + minor);
  return Status();
}
