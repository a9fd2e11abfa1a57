// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running ptxas and fatbinary on temporary files.

#include "dfa/Target/Toolchain.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

/// A temporary file that goes away with the object.
class ScratchFile {
public:
  static Expected<ScratchFile> create(StringRef suffix, StringRef content) {
    SmallString<128> path;
    int descriptor;
    if (std::error_code code = sys::fs::createTemporaryFile(
            "dfa-kernels", suffix, descriptor, path))
      return createStringError(code, "could not make a temporary file: " +
                                         code.message());
    ScratchFile file(path);
    raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << content;
    stream.close();
    if (stream.has_error()) {
      std::error_code code = stream.error();
      stream.clear_error();
      return createStringError(code, "could not write '" + path +
                                         "': " + code.message());
    }
    return file;
  }

  StringRef path() const { return file; }

  Expected<std::string> read() const {
    auto buffer = MemoryBuffer::getFile(file, /*IsText=*/false,
                                        /*RequiresNullTerminator=*/false);
    if (!buffer)
      return createStringError(buffer.getError(),
                               "could not read '" + file + "'");
    return (*buffer)->getBuffer().str();
  }

private:
  explicit ScratchFile(StringRef path)
      : file(path.str()), remover(std::make_unique<FileRemover>(path)) {}

  std::string file;
  std::unique_ptr<FileRemover> remover;
};

} // namespace

/// Runs a program; its output, both streams, goes to `log`.
static Error runTool(StringRef program, ArrayRef<StringRef> arguments,
                     std::string &log) {
  Expected<ScratchFile> output = ScratchFile::create("log", "");
  if (!output)
    return output.takeError();
  SmallVector<StringRef> argv = {program};
  llvm::append_range(argv, arguments);
  std::optional<StringRef> redirects[] = {StringRef(), output->path(),
                                          output->path()};
  std::string message;
  int code =
      sys::ExecuteAndWait(program, argv, std::nullopt, redirects,
                          /*SecondsToWait=*/120, /*MemoryLimit=*/0, &message);
  Expected<std::string> text = output->read();
  if (!text)
    return text.takeError();
  log = *text;
  if (code == 0)
    return Error::success();
  StringRef shown = message.empty() ? StringRef(log).trim() : message;
  return createStringError("'" + program + "' failed: " + shown);
}

std::string mlir::dfa::getPtxasVersion(StringRef ptxas) {
  std::string log;
  if (Error error = runTool(ptxas, {"--version"}, log))
    return toString(std::move(error));
  SmallVector<StringRef> lines;
  StringRef(log).split(lines, '\n', -1, false);
  for (StringRef line : lines)
    if (line.contains("release"))
      return line.trim().str();
  return StringRef(log).trim().str();
}

Expected<std::string> mlir::dfa::assemblePtx(StringRef ptxas, StringRef ptx,
                                             StringRef chip, std::string *log) {
  Expected<ScratchFile> input = ScratchFile::create("ptx", ptx);
  if (!input)
    return input.takeError();
  Expected<ScratchFile> output = ScratchFile::create("cubin", "");
  if (!output)
    return output.takeError();
  std::string arch = ("-arch=" + chip).str();
  std::string text;
  Error error =
      runTool(ptxas, {arch, "-v", input->path(), "-o", output->path()}, text);
  if (log)
    *log = text;
  if (error)
    return createStringError(toString(std::move(error)) + " (for " + chip +
                             ", with " + getPtxasVersion(ptxas) + ")");
  return output->read();
}

Expected<std::string> mlir::dfa::makeFatbin(StringRef ptxas, StringRef ptx,
                                            StringRef cubin, StringRef chip) {
  // Beside the program itself, not beside a link to it.
  SmallString<128> program(ptxas);
  if (sys::fs::real_path(ptxas, program))
    program = ptxas;
  SmallString<128> tool(sys::path::parent_path(program));
  sys::path::append(tool, "fatbinary");
  if (!sys::fs::can_execute(tool))
    return createStringError("expects fatbinary beside ptxas, but there is no "
                             "program '" +
                             tool + "'");
  Expected<ScratchFile> text = ScratchFile::create("ptx", ptx);
  if (!text)
    return text.takeError();
  Expected<ScratchFile> code = ScratchFile::create("cubin", cubin);
  if (!code)
    return code.takeError();
  Expected<ScratchFile> output = ScratchFile::create("fatbin", "");
  if (!output)
    return output.takeError();
  StringRef number = chip;
  number.consume_front("sm_");
  std::string elf =
      ("--image3=kind=elf,sm=" + number + ",file=" + code->path()).str();
  std::string source =
      ("--image3=kind=ptx,sm=" + number + ",file=" + text->path()).str();
  std::string create = ("--create=" + output->path()).str();
  std::string log;
  if (Error error = runTool(tool, {"-64", create, elf, source}, log))
    return error;
  return output->read();
}
