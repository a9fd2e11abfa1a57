// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass dfa-convert-kernels-to-gpu: kernels become functions of one GPU module.
// What they compute is in the files of the kinds of kernels.

#include "DeviceKernels.h"
#include "dfa-rt/abi.h"
#include "dfa/Conversion/LaunchShape.h"
#include "dfa/Conversion/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::dfa {
#define GEN_PASS_DEF_DFACONVERTKERNELSTOGPU
#include "dfa/Conversion/Passes.h.inc"
} // namespace mlir::dfa

using namespace mlir;
using namespace mlir::dfa;

/// Address spaces of NVPTX.
static constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3;
static constexpr StringLiteral kModuleName = "dfa_kernels";

LaunchShape dfa::getLaunchShape(Operation *kernel, unsigned vectorWidth,
                                unsigned block) {
  if (isa<ControlKernelOp>(kernel))
    return {DFA_RT_CONTROL_BLOCK, 1};
  if (isa<SegmentKernelOp>(kernel))
    return {DFA_RT_SEGMENT_BLOCK, 1};
  if (cast<KernelOp>(kernel).getAccumulators().empty())
    return {block, vectorWidth};
  return {block, 1};
}

namespace {

class KernelsToGPU
    : public dfa::impl::DfaConvertKernelsToGPUBase<KernelsToGPU> {
public:
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult checkOptions();
  LogicalResult convert(Operation *kernel, gpu::GPUModuleOp target);
  LogicalResult emitBody(Emitter &emitter, Operation *kernel,
                         ValueRange arguments, gpu::GPUModuleOp target);
  Value getShared(Emitter &emitter, Operation *kernel, gpu::GPUModuleOp target);
};

} // namespace

LogicalResult KernelsToGPU::checkOptions() {
  ModuleOp module = getOperation();
  if (!llvm::isPowerOf2_32(vectorWidth) || vectorWidth > 8)
    return module.emitError("expects a vector-width of 1, 2, 4 or 8, but got ")
           << vectorWidth.getValue();
  if (block < kWarp || block > 1024 || block % kWarp != 0)
    return module.emitError("expects a block that is a multiple of ")
           << kWarp << " up to 1024, but got " << block.getValue();
  if (unroll < 1 || unroll > 32)
    return module.emitError("expects unroll from 1 to 32, but got ")
           << unroll.getValue();
  if (maxRegisters > 255)
    return module.emitError("expects max-registers up to 255, but got ")
           << maxRegisters.getValue();
  return success();
}

/// Memory of the block, one f64 a warp: a global of the module, since plain
/// pointers need no descriptor.
Value KernelsToGPU::getShared(Emitter &emitter, Operation *kernel,
                              gpu::GPUModuleOp target) {
  OpBuilder builder = OpBuilder::atBlockBegin(target.getBody());
  Type type = LLVM::LLVMArrayType::get(builder.getF64Type(),
                                       DFA_RT_CONTROL_BLOCK / kWarp);
  std::string name =
      (SymbolTable::getSymbolName(kernel).getValue() + "_shared").str();
  LLVM::GlobalOp global =
      LLVM::GlobalOp::create(builder, kernel->getLoc(), type,
                             /*isConstant=*/false, LLVM::Linkage::Internal,
                             name, Attribute(), /*alignment=*/8, kSharedMemory);
  return LLVM::AddressOfOp::create(emitter, global);
}

LogicalResult KernelsToGPU::emitBody(Emitter &emitter, Operation *kernel,
                                     ValueRange arguments,
                                     gpu::GPUModuleOp target) {
  FailureOr<KernelLayout> layout = getKernelLayout(kernel);
  if (failed(layout))
    return failure();
  DeviceShape shape = {vectorWidth, block, unroll};
  if (ControlKernelOp control = dyn_cast<ControlKernelOp>(kernel)) {
    Value shared;
    if (control.getNumAccumulators() > 0)
      shared = getShared(emitter, kernel, target);
    return emitDeviceControlKernel(emitter, control, arguments, shared);
  }
  if (SegmentKernelOp segment = dyn_cast<SegmentKernelOp>(kernel))
    return emitDeviceSegmentKernel(emitter, segment, *layout, arguments);
  KernelOp element = cast<KernelOp>(kernel);
  if (element.getAccumulators().empty())
    return emitDeviceElementKernel(emitter, element, *layout, arguments, shape);
  return emitDeviceAtomKernel(emitter, element, *layout, arguments, shape);
}

/// Attributes that tell LLVM what a pointer argument is used for.
static void setArgumentAttributes(gpu::GPUFuncOp function, Operation *kernel) {
  OpBuilder builder(function);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (!isa<LLVM::LLVMPointerType>(function.getArgument(i).getType()))
      continue;
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                        builder.getUnitAttr());
    if (isReadOnlyArgument(kernel, i))
      function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                          builder.getUnitAttr());
  }
}

/// Takes the low half of an f32's bits by an instruction of its own. LLVM would
/// fold a plain truncation into a 16-bit store of the float's own register, and
/// there ptxas 13.0 converts the float to an integer instead of storing its low
/// bits (seen on an H200: the scalar tail of every bf16 + remainder update).
static void separateHalves(gpu::GPUFuncOp function) {
  SmallVector<arith::TruncIOp> halves;
  function.walk([&](arith::TruncIOp op) {
    auto bits = op.getIn().getDefiningOp<arith::BitcastOp>();
    if (bits && bits.getIn().getType().isF32() &&
        op.getOut().getType().isInteger(16))
      halves.push_back(op);
  });
  for (arith::TruncIOp op : halves) {
    OpBuilder builder(op);
    auto half = LLVM::InlineAsmOp::create(
        builder, op.getLoc(), op.getOut().getType(), ValueRange{op.getIn()},
        "cvt.u16.u32 $0, $1;", "=h,r", /*has_side_effects=*/false,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr);
    op.replaceAllUsesWith(half.getRes());
    op.erase();
  }
}

LogicalResult KernelsToGPU::convert(Operation *kernel,
                                    gpu::GPUModuleOp target) {
  OpBuilder builder = OpBuilder::atBlockEnd(target.getBody());
  Location loc = kernel->getLoc();
  StringRef name = SymbolTable::getSymbolName(kernel).getValue();
  FunctionType type =
      FunctionType::get(&getContext(), getArgumentTypes(kernel), {});
  gpu::GPUFuncOp function = gpu::GPUFuncOp::create(builder, loc, name, type);
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  LaunchShape shape = getLaunchShape(kernel, vectorWidth, block);
  // An upper bound, not the exact size: for the latter, assemblers of CUDA 13
  // spill registers to fit one more block.
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    builder.getDenseI32ArrayAttr({int32_t(shape.block)}));
  if (maxRegisters > 0)
    function->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(),
                      builder.getI32IntegerAttr(maxRegisters));
  setArgumentAttributes(function, kernel);

  builder.setInsertionPointToStart(&function.getBody().front());
  Emitter emitter(loc, builder, kGlobalMemory);
  // All tables are in global memory; saying so makes accesses cheaper.
  SmallVector<Value> arguments(function.getArguments());
  for (Value &argument : arguments)
    if (isa<LLVM::LLVMPointerType>(argument.getType()))
      argument = LLVM::AddrSpaceCastOp::create(
          emitter, emitter.getPointerType(), argument);
  if (failed(emitBody(emitter, kernel, arguments, target)))
    return failure();
  gpu::ReturnOp::create(emitter);
  separateHalves(function);
  kernel->erase();
  return success();
}

void KernelsToGPU::runOnOperation() {
  if (failed(checkOptions()))
    return signalPassFailure();
  ModuleOp module = getOperation();
  SmallVector<Operation *> kernels;
  for (Operation &op : *module.getBody())
    if (isa<KernelOpInterface>(op))
      kernels.push_back(&op);
  if (kernels.empty())
    return;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  gpu::GPUModuleOp target =
      gpu::GPUModuleOp::create(builder, kernels.front()->getLoc(), kModuleName);
  for (Operation *kernel : kernels)
    if (failed(convert(kernel, target)))
      return signalPassFailure();
}
