# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# lit's configuration: which files are tests, what %names mean, and which
# features this machine has. Features decide what REQUIRES lines may ask for:
#   cuda      a CUDA device answers          gpus-N   at least N of them
#   nccl      libnccl.so.2 can be loaded     ptxas    ptxas was found
#   asan      the tools are built with AddressSanitizer

import ctypes
import os
import shutil

import lit.formats
import lit.util

config.name = "dfa"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "python", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.dfa_obj_root, "test")

config.environment["PATH"] = os.pathsep.join(
    [
        config.dfa_tools_dir,
        config.llvm_tools_dir,
        config.environment["PATH"],
    ]
)
for name in (
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "DFA_LOG",
    "DFA_NCCL",
    "DFA_PTXAS",
    "DFA_REQUIRE_GPU",
    "HOME",
    "LD_LIBRARY_PATH",
):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# A test that fails prints what happened, without a hunt for the right options.
config.environment["FILECHECK_OPTS"] = (
    "--dump-input=fail --dump-input-filter=error"
)
if config.sanitize:
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
    config.available_features.add("asan")
    # libMLIR is not instrumented: its threads would be reported as races.
    config.substitutions.append(
        (
            r"(?<![-%\w/.])dfa-opt(?![-\w.])",
            os.path.join(config.dfa_tools_dir, "dfa-opt")
            + " --mlir-disable-threading",
        )
    )


def find_ptxas():
    """The first ptxas of: DFA_PTXAS, CUDA_HOME, PATH, the set-up script's."""
    candidates = [os.environ.get("DFA_PTXAS")]
    if os.environ.get("CUDA_HOME"):
        candidates.append(os.path.join(os.environ["CUDA_HOME"], "bin", "ptxas"))
    candidates.append(shutil.which("ptxas"))
    for build in (
        config.dfa_obj_root,
        os.path.join(config.dfa_src_root, "build"),
    ):
        candidates.append(os.path.join(build, "venv", "bin", "ptxas"))
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    return None


def count_gpus():
    """Devices that the CUDA driver reports; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if (
        driver.cuInit(0) != 0
        or driver.cuDeviceGetCount(ctypes.byref(count)) != 0
    ):
        return 0
    return count.value


def has_nccl():
    """Whether the runtime would find an NCCL to load."""
    try:
        ctypes.CDLL(os.environ.get("DFA_NCCL", "libnccl.so.2"))
    except OSError:
        return False
    return True


ptxas = find_ptxas()
gpus = count_gpus()
missing = []
if ptxas:
    config.available_features.add("ptxas")
    config.environment["DFA_PTXAS"] = ptxas
else:
    missing.append("ptxas")
if gpus:
    config.available_features.add("cuda")
    for n in range(1, gpus + 1):
        config.available_features.add(f"gpus-{n}")
else:
    missing.append("a CUDA device")
if has_nccl():
    config.available_features.add("nccl")
else:
    missing.append("NCCL")

# Skipped tests must not look like passed ones.
if missing:
    lit_config.note(
        "tests that need these are skipped here: " + ", ".join(missing)
    )
if os.environ.get("DFA_REQUIRE_GPU") == "1" and not gpus:
    lit_config.fatal("DFA_REQUIRE_GPU=1 is set, but no CUDA device was found")

for tool in ("dfa-opt", "dfa-run", "dfa-layout", "dfa-lsp-server", "dfa-bench"):
    config.substitutions.append(
        (f"%{tool}", os.path.join(config.dfa_tools_dir, tool))
    )
config.substitutions.append(("%ptxas", ptxas or "ptxas-was-not-found"))
config.substitutions.append(("%python", config.python))
config.substitutions.append(
    ("%examples", os.path.join(config.dfa_src_root, "examples"))
)
config.substitutions.append(("%src", config.dfa_src_root))
