// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From dfa.program to text, record by record in the order of program.def.

#include "dfa/Target/ProgramExport.h"

#include "dfa-rt/abi.h"
#include "dfa/IR/Dfa.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dfa;

namespace {

class Exporter {
public:
  Exporter(ModuleOp module, raw_ostream &out,
           const ProgramExportOptions &options)
      : module(module), out(out), options(options) {}

  LogicalResult run(ProgramOp program);

private:
  LogicalResult checkWord(Operation *op, StringRef word, StringRef what);
  LogicalResult exportHeader(ProgramOp program, LayoutOp layout);
  LogicalResult exportClass(ProgramClassOp op);
  LogicalResult exportKernel(Operation *op);
  LogicalResult exportEntry(EntryOp op);
  LogicalResult exportCommand(Operation *op);
  LogicalResult exportElements(LaunchElementsOp op);
  LogicalResult exportCollective(CollectiveOp op);
  LogicalResult exportLoop(ForEachBucketOp op);
  /// The stream of a command, where it is not the usual one.
  void exportStream(Stream stream) {
    if (stream != Stream::Compute)
      out << " stream=" << stringifyStream(stream);
  }

  StringRef transportWord(Transport transport) const;

  ModuleOp module;
  raw_ostream &out;
  const ProgramExportOptions &options;
  unsigned indent = 2;
};

} // namespace

/// Words of the text end at blanks and comments.
LogicalResult Exporter::checkWord(Operation *op, StringRef word,
                                  StringRef what) {
  if (!word.empty() && word.find_first_of(" \t\r\n#=") == StringRef::npos)
    return success();
  return op->emitError("expects the name of ")
         << what << " to be a word without blanks, '#' and '=', but got '"
         << word << "'";
}

StringRef Exporter::transportWord(Transport transport) const {
  switch (transport) {
  case Transport::Any:
    return "any";
  case Transport::Library:
    return options.library;
  case Transport::Peer:
    return "peer";
  }
  return "any";
}

LogicalResult Exporter::exportHeader(ProgramOp program, LayoutOp layout) {
  out << "dfa-program " << DFA_RT_PROGRAM_VERSION << "\n"
      << "abi " << DFA_RT_ABI_VERSION << "\n";
  if (failed(checkWord(layout, layout.getSymName(), "a layout")))
    return failure();
  out << "layout " << layout.getSymName() << "\nhyper";
  for (StringAttr name : program.getHyper().getAsRange<StringAttr>()) {
    if (failed(checkWord(program, name, "a hyper-parameter")))
      return failure();
    out << " " << name.getValue();
  }
  out << "\n";
  MeshOp mesh = layout.getMeshOp();
  if (!mesh)
    return success();
  for (AxisAttr axis : mesh.getAxes().getAsRange<AxisAttr>()) {
    if (failed(checkWord(mesh, axis.getName(), "an axis")))
      return failure();
    out << "axis " << axis.getName().getValue() << " "
        << transportWord(axis.getTransport()) << "\n";
  }
  return success();
}

/// The word for a stored element; empty if there is none.
static StringRef elementWord(Type type, StringRef array) {
  if (type.isF64())
    return "f64";
  if (type.isF32())
    return "f32";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isInteger(16))
    return array == "remainder" ? "remainder" : "i16";
  if (type.isInteger(8))
    return "i8";
  return "";
}

LogicalResult Exporter::exportClass(ProgramClassOp op) {
  // Sums of each parameter's atoms, as many as its segment kernels combine.
  size_t stats = 0;
  for (SegmentKernelOp kernel : module.getOps<SegmentKernelOp>())
    if (kernel.getCls().getLeafReference() == op.getCls())
      stats = std::max(stats, kernel.getAccumulators().size());
  if (failed(checkWord(op, op.getCls(), "a class")))
    return failure();
  out << "class " << op.getCls() << " derived=" << op.getDerived()
      << " stats=" << stats << "\n";
  for (auto [name, type, part] :
       llvm::zip_equal(op.getArrays().getAsRange<StringAttr>(),
                       op.getTypes().getAsValueRange<TypeAttr>(),
                       op.getParts().getAsRange<PartAttr>())) {
    StringRef element = elementWord(type, name);
    if (element.empty())
      return op.emitOpError("expects array '")
             << name.getValue() << "' to hold f64, f32, f16, bf16, i16 or i8, "
             << "but got " << type;
    if (failed(checkWord(op, name, "an array")))
      return failure();
    out << "array " << name.getValue() << " element=" << element
        << " part=" << stringifyPart(part.getValue()) << " side=none\n";
  }
  return success();
}

LogicalResult Exporter::exportKernel(Operation *op) {
  StringRef kind, cls = "-";
  unsigned block = 0, vector = 1;
  if (KernelOp kernel = dyn_cast<KernelOp>(op)) {
    kind = "element";
    cls = kernel.getCls().getLeafReference();
    block = options.block;
    if (kernel.getAccumulators().empty())
      vector = options.vectorWidth;
  } else if (SegmentKernelOp kernel = dyn_cast<SegmentKernelOp>(op)) {
    kind = "segment";
    cls = kernel.getCls().getLeafReference();
    block = DFA_RT_SEGMENT_BLOCK;
  } else if (isa<ControlKernelOp>(op)) {
    kind = "control";
    block = DFA_RT_CONTROL_BLOCK;
  } else {
    return success();
  }
  StringRef name = SymbolTable::getSymbolName(op);
  if (failed(checkWord(op, name, "a kernel")))
    return failure();
  out << "kernel " << name << " kind=" << kind << " class=" << cls
      << " accs=" << cast<KernelOpInterface>(op).getNumAccumulators()
      << " block=" << block << " vector=" << vector << "\n";
  return success();
}

LogicalResult Exporter::exportElements(LaunchElementsOp op) {
  if (!op.getArgs().empty())
    return op.emitOpError("passes host scalars, which the program format has "
                          "no place for; run --dfa-verify-capturable first");
  out << "launch_elements kernel=" << op.getKernel() << " class=" << op.getCls()
      << " table=" << stringifyTable(op.getTable()) << " acc=" << op.getAcc();
  return success();
}

LogicalResult Exporter::exportCollective(CollectiveOp op) {
  out << "collective kind=" << stringifyCollective(op.getKind())
      << " axis=" << op.getAxis() << " class=" << op.getCls().value_or("-")
      << " source=" << op.getSource() << " target=" << op.getTarget()
      << " reduce=" << stringifyReduction(op.getReduction())
      << " order=" << stringifyOrder(op.getOrder()) << " acc=" << op.getAcc()
      << " accs=" << op.getAccs();
  if (op.getGroupAccs() > 0)
    out << " group_accs=" << op.getGroupAccs();
  return checkWord(op, op.getAxis(), "an axis");
}

LogicalResult Exporter::exportLoop(ForEachBucketOp op) {
  out << "for_each_bucket class=" << op.getCls() << "\n";
  indent += 2;
  for (Operation &inner : op.getBody().front())
    if (failed(exportCommand(&inner)))
      return failure();
  indent -= 2;
  out.indent(indent) << "end_bucket";
  return success();
}

LogicalResult Exporter::exportCommand(Operation *op) {
  out.indent(indent);
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<LaunchElementsOp>(
              [&](LaunchElementsOp launch) { return exportElements(launch); })
          .Case<LaunchControlOp>([&](LaunchControlOp launch) {
            out << "launch_control kernel=" << launch.getKernel()
                << " acc=" << launch.getAcc()
                << " mode=" << stringifyControlMode(launch.getMode());
            return success();
          })
          .Case<LaunchSegmentsOp>([&](LaunchSegmentsOp launch) {
            out << "launch_segments kernel=" << launch.getKernel()
                << " class=" << launch.getCls() << " acc=" << launch.getAcc();
            if (launch.getMode() != ControlMode::Whole)
              out << " mode=" << stringifyControlMode(launch.getMode());
            exportStream(launch.getStream());
            return success();
          })
          .Case<CollectiveOp>([&](CollectiveOp collective) {
            return exportCollective(collective);
          })
          .Case<ForEachBucketOp>(
              [&](ForEachBucketOp loop) { return exportLoop(loop); })
          .Case<RecordOp, WaitOp>([&](auto event) {
            out << (isa<RecordOp>(op) ? "record" : "wait")
                << " event=" << event.getEvent()
                << " stream=" << stringifyStream(event.getStream());
            return checkWord(op, event.getEvent(), "an event");
          })
          .Case<MemsetOp>([&](MemsetOp memset) {
            out << "memset class=" << memset.getCls()
                << " array=" << memset.getArray();
            return success();
          })
          .Case<UploadOp>([&](UploadOp upload) {
            out << "upload table=" << upload.getTable();
            return success();
          })
          .Case<ReadBackOp>([&](ReadBackOp read) {
            out << "read_back";
            exportStream(read.getStream());
            return success();
          })
          .Case<BarrierOp>([&](BarrierOp barrier) {
            out << "barrier axis=" << barrier.getAxis();
            return success();
          })
          .Default([&](Operation *) {
            return op->emitError("'")
                   << op->getName() << "' op is host work, which the program "
                   << "format has no command for";
          });
  out << "\n";
  return result;
}

LogicalResult Exporter::exportEntry(EntryOp op) {
  out << "entry " << stringifyEntry(op.getKind()) << "\n";
  for (Operation &command : op.getBody().front())
    if (failed(exportCommand(&command)))
      return failure();
  out << "end\n";
  return success();
}

LogicalResult Exporter::run(ProgramOp program) {
  LayoutOp layout = module.lookupSymbol<LayoutOp>(program.getLayout());
  if (!layout)
    return program.emitOpError("expects a 'dfa.layout' @")
           << program.getLayout() << ", but found none";
  if (failed(exportHeader(program, layout)))
    return failure();
  for (ProgramClassOp cls : program.getBody().getOps<ProgramClassOp>())
    if (failed(exportClass(cls)))
      return failure();
  out << "accumulators " << program.getAccumulators() << "\n"
      << "group_stats " << program.getGroupStats() << "\n";
  for (Operation &op : *module.getBody())
    if (failed(exportKernel(&op)))
      return failure();
  for (EntryOp entry : program.getBody().getOps<EntryOp>())
    if (failed(exportEntry(entry)))
      return failure();
  return success();
}

LogicalResult dfa::exportProgram(ModuleOp module, raw_ostream &stream,
                                 const ProgramExportOptions &options) {
  ProgramOp program;
  for (ProgramOp other : module.getOps<ProgramOp>()) {
    if (program)
      return other.emitOpError("is a second program; expects one a module");
    program = other;
  }
  if (!program)
    return module.emitError("expects a 'dfa.program', but found none");
  // A failure must not leave half a program on the stream.
  std::string text;
  llvm::raw_string_ostream buffer(text);
  if (failed(Exporter(module, buffer, options).run(program)))
    return failure();
  stream << text;
  return success();
}
