// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass dfa-serialize-kernels: a GPU module becomes a binary.

#include "Serialize.h"
#include "dfa/Target/Passes.h"
#include "dfa/Target/Toolchain.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFASERIALIZEKERNELS
#include "dfa/Target/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

std::optional<CudaFormat> dfa::parseCudaFormat(StringRef text) {
  return llvm::StringSwitch<std::optional<CudaFormat>>(text)
      .Case("ptx", CudaFormat::Ptx)
      .Case("cubin", CudaFormat::Cubin)
      .Case("fatbin", CudaFormat::Fatbin)
      .Default(std::nullopt);
}

FailureOr<CudaImage> dfa::serializeGpuModule(Operation *gpuModule,
                                             const CudaOptions &options) {
  if (failed(checkChip(gpuModule, options)))
    return failure();
  FailureOr<std::string> ptx = emitPtx(gpuModule, options.chip);
  if (failed(ptx))
    return failure();
  CudaImage image;
  image.ptx = *ptx;
  image.bytes = *ptx;
  if (options.format == CudaFormat::Ptx)
    return image;

  auto report = [&](llvm::Error error) {
    return gpuModule->emitError(llvm::toString(std::move(error)));
  };
  llvm::Expected<std::string> ptxas = findPtxas(options.ptxas);
  if (!ptxas)
    return report(ptxas.takeError());
  std::string log;
  llvm::Expected<std::string> cubin =
      assemblePtx(*ptxas, *ptx, options.chip, &log);
  if (!cubin)
    return report(cubin.takeError());
  image.resources = parseResources(log);
  image.bytes = *cubin;
  if (options.format == CudaFormat::Cubin)
    return image;
  llvm::Expected<std::string> fatbin =
      makeFatbin(*ptxas, *ptx, *cubin, options.chip);
  if (!fatbin)
    return report(fatbin.takeError());
  image.bytes = *fatbin;
  return image;
}

/// The resources of each kernel, as properties of the object.
static DictionaryAttr getProperties(Builder &builder,
                                    ArrayRef<KernelResources> resources) {
  SmallVector<NamedAttribute> entries;
  for (const KernelResources &kernel : resources)
    entries.push_back(builder.getNamedAttr(
        kernel.name,
        builder.getDictionaryAttr(
            {builder.getNamedAttr("registers",
                                  builder.getI64IntegerAttr(kernel.registers)),
             builder.getNamedAttr("spill_bytes", builder.getI64IntegerAttr(
                                                     kernel.spillBytes))})));
  return entries.empty() ? DictionaryAttr()
                         : builder.getDictionaryAttr(entries);
}

static gpu::CompilationTarget getObjectFormat(CudaFormat format) {
  switch (format) {
  case CudaFormat::Ptx:
    return gpu::CompilationTarget::Assembly;
  case CudaFormat::Cubin:
    return gpu::CompilationTarget::Binary;
  case CudaFormat::Fatbin:
    return gpu::CompilationTarget::Fatbin;
  }
  return gpu::CompilationTarget::Fatbin;
}

namespace {

class SerializeKernels
    : public dfa::impl::DfaSerializeKernelsBase<SerializeKernels> {
public:
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerBuiltinDialectTranslation(registry);
    registerGPUDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    registerNVVMDialectTranslation(registry);
  }

  void runOnOperation() override {
    std::optional<CudaFormat> parsed = parseCudaFormat(format);
    if (!parsed) {
      getOperation().emitError("expects format ptx, cubin or fatbin, but got '")
          << format.getValue() << "'";
      return signalPassFailure();
    }
    CudaOptions options;
    options.chip = chip;
    options.format = *parsed;
    options.ptxas = ptxas;
    for (gpu::GPUModuleOp target :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (failed(serialize(target, options)))
        return signalPassFailure();
  }

private:
  LogicalResult serialize(gpu::GPUModuleOp target, const CudaOptions &options) {
    FailureOr<CudaImage> image = serializeGpuModule(target, options);
    if (failed(image))
      return failure();
    OpBuilder builder(target);
    Attribute object = gpu::ObjectAttr::get(
        NVVM::NVVMTargetAttr::get(&getContext(), 2, "nvptx64-nvidia-cuda",
                                  options.chip),
        getObjectFormat(options.format), builder.getStringAttr(image->bytes),
        getProperties(builder, image->resources));
    gpu::BinaryOp::create(builder, target.getLoc(), target.getName(),
                          Attribute(), ArrayRef<Attribute>(object));
    target.erase();
    return success();
  }
};

} // namespace
