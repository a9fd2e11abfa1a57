# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# scripts/lint.py on small trees: each rule refuses what it is there for, and
# lets good files pass.

import pathlib
import subprocess
import sys

import pytest

LINT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lint.py"
HEADER = (
    "// Part of the dfa project.\n"
    "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
)
# Put together, or lint would report this file.
MARK = "".join(["TO", "DO"])


def lint(root, files):
    """Writes files below root and returns lint's status and output."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    result = subprocess.run(
        [sys.executable, str(LINT), str(root)], capture_output=True, text=True
    )
    assert result.stderr == ""
    return result.returncode, result.stdout


GOOD = {
    "test/a.mlir": "// RUN: dfa-opt %s | FileCheck %s\n// CHECK: x\n",
    "test/prefixes.mlir": "// RUN: dfa-opt %s | FileCheck %s \\\n"
    "// RUN:   --check-prefixes=A,B\n// A: x\n// B-NEXT: y\n",
    "test/invalid.mlir": "// RUN: dfa-opt %s -verify-diagnostics\n",
    "test/note.mlir": "// RUN: not dfa-opt %s 2>&1 | FileCheck %s\n"
    "// A sentence: with a colon.\n// CHECK-COUNT-2: x\n",
    "runtime/base/A.h": HEADER + "#ifndef DFA_A_H\n#define DFA_A_H\n#endif\n",
    "runtime/base/A.cpp": HEADER + '#include "base/A.h"\n',
}


def test_good_files_pass(tmp_path):
    assert lint(tmp_path, GOOD) == (0, "")


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("test/a.mlir", "// CHECK: x\n", "needs a RUN line"),
        ("test/a.mlir", "// RUN: dfa-opt %s\n", "checks by itself"),
        ("test/a.mlir", "// RUN: x | FileCheck %s\n", "the file has none"),
        (
            "test/a.mlir",
            "// RUN: x | FileCheck %s --check-prefix=A\n// A: x\n// CHECK: y\n",
            "read by no FileCheck",
        ),
        *(
            (
                "test/a.mlir",
                f"// RUN: x | FileCheck %s\n// CHECK: x\n// {typo} y\n",
                f"a.mlir:3: looks like a directive but is none: // {typo} y",
            )
            for typo in (
                "CHECk:",
                "Check:",
                "CHECK_NEXT:",
                "CHECKNEXT:",
                "CHECK-LABLE:",
                "CHEKC:",
                "CHECK :",
                "Run:",
            )
        ),
        ("runtime/a.cpp", '#include "mlir/IR/A.h"\n', "never includes LLVM"),
        ("runtime/a.cpp", "#include <Python.h>\n", "never includes LLVM"),
        ("dialects/a.td", "// as CUDA does\n", "names no CUDA"),
        ("dialects/a.cpp", "int a;\n", "holds no C++"),
        ("python/src/a.cpp", '#include "mlir/IR/A.h"\n', "two C APIs"),
        ("lib/a.cpp", "int a;\n" * 500, "split it"),
        ("lib/a.cpp", f"// {MARK}: later\n", "unfinished work"),
        ("lib/a.h", "int a;\n", "include guard missing"),
    ],
)
def test_bad_file_is_reported(tmp_path, path, text, message):
    if not path.startswith("test/"):
        text = HEADER + text
    status, output = lint(tmp_path, {path: text})
    assert status == 1
    assert message in output
    # A misspelt directive may also count as an unknown prefix: two lines.
    assert all(line.startswith(path) for line in output.splitlines())


def test_missing_licence_is_reported(tmp_path):
    status, output = lint(tmp_path, {"lib/a.cpp": "int a;\n"})
    assert (status, output) == (
        1,
        "lib/a.cpp:1: the header lacks the SPDX line\n",
    )
