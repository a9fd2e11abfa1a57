// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where ptxas is.

#include "dfa/Target/Toolchain.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace llvm;

namespace {

/// The search for one tool, and what it looked at.
class Search {
public:
  bool tryFile(StringRef file, StringRef why) {
    tried.push_back((file + " (" + why + ")").str());
    if (sys::fs::can_execute(file) && !sys::fs::is_directory(file)) {
      found = file.str();
      return true;
    }
    return false;
  }
  bool tryFolder(StringRef folder, StringRef why) {
    SmallString<128> file(folder);
    sys::path::append(file, "ptxas");
    return tryFile(file, why);
  }
  bool tryPython(StringRef environment, StringRef why);
  void skip(StringRef why) { tried.push_back((why + " is not set").str()); }

  std::string found;
  SmallVector<std::string> tried;
};

} // namespace

/// The package nvidia-cuda-nvcc of a Python environment.
bool Search::tryPython(StringRef environment, StringRef why) {
  SmallString<128> lib(environment);
  sys::path::append(lib, "lib");
  std::error_code error;
  SmallVector<std::string> folders;
  for (sys::fs::directory_iterator it(lib, error), end; !error && it != end;
       it.increment(error))
    if (sys::path::filename(it->path()).starts_with("python3"))
      folders.push_back(it->path());
  llvm::sort(folders);
  if (folders.empty()) {
    sys::path::append(lib, "python3*");
    folders.push_back(lib.str().str());
  }
  for (StringRef folder : folders) {
    SmallString<128> bin(folder);
    sys::path::append(bin, "site-packages", "nvidia", "cu13", "bin");
    if (tryFolder(bin, why))
      return true;
  }
  return false;
}

static Error makeError(const Twine &message) {
  return createStringError(message);
}

static Expected<std::string> takeOverride(StringRef file, StringRef origin) {
  Search search;
  if (search.tryFile(file, origin))
    return file.str();
  StringRef state =
      sys::fs::exists(file) ? "is not executable" : "does not exist";
  return makeError("expects an assembler that can be run, but '" + file +
                   "', given by " + origin + ", " + state +
                   "; no other was tried");
}

static bool searchPath(Search &search, const std::optional<std::string> &path) {
  if (!path) {
    search.skip("PATH");
    return false;
  }
  SmallVector<StringRef> folders;
  StringRef(*path).split(folders, sys::EnvPathSeparator, -1, false);
  for (StringRef folder : folders)
    if (search.tryFolder(folder, "PATH"))
      return true;
  return false;
}

/// An environment made by the set-up script lies beside the tools' folder.
static bool searchBesideProgram(Search &search) {
  static int anchor;
  std::string program = sys::fs::getMainExecutable(nullptr, &anchor);
  SmallString<128> venv(sys::path::parent_path(program));
  sys::path::append(venv, "..", "venv");
  sys::path::remove_dots(venv, /*remove_dot_dot=*/true);
  return search.tryPython(venv, "beside this program");
}

std::optional<std::string> mlir::dfa::getEnvironment(StringRef name) {
  return sys::Process::GetEnv(name);
}

Expected<std::string> mlir::dfa::findPtxas(StringRef override,
                                           EnvironmentLookup environment,
                                           StringRef defaultRoot) {
  if (!override.empty())
    return takeOverride(override, "option 'ptxas'");
  std::optional<std::string> variable = environment("DFA_PTXAS");
  if (variable && !variable->empty())
    return takeOverride(*variable, "DFA_PTXAS");

  Search search;
  search.skip("DFA_PTXAS");
  for (StringRef name : {"CUDA_HOME", "CUDA_PATH"}) {
    std::optional<std::string> root = environment(name);
    if (!root || root->empty()) {
      search.skip(name);
      continue;
    }
    SmallString<128> bin(*root);
    sys::path::append(bin, "bin");
    if (search.tryFolder(bin, name))
      return search.found;
  }
  if (searchPath(search, environment("PATH")) ||
      search.tryFolder((defaultRoot + "/bin").str(), "default place"))
    return search.found;
  std::optional<std::string> venv = environment("VIRTUAL_ENV");
  if (venv && !venv->empty() && search.tryPython(*venv, "VIRTUAL_ENV"))
    return search.found;
  if (searchBesideProgram(search))
    return search.found;
  return makeError("could not find ptxas, the CUDA assembler; set DFA_PTXAS to "
                   "it, or install the PyPI package nvidia-cuda-nvcc; tried, "
                   "in order: " +
                   join(search.tried, ", "));
}
